"""The functions of ``tf.keras.backend``."""

NAMES = """
[keras.backend]
batch_dot: ~keras_names.batch_dot
batch_flatten: ~keras_names.batch_flatten
batch_get_value: ~keras_names.batch_get_value
batch_set_value: ~keras_names.batch_set_value
count_params: ~keras_names.count_params
get_uid: ~keras_names.get_uid
gradients: ~keras_names.gradients
is_keras_tensor: ~keras_names.is_keras_tensor
moving_average_update: ~keras_names.moving_average_update
random_bernoulli: ~keras_names.random_bernoulli
repeat: ~keras_names.repeat
repeat_elements: ~keras_names.repeat_elements
reverse: ~keras_names.reverse
spatial_2d_padding: ~keras_names.spatial_2d_padding
temporal_padding: ~keras_names.temporal_padding
standardize_dtype: ~keras_names.standardize_dtype
switch: ~keras_names.switch
update: ~keras_names.update
update_add: ~keras_names.update_add
update_sub: ~keras_names.update_sub
arange: ~arrays.range(start, stop>limit, step>delta, dtype)
argmin: argmin(&x, /, axis=-1)
bias_add: ~network.bias_add(x>value, bias, data_format)
categorical_crossentropy: ~models.categorical_crossentropy(target>y_true, output>y_pred, from_logits, axis)
sparse_categorical_crossentropy: ~models.sparse_categorical_crossentropy(target>y_true, output>y_pred, from_logits)
cos: cos(&x, /)
sin: sin(&x, /)
cumprod: ~maths.cumprod(x, axis)
cumsum: ~maths.cumsum(x, axis)
dropout: ~network.dropout(x, level>rate, noise_shape, seed)
dtype: ~keras_names.k_dtype
elu: nn.elu(&x, /, alpha)
eval: ~models.get_value
eye: ~arrays.eye(size>num_rows, dtype)
foldl: ~control.foldl(fn, elems, initializer)
foldr: ~control.foldr(fn, elems, initializer)
gather: ~arrays.gather(reference>params, indices)
greater_equal: greater_equal(&x, &y, /)
less_equal: less_equal(&x, &y, /)
not_equal: not_equal(&x, &y, /)
hard_sigmoid: nn.hard_sigmoid(&x, /)
in_top_k: ~maths.in_top_k(predictions, targets, k)
l2_normalize: ~maths.l2_normalize(x, axis)
map_fn: ~control.map_fn(fn, elems)
name_scope: ~control.name_scope
permute_dimensions: ~arrays.transpose(x>a, pattern>perm)
prod: ~maths.reduce_prod(x>input_tensor, axis, keepdims)
random_normal: ~draws.normal(shape, mean, stddev, dtype, seed)
random_uniform: ~draws.uniform(shape, minval=0.0, maxval=1.0, dtype, seed)
truncated_normal: ~draws.truncated_normal(shape, mean, stddev, dtype, seed)
softsign: nn.softsign(&x, /)
set_image_data_format, set_floatx, set_epsilon: ~models.fixed_setting
tile: ~arrays.tile(x>input, n>multiples)
conv2d: ~network.conv2d(x>input, kernel>filters, strides=1, padding='VALID', data_format)
conv1d: ~network.conv1d(x>input, kernel>filters, strides>stride=1, padding='VALID', data_format)
abs: abs(&x, /)
all: ~maths.reduce_all
any: ~maths.reduce_any
argmax: ~models.k_argmax
backend: ~models.backend
binary_crossentropy: ~models.binary_crossentropy(target>y_true, output>y_pred, from_logits)
cast: ~values.cast
cast_to_floatx: ~models.cast_to_floatx
clear_session: ~models.clear_session
clip: ~maths.clip_by_value
concatenate: ~arrays.concat(tensors>values, axis=-1)
constant: ~values.constant(value, dtype, shape)
dot: matmul(&x, &y, /)
epsilon: ~models.epsilon
equal: equal(&x, &y, /)
exp: exp(&x, /)
expand_dims: expand_dims(&x, /, axis=-1)
flatten: ~models.k_flatten
floatx: ~models.floatx
get_value: ~models.get_value
greater: greater(&x, &y, /)
image_data_format: ~models.image_data_format
int_shape: ~models.k_int_shape
less: less(&x, &y, /)
log: log(&x, /)
max: ~maths.reduce_max(x>input_tensor, axis, keepdims)
maximum: maximum(&x, &y, /)
mean: ~models.k_mean
min: ~maths.reduce_min(x>input_tensor, axis, keepdims)
minimum: minimum(&x, &y, /)
ndim: ~models.k_ndim
one_hot: ~arrays.one_hot(indices, num_classes>depth)
pow: pow(&x, &a, /)
relu: ~models.relu
reshape: ~arrays.reshape(x>tensor, shape)
round: ~maths.round
set_value: ~models.set_value
shape: ~values.shape(x>input)
sigmoid: sigmoid(&x, /)
sign: sign(&x, /)
softmax: ~models.softmax
softplus: nn.softplus(&x, /)
sqrt: ~models.k_sqrt
square: square(&x, /)
squeeze: squeeze(&x, axis, /)
stack: ~arrays.stack(x>values, axis=0)
std: ~maths.reduce_std(x>input_tensor, axis, keepdims)
stop_gradient: stop_gradient(&variables, /)
sum: ~maths.reduce_sum(x>input_tensor, axis, keepdims)
tanh: tanh(&x, /)
transpose: ~arrays.transpose(x>a)
var: ~maths.reduce_variance(x>input_tensor, axis, keepdims)
variable: Variable(value>initial, /, dtype)
zeros: ~arrays.zeros
zeros_like: ~arrays.zeros_like
ones: ~arrays.ones
ones_like: ~arrays.ones_like
"""
