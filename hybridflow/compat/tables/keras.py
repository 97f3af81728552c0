"""``tf.keras``: models, layers and what they are made and trained with."""

NAMES = """
[keras]
Layer: layers.Layer
Loss: losses.Loss
Metric: metrics.Metric
Optimizer: optimizers.Optimizer
Initializer: initializers.Initializer
Regularizer: regularizers.Regularizer
InputSpec: layers.InputSpec
KerasTensor: layers.keras_tensor.Symbol
Variable: ~values.KerasVariable
DTypePolicy: mixed_precision.Policy
name_scope: ~control.name_scope
device: ~settings.device
Input: ~models.input_of
Model: Model
Sequential: Sequential
version, __version__: ~settings.KERAS_VERSION

[keras.models]
Model: Model
Sequential: Sequential
load_model: models.load_model
save_model: models.save_model
model_from_json: models.model_from_json
clone_model: ~models.clone_model

[keras.mixed_precision]
DTypePolicy: mixed_precision.Policy
dtype_policy: ~keras_names.dtype_policy
set_dtype_policy: mixed_precision.set_global_policy
*: mixed_precision

[keras.layers]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_layer
Input: ~models.input_of
add: ~models.merged_add
average: ~models.merged_average
concatenate: ~models.concatenate
dot: ~models.dot
maximum: ~models.merged_maximum
minimum: ~models.merged_minimum
multiply: ~models.merged_multiply
subtract: ~models.merged_subtract
Embedding: ~keras_layers.Embedding
LeakyReLU: ~keras_layers.LeakyReLU
*: layers

[keras.optimizers optimizers keras.optimizers.legacy optimizers.legacy]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_optimizer
SGD: ~keras_layers.SGD
Adam: ~keras_layers.Adam
AdamW: ~keras_layers.AdamW
RMSprop: ~keras_layers.RMSprop
Adagrad: ~keras_layers.Adagrad
Adadelta: ~keras_layers.Adadelta
Adamax: ~keras_layers.Adamax
Nadam: ~keras_layers.Nadam
Ftrl: ~keras_layers.Ftrl
*: optimizers

[keras.optimizers.schedules optimizers.schedules]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_schedule
*: optimizers.schedules

[keras.losses losses]
binary_focal_crossentropy: ~keras_names.binary_focal_crossentropy
categorical_focal_crossentropy: ~keras_names.categorical_focal_crossentropy
categorical_generalized_cross_entropy: ~keras_names.categorical_generalized_cross_entropy
categorical_hinge: ~keras_names.categorical_hinge
dice: ~keras_names.dice
tversky: ~keras_names.tversky
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_loss
*: losses
get: ~models.get_loss
MSE, mse, mean_squared_error: ~models.mean_squared_error
MAE, mae, mean_absolute_error: ~models.mean_absolute_error
MAPE, mape, mean_absolute_percentage_error: ~models.mean_absolute_percentage_error
MSLE, msle, mean_squared_logarithmic_error: ~models.mean_squared_logarithmic_error
KLD, kld, kl_divergence, kullback_leibler_divergence: ~models.kl_divergence
binary_crossentropy: ~models.binary_crossentropy
categorical_crossentropy: ~models.categorical_crossentropy
sparse_categorical_crossentropy: ~models.sparse_categorical_crossentropy
cosine_similarity: ~models.cosine_similarity
hinge: ~models.hinge
squared_hinge: ~models.squared_hinge
huber: ~models.huber
log_cosh, logcosh: ~models.log_cosh
ctc: ~models.ctc
circle: ~models.circle
poisson: ~models.poisson
Reduction: ~models.Reduction

[keras.metrics metrics]
binary_focal_crossentropy: ~keras_names.binary_focal_crossentropy
categorical_focal_crossentropy: ~keras_names.categorical_focal_crossentropy
categorical_hinge: ~keras_names.categorical_hinge
huber: ~models.huber
kullback_leibler_divergence: ~models.kl_divergence
logcosh: ~models.log_cosh
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_metric
*: metrics
MSE, mse, mean_squared_error: ~models.mean_squared_error
MAE, mae, mean_absolute_error: ~models.mean_absolute_error
MAPE, mape, mean_absolute_percentage_error: ~models.mean_absolute_percentage_error
MSLE, msle, mean_squared_logarithmic_error: ~models.mean_squared_logarithmic_error
KLD, kld, kl_divergence: ~models.kl_divergence
binary_crossentropy: ~models.binary_crossentropy
categorical_crossentropy: ~models.categorical_crossentropy
sparse_categorical_crossentropy: ~models.sparse_categorical_crossentropy
hinge: ~models.hinge
squared_hinge: ~models.squared_hinge
poisson: ~models.poisson

[keras.callbacks]
*: callbacks

[keras.initializers initializers]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_initializer
*: initializers
constant: initializers.Constant
glorot_normal: initializers.GlorotNormal
glorot_uniform: initializers.GlorotUniform
he_normal: initializers.HeNormal
he_uniform: initializers.HeUniform
identity: initializers.Identity
lecun_normal: initializers.LecunNormal
lecun_uniform: initializers.LecunUniform
ones: initializers.Ones
orthogonal: initializers.Orthogonal
random_normal: initializers.RandomNormal
random_uniform: initializers.RandomUniform
truncated_normal: initializers.TruncatedNormal
variance_scaling: initializers.VarianceScaling
zeros: initializers.Zeros

[keras.regularizers]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_regularizer
*: regularizers
l1: regularizers.L1(l1, l>l1)
l2: regularizers.L2(l2, l>l2)
l1_l2: regularizers.L1L2

[keras.constraints]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_constraint
*: constraints
max_norm: constraints.MaxNorm
min_max_norm: constraints.MinMaxNorm
non_neg: constraints.NonNeg
unit_norm: constraints.UnitNorm

[keras.activations]
celu: ~keras_names.celu
glu: ~keras_names.glu
threshold: ~keras_names.threshold
sparsemax: ~keras_names.sparsemax
squareplus: ~keras_names.squareplus
sparse_plus: ~keras_names.sparse_plus
mish: ~keras_names.mish
hard_tanh: ~keras_names.hard_tanh
sparse_sigmoid: ~keras_names.sparse_sigmoid
tanh_shrink: ~keras_names.tanh_shrink
hard_shrink: ~keras_names.hard_shrink
soft_shrink: ~keras_names.soft_shrink
deserialize: ~keras_names.deserialize_activation
get: layers.activation_functions.activation
serialize: layers.activation_functions.name_of_activation
elu: nn.elu(&x, /, alpha)
exponential: exp(&x, /)
gelu: nn.gelu(&x, /, approximate)
hard_sigmoid: nn.hard_sigmoid(&x, /)
hard_silu, hard_swish: nn.hard_swish(&x, /)
leaky_relu: nn.leaky_relu(&x, /, negative_slope>alpha)
linear: layers.activation_functions.linear
log_sigmoid: nn.log_sigmoid(&x, /)
log_softmax: nn.log_softmax(&x, /, axis)
relu: ~models.relu
relu6: nn.relu6(&x, /)
selu: nn.selu(&x, /)
sigmoid: sigmoid(&x, /)
silu, swish: nn.silu(&x, /)
softmax: ~models.softmax
softplus: nn.softplus(&x, /)
softsign: nn.softsign(&x, /)
tanh: tanh(&x, /)

[keras.datasets.mnist]
load_data: ~datasets.mnist

[keras.datasets.fashion_mnist]
load_data: ~datasets.fashion_mnist

[keras.datasets.cifar10]
load_data: ~datasets.cifar10

[keras.datasets.cifar100]
load_data: ~datasets.cifar100

[keras.datasets.imdb]
load_data: ~datasets.imdb
get_word_index: ~datasets.imdb_words

[keras.datasets.reuters]
load_data: ~datasets.reuters
get_word_index: ~datasets.reuters_words

[keras.datasets.boston_housing]
load_data: ~datasets.boston_housing

[keras.datasets.california_housing]
load_data: ~datasets.california_housing

[keras.preprocessing.sequence]
make_sampling_table: ~sequences.make_sampling_table
pad_sequences: ~models.pad_sequences
skipgrams: ~sequences.skipgrams

[keras.utils]
get_file: ~downloads.get_file
img_to_array: ~keras_names.img_to_array
array_to_img: ~keras_names.array_to_img
load_img: ~keras_names.load_img
save_img: ~keras_names.save_img
split_dataset: ~keras_names.split_dataset
pack_x_y_sample_weight: ~keras_names.pack_x_y_sample_weight
unpack_x_y_sample_weight: ~keras_names.unpack_x_y_sample_weight
is_keras_tensor: ~keras_names.is_keras_tensor
standardize_dtype: ~keras_names.standardize_dtype
get_custom_objects: ~keras_names.get_custom_objects
get_registered_name: ~keras_names.get_registered_name
serialize_keras_object: ~keras_names.serialize_keras_object
deserialize_keras_object: ~keras_names.deserialize_keras_object
Progbar: ~keras_names.Progbar
clear_session: ~models.clear_session
enable_interactive_logging, disable_interactive_logging: ~control.nothing
plot_model: plot_model
PyDataset, Sequence: ~models.PyDataset
make_sampling_table: ~sequences.make_sampling_table
pad_sequences: ~models.pad_sequences
skipgrams: ~sequences.skipgrams
to_categorical: ~models.to_categorical
normalize: ~models.normalize
set_random_seed: ~models.set_random_seed
register_keras_serializable: ~models.register_keras_serializable
timeseries_dataset_from_array: ~files.timeseries_dataset_from_array
CustomObjectScope, custom_object_scope: core.serialization.custom_objects(custom_objects>objects, /)

[keras.saving]
serialize_keras_object: ~keras_names.serialize_keras_object
deserialize_keras_object: ~keras_names.deserialize_keras_object
get_custom_objects: ~keras_names.get_custom_objects
get_registered_name: ~keras_names.get_registered_name
CustomObjectScope, custom_object_scope: core.serialization.custom_objects(custom_objects>objects, /)
load_model: models.load_model
register_keras_serializable: ~models.register_keras_serializable
save_model: models.save_model

[keras.preprocessing]
timeseries_dataset_from_array: ~files.timeseries_dataset_from_array

[keras.random]
categorical: ~draws.categorical
randint: ~draws.keras_randint
gamma: ~draws.gamma
SeedGenerator: random.Generator
normal: ~draws.normal
truncated_normal: ~draws.truncated_normal
uniform: ~draws.uniform
shuffle: ~draws.shuffle
dropout: ~network.dropout

[keras.applications]
ResNet50: applications.ResNet50
ResNet101: applications.ResNet101
ResNet152: applications.ResNet152
ResNet50V2: applications.ResNet50V2
ResNet101V2: applications.ResNet101V2
ResNet152V2: applications.ResNet152V2
MobileNetV2: applications.MobileNetV2
MobileNetV3Small: applications.MobileNetV3Small
MobileNetV3Large: applications.MobileNetV3Large
EfficientNetB0: applications.EfficientNetB0
EfficientNetB1: applications.EfficientNetB1
EfficientNetB2: applications.EfficientNetB2
EfficientNetB3: applications.EfficientNetB3
VGG16: applications.VGG16
VGG19: applications.VGG19
DenseNet121: applications.DenseNet121
InceptionV3: applications.InceptionV3
Xception: applications.Xception
ConvNeXtTiny: applications.ConvNeXtTiny

[keras.applications.imagenet_utils]
preprocess_input: applications.preprocess_input
decode_predictions: applications.decode_predictions

[keras.applications.resnet50]
ResNet50: applications.ResNet50
preprocess_input: applications.preprocess_input(x, data_format, mode="caffe")
decode_predictions: applications.decode_predictions

[keras.applications.resnet]
ResNet50: applications.ResNet50
ResNet101: applications.ResNet101
ResNet152: applications.ResNet152
preprocess_input: applications.preprocess_input(x, data_format, mode="caffe")
decode_predictions: applications.decode_predictions

[keras.applications.resnet_v2]
ResNet50V2: applications.ResNet50V2
ResNet101V2: applications.ResNet101V2
ResNet152V2: applications.ResNet152V2
preprocess_input: applications.preprocess_input(x, data_format, mode="tf")
decode_predictions: applications.decode_predictions

[keras.applications.mobilenet_v2]
MobileNetV2: applications.MobileNetV2
preprocess_input: applications.preprocess_input(x, data_format, mode="tf")
decode_predictions: applications.decode_predictions

[keras.applications.mobilenet_v3]
preprocess_input: ~keras_names.unscaled
decode_predictions: applications.decode_predictions

[keras.applications.efficientnet]
EfficientNetB0: applications.EfficientNetB0
EfficientNetB1: applications.EfficientNetB1
EfficientNetB2: applications.EfficientNetB2
EfficientNetB3: applications.EfficientNetB3
preprocess_input: ~keras_names.unscaled
decode_predictions: applications.decode_predictions

[keras.applications.vgg16]
VGG16: applications.VGG16
preprocess_input: applications.preprocess_input(x, data_format, mode="caffe")
decode_predictions: applications.decode_predictions

[keras.applications.vgg19]
VGG19: applications.VGG19
preprocess_input: applications.preprocess_input(x, data_format, mode="caffe")
decode_predictions: applications.decode_predictions

[keras.applications.densenet]
DenseNet121: applications.DenseNet121
preprocess_input: applications.preprocess_input(x, data_format, mode="torch")
decode_predictions: applications.decode_predictions

[keras.applications.inception_v3]
InceptionV3: applications.InceptionV3
preprocess_input: applications.preprocess_input(x, data_format, mode="tf")
decode_predictions: applications.decode_predictions

[keras.applications.xception]
Xception: applications.Xception
preprocess_input: applications.preprocess_input(x, data_format, mode="tf")
decode_predictions: applications.decode_predictions

[keras.applications.convnext]
ConvNeXtTiny: applications.ConvNeXtTiny
preprocess_input: ~keras_names.unscaled
decode_predictions: applications.decode_predictions
"""
