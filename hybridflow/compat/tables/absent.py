"""What is not here, room by room, each with what to do instead."""

NAMES = """
math sobol_sample: use scipy.stats.qmc.Sobol
math special: write tf.math.bessel_i0 and the like; others are in scipy.special
math approx_max_k: write tf.math.top_k
math approx_min_k: write tf.math.top_k of -x
linalg eigh_tridiagonal: make the matrix, and use tf.linalg.eigh
linalg banded_triangular_solve: make the matrix, and use tf.linalg.triangular_solve
linalg experimental: there is tf.linalg.solve, and tf.while_loop for iterations of your own
linalg LinearOperatorFullMatrix: operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det
linalg LinearOperatorDiag: operators are matrices here: tf.linalg.diag, or x * diagonal
linalg LinearOperatorIdentity: operators are matrices here: tf.eye
linalg LinearOperatorLowerTriangular: operators are matrices here: tf.linalg.triangular_solve
linalg LinearOperator: operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det
nn embedding_lookup_sparse: write tf.sparse.sparse_dense_matmul of the weights of the rows and the table
nn safe_embedding_lookup_sparse: write tf.sparse.sparse_dense_matmul of the weights of the rows and the table
nn fractional_max_pool: write tf.nn.max_pool2d
nn fractional_avg_pool: write tf.nn.avg_pool2d
nn isotonic_regression: use sklearn.isotonic on x.numpy()
nn RNNCellDropoutWrapper: give dropout to the cells of tf.keras.layers
nn RNNCellResidualWrapper: add the input in a cell of your own
nn RNNCellDeviceWrapper: write with tf.device
image adjust_jpeg_quality: there are no encoders; use Pillow
image random_jpeg_quality: there are no encoders; use Pillow
image stateless_random_jpeg_quality: there are no encoders; use Pillow
image encode_jpeg: there are no encoders; use tf.keras.utils.save_img
image encode_png: there are no encoders; use tf.keras.utils.save_img
image decode_bmp: there are no decoders; use tf.keras.utils.load_img
image decode_gif: there are no decoders; use tf.keras.utils.load_img
image extract_glimpse: write tf.image.crop_and_resize
image sample_distorted_bounding_box: draw a box by tf.random.uniform, and use tf.image.crop_to_bounding_box
image stateless_sample_distorted_bounding_box: draw a box, and use tf.image.crop_to_bounding_box
io encode_jpeg: there are no encoders; use tf.keras.utils.save_img
io encode_png: there are no encoders; use tf.keras.utils.save_img
io encode_base64: there are no tensors of texts; use Python's base64
io decode_base64: there are no tensors of texts; use Python's base64
io decode_compressed: there are no tensors of texts; use Python's zlib
io write_graph: print f.ir() of a tf.function
io parse_sequence_example: use tf.io.parse_single_example with FixedLenSequenceFeature
io parse_single_sequence_example: use tf.io.parse_single_example with FixedLenSequenceFeature
io RaggedFeature: use tf.io.VarLenFeature, and tf.RaggedTensor of what it gives
io SparseFeature: use tf.io.VarLenFeature, and tf.SparseTensor of what it gives
. sets: use Python's sets, tf.unique, or tf.compat.v1.setdiff1d
. queue: use tf.data.Dataset, or Python's queue
. quantization: cast to tf.int8 and back with scales of your own
. xla: functions are always compiled
. profiler: use f.profile(*args) of a tf.function
. graph_util: f.get_concrete_function(...) has the graph
. types: use isinstance with tf.Tensor and tf.Variable
. signature: write input_signature of tf.function
keras.layers AdaptiveAveragePooling2D: give AveragePooling2D the size that leaves so many, or reshape and tf.reduce_mean
keras.layers RandomHeight: write tf.keras.layers.RandomZoom
keras.layers RandomWidth: write tf.keras.layers.RandomZoom
keras.layers ThresholdedReLU: write tf.keras.layers.ReLU(threshold=...)
keras.layers HashedCrossing: compute the numbers of the crossings in Python
keras.layers MelSpectrogram: there are no transforms; compute them with another library into NumPy arrays
keras.layers STFTSpectrogram: there are no transforms; compute them with another library into NumPy arrays
keras.layers TFSMLayer: tf.saved_model.load gives functions that layers may call
keras.utils image_dataset_from_directory: there are no decoders; map tf.keras.utils.load_img over tf.io.gfile.glob(...)
keras.utils text_dataset_from_directory: there are no tensors of texts; read them in Python
keras.utils audio_dataset_from_directory: there are no decoders; read sounds with another library into NumPy arrays
keras.utils FeatureSpace: write the numbers of the columns with tf.keras.layers.Normalization and CategoryEncoding
keras.utils model_to_dot: write tf.keras.utils.plot_model
keras.preprocessing image: use tf.keras.utils.load_img and img_to_array, and layers like tf.keras.layers.RandomFlip
keras.preprocessing text: there are no tensors of texts; turn words into numbers with a dict in Python
keras.preprocessing.sequence TimeseriesGenerator: write tf.keras.utils.timeseries_dataset_from_array
keras wrappers: use scikit-learn's interface with a class of your own around fit and predict
keras.applications MobileNet: write tf.keras.applications.MobileNetV2
keras.applications NASNetMobile: write tf.keras.applications.MobileNetV3Large
distribute TPUStrategy: the devices are the CPU and NVIDIA GPUs; write tf.distribute.MirroredStrategy
distribute MultiWorkerMirroredStrategy: one process computes; write tf.distribute.MirroredStrategy
distribute ParameterServerStrategy: one process computes; write tf.distribute.MirroredStrategy
ragged boolean_mask: write tf.boolean_mask, and tf.RaggedTensor.from_row_lengths
ragged constant_value: write tf.ragged.constant
ragged range: write tf.range of each row, and tf.ragged.constant
ragged stack: write tf.ragged.constant of the rows
ragged stack_dynamic_partitions: write tf.dynamic_partition, and tf.ragged.constant
ragged cross: compute the numbers of the crossings in Python
ragged segment_ids_to_row_splits: write tf.RaggedTensor.from_value_rowids(ids, ids).row_splits
sparse map_values: write x.with_values(f(x.values))
sparse mask: take the rows of x.indices and x.values that are wanted
sparse retain: take the rows of x.indices and x.values that are wanted
sparse slice: write tf.sparse.to_dense(x)[...], or a slice of rows of x.to_csr()
sparse reshape: write tf.sparse.from_dense(tf.reshape(tf.sparse.to_dense(x), shape))
sparse maximum: write tf.maximum of tf.sparse.to_dense
sparse minimum: write tf.minimum of tf.sparse.to_dense
sparse bincount: write tf.math.bincount
sparse cross: compute the numbers of the crossings in Python
sparse split: write slices of rows of x.to_csr()
sparse segment_sum: write tf.math.segment_sum of tf.gather
sparse segment_mean: write tf.math.segment_mean of tf.gather
sparse fill_empty_rows: add the entries to indices and values
sparse to_indicator: write tf.sparse.to_dense of entries of True
. strings: there are no tensors of texts; work on them in Python, and make tensors of the numbers
. lookup: there are no tensors of texts; look them up in a dict, and make tensors of the numbers
. feature_column: features are columns of numbers: tf.data.Dataset.map makes them
. estimator: use tf.keras.Model with fit
. contrib: TensorFlow 1's; use tf.keras
. raw_ops: use the functions of tf, tf.math and tf.nn
. Graph: TensorFlow 1's; it is tf.compat.v1.Graph
. Session: TensorFlow 1's; it is tf.compat.v1.Session
. placeholder: TensorFlow 1's; it is tf.compat.v1.placeholder
. get_variable: TensorFlow 1's; it is tf.compat.v1.get_variable
. global_variables_initializer: TensorFlow 1's; it is tf.compat.v1.global_variables_initializer
. app: TensorFlow 1's; parse arguments with argparse
. flags: TensorFlow 1's; parse arguments with argparse
. mul: write tf.multiply
. sub: write tf.subtract
. div: write tf.divide
. to_float: write tf.cast(x, tf.float32)
. to_int32: write tf.cast(x, tf.int32)
keras.layers TextVectorization: there are no tensors of texts; turn words into numbers with a dict in Python
keras.layers StringLookup: there are no tensors of texts; look them up in a dict, and make tensors of the numbers
keras.layers IntegerLookup: look the numbers up with numpy.searchsorted, and give them to CategoryEncoding
keras.layers Hashing: compute the numbers of the bins in Python
nn ctc_greedy_decoder: take the largest class of each step, and leave out repetitions and blanks in NumPy
nn ctc_beam_search_decoder: nothing decodes with beams; take the largest class of each step
image decode_image: there are no decoders; read pictures with another library into NumPy arrays
image decode_jpeg: there are no decoders; read pictures with another library into NumPy arrays
image decode_png: there are no decoders; read pictures with another library into NumPy arrays
io decode_image: there are no decoders; read pictures with another library into NumPy arrays
io decode_jpeg: there are no decoders; read pictures with another library into NumPy arrays
io decode_png: there are no decoders; read pictures with another library into NumPy arrays
signal mdct: write it with dct of type 4
signal inverse_mdct: write it with dct of type 4
. audio: there are no decoders; read sounds with another library into NumPy arrays
. lite: use tf.saved_model.save
. tpu: the devices are the CPU and NVIDIA GPUs
"""
