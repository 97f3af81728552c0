"""TensorFlow's names, room by room, and what is behind each; ``entries`` says how a line is read.

A room is ``[nn]`` for ``tf.nn``, ``[.]`` for ``tf`` itself; lines below several are in all of them.  ``*: target``
stands for all public names of a module, but for those that have a line of their own.
"""

TABLES = r"""
[.]
Tensor: Tensor
Variable: ~values.Variable
DType: ~values.DType
TensorShape: ~values.TensorShape
TensorSpec: ~values.TensorSpec
TensorArray: ~control.TensorArray
IndexedSlices: ~values.IndexedSlices
Module: ~control.Module
GradientTape: GradientTape
UnconnectedGradients: ~control.UnconnectedGradients
RegisterGradient: ~control.as_it_is
newaxis: newaxis
constant: ~values.constant
convert_to_tensor: ~values.convert_to_tensor
cast: ~values.cast
is_tensor: ~values.is_tensor
get_static_value: ~values.get_static_value
shape: ~values.shape
shape_n: ~values.shape_n
size: ~values.size
rank: ~values.rank
range: ~arrays.range
zeros: ~arrays.zeros
ones: ~arrays.ones
zeros_like: ~arrays.zeros_like
ones_like: ~arrays.ones_like
fill: ~arrays.fill
one_hot: ~arrays.one_hot
reshape: ~arrays.reshape
broadcast_to: ~arrays.broadcast_to
broadcast_static_shape: ~arrays.broadcast_static_shape
broadcast_dynamic_shape: ~arrays.broadcast_dynamic_shape
space_to_batch: ~arrays.space_to_batch
batch_to_space: ~arrays.batch_to_space
histogram_fixed_width: ~arrays.histogram_fixed_width
histogram_fixed_width_bins: ~arrays.histogram_fixed_width_bins
dynamic_partition: ~arrays.dynamic_partition
dynamic_stitch: ~arrays.dynamic_stitch
transpose: ~arrays.transpose
expand_dims: expand_dims(&input, /, axis)
squeeze: ~arrays.squeeze
concat: ~arrays.concat
stack, parallel_stack: ~arrays.stack
unstack: ~arrays.unstack
split: ~arrays.split
tile: ~arrays.tile
repeat: ~arrays.repeat
pad: ~arrays.pad
gather: ~arrays.gather
gather_nd: ~arrays.gather_nd
scatter_nd: ~arrays.scatter_nd
tensor_scatter_nd_add: ~arrays.tensor_scatter_nd_add
tensor_scatter_nd_max: ~arrays.tensor_scatter_nd_max
tensor_scatter_nd_min: ~arrays.tensor_scatter_nd_min
tensor_scatter_nd_sub: ~arrays.tensor_scatter_nd_sub
tensor_scatter_nd_update: ~arrays.tensor_scatter_nd_update
boolean_mask: ~arrays.boolean_mask
slice: ~arrays.slice_
strided_slice: ~arrays.strided_slice
reverse: ~arrays.reverse
roll: ~arrays.roll
where: ~arrays.where
sequence_mask: ~arrays.sequence_mask
unique: ~arrays.unique
unique_with_counts: ~arrays.unique_with_counts
sort: ~arrays.sort
argsort: ~arrays.argsort
searchsorted: ~arrays.searchsorted
meshgrid: ~arrays.meshgrid
ensure_shape: ~arrays.ensure_shape
identity: ~arrays.identity
stop_gradient: stop_gradient(&input, /)
clip_by_value: ~maths.clip_by_value
clip_by_norm: ~linear.clip_by_norm
clip_by_global_norm: ~linear.clip_by_global_norm
matmul: ~linear.matmul
function: ~control.function
custom_gradient: custom_gradient
recompute_grad: recompute_grad
grad_pass_through: ~control.grad_pass_through
map_fn: ~control.map_fn
scan: ~control.scan
foldl: ~control.foldl
foldr: ~control.foldr
while_loop: ~control.while_loop
cond: ~control.cond
case: ~control.case
switch_case: ~control.switch_case
vectorized_map: ~control.vectorized_map
py_function: py_function
numpy_function: numpy_function
print: ~control.print_
Assert: debugging.Assert
name_scope: ~control.name_scope
control_dependencies: ~control.control_dependencies
init_scope: core.context.suspended
group: ~control.group
no_op: ~control.no_op
executing_eagerly: ~control.executing_eagerly
inside_function: ~control.inside_function
device: ~settings.device
constant_initializer: initializers.Constant
ones_initializer: initializers.Ones
zeros_initializer: initializers.Zeros
random_normal_initializer: initializers.RandomNormal
random_uniform_initializer: initializers.RandomUniform

[. dtypes]
as_dtype: ~values.as_dtype
bool: ~values.bool_
int8: ~values.int8
int16: ~values.int16
int32: ~values.int32
int64: ~values.int64
uint8: ~values.uint8
uint16: ~values.uint16
uint32: ~values.uint32
uint64: ~values.uint64
half, float16: ~values.float16
bfloat16: ~values.bfloat16
float32: ~values.float32
double, float64: ~values.float64
saturate_cast: ~values.saturate_cast

[dtypes]
DType: ~values.DType
cast: ~values.cast

[. math]
abs: abs(&x, /)
acos: acos(&x, /)
acosh: acosh(&x, /)
add: add(&x, &y, /)
add_n: ~maths.add_n
argmax: ~arrays.argmax
argmin: ~arrays.argmin
asin: asin(&x, /)
asinh: asinh(&x, /)
atan: atan(&x, /)
atan2: atan2(&y, &x, /)
atanh: atanh(&x, /)
cos: cos(&x, /)
cosh: cosh(&x, /)
cumsum: ~maths.cumsum
divide: ~maths.divide
equal: equal(&x, &y, /)
exp: exp(&x, /)
floor: floor(&x, /)
greater: greater(&x, &y, /)
greater_equal: greater_equal(&x, &y, /)
less: less(&x, &y, /)
less_equal: less_equal(&x, &y, /)
logical_and: logical_and(&x, &y, /)
logical_not: logical_not(&x, /)
logical_or: logical_or(&x, &y, /)
maximum: maximum(&x, &y, /)
minimum: minimum(&x, &y, /)
multiply: multiply(&x, &y, /)
negative: negative(&x, /)
not_equal: not_equal(&x, &y, /)
pow: pow(&x, &y, /)
reduce_all: ~maths.reduce_all
reduce_any: ~maths.reduce_any
reduce_logsumexp: ~maths.reduce_logsumexp
reduce_max: ~maths.reduce_max
reduce_mean: ~maths.reduce_mean
reduce_min: ~maths.reduce_min
reduce_prod: ~maths.reduce_prod
reduce_sum: ~maths.reduce_sum
round: ~maths.round
scalar_mul: multiply(&scalar, &x, /)
sigmoid: ~maths.sigmoid
sign: sign(&x, /)
sin: sin(&x, /)
sinh: sinh(&x, /)
sqrt: sqrt(&x, /)
square: square(&x, /)
subtract: subtract(&x, &y, /)
tan: tan(&x, /)
tanh: tanh(&x, /)
truediv: ~maths.divide

[.]
truncatediv: ~maths.truncatediv
truncatemod: ~maths.truncatemod

[. math]
floordiv: floor_divide(&x, &y, /)

[math]
lgamma: ~special.lgamma(&x, /)
digamma: ~special.digamma(&x, /)
erfc: ~special.erfc(&x, /)
erfinv: ~special.erfinv(&x, /)
erfcinv: ~special.erfcinv(&x, /)
ndtri: ~special.ndtri(&x, /)
xlog1py: ~special.xlog1py(&x, &y, /)
lbeta: ~special.lbeta
bessel_i0: ~special.bessel_i0
bessel_i0e: ~special.bessel_i0e
bessel_i1: ~special.bessel_i1
bessel_i1e: ~special.bessel_i1e
cumulative_logsumexp: ~special.cumulative_logsumexp
segment_max: ~maths.segment_max
segment_min: ~maths.segment_min
segment_prod: ~maths.segment_prod
unsorted_segment_max: ~maths.unsorted_segment_max
unsorted_segment_min: ~maths.unsorted_segment_min
unsorted_segment_prod: ~maths.unsorted_segment_prod
unsorted_segment_sqrt_n: ~maths.unsorted_segment_sqrt_n
floormod, mod: remainder(&x, &y, /)
accumulate_n: ~maths.add_n
approximate_equal: ~maths.approximate_equal
bincount: ~maths.bincount
ceil: ceil(&x, /)
confusion_matrix: ~maths.confusion_matrix
conj: conj(&x, /)
count_nonzero: ~maths.count_nonzero
cumprod: ~maths.cumprod
divide_no_nan: ~maths.divide_no_nan
erf: erf(&x, /)
expm1: expm1(&x, /)
imag: imag(&input, /)
in_top_k: ~maths.in_top_k
invert_permutation: ~arrays.invert_permutation
is_finite: isfinite(&x, /)
is_inf: isinf(&x, /)
is_nan: isnan(&x, /)
is_non_decreasing: ~maths.is_non_decreasing
is_strictly_increasing: ~maths.is_strictly_increasing
l2_normalize: ~maths.l2_normalize
log: log(&x, /)
log1p: log1p(&x, /)
log_sigmoid: nn.log_sigmoid(&x, /)
log_softmax: ~maths.log_softmax
logical_xor: logical_xor(&x, &y, /)
multiply_no_nan: ~maths.multiply_no_nan
nextafter: nextafter(&x1, &x2, /)
polyval: ~maths.polyval
real: real(&input, /)
reciprocal: reciprocal(&x, /)
reciprocal_no_nan: ~maths.reciprocal_no_nan
reduce_euclidean_norm: ~maths.reduce_euclidean_norm
reduce_std: ~maths.reduce_std
reduce_variance: ~maths.reduce_variance
rint: ~maths.round
rsqrt: rsqrt(&x, /)
segment_sum: ~maths.segment_sum
segment_mean: ~maths.segment_mean
softmax: ~maths.softmax
softplus: nn.softplus(&features, /)
softsign: nn.softsign(&features, /)
squared_difference: ~maths.squared_difference
top_k: ~arrays.top_k
unsorted_segment_mean: ~maths.unsorted_segment_mean
unsorted_segment_sum: ~maths.unsorted_segment_sum
xdivy: ~maths.xdivy
xlogy: ~maths.xlogy
zero_fraction: ~maths.zero_fraction

[bitwise]
bitwise_and: bitwise_and(&x, &y, /)
bitwise_or: bitwise_or(&x, &y, /)
bitwise_xor: bitwise_xor(&x, &y, /)
invert: bitwise_invert(&x, /)
left_shift: bitwise_left_shift(&x, &y, /)
right_shift: bitwise_right_shift(&x, &y, /)

[. linalg]
einsum: ~linear.einsum
eye: ~arrays.eye
norm: ~linear.norm
tensordot: ~linear.tensordot

[.]
linspace: ~arrays.linspace

[linalg]
expm: ~linear.expm
lu: ~linear.lu
lu_solve: ~linear.lu_solve
lu_matrix_inverse: ~linear.lu_matrix_inverse
lu_reconstruct: ~linear.lu_reconstruct
tridiagonal_solve: ~linear.tridiagonal_solve
tridiagonal_matmul: ~linear.tridiagonal_matmul
adjoint: ~linear.adjoint
band_part: ~linear.band_part
cholesky: linalg.cholesky(&input, /)
cholesky_solve: ~linear.cholesky_solve
cross: linalg.cross(&a, &b, /)
det: linalg.det(&input, /)
diag: ~linear.diag
diag_part: ~linear.diag_part
eigh: linalg.eigh(&tensor, /)
eigvalsh: linalg.eigvalsh(&tensor, /)
global_norm: ~linear.global_norm
inv: ~linear.inv
l2_normalize: ~maths.l2_normalize
logdet: ~linear.logdet
lstsq: ~linear.lstsq
matmul: ~linear.matmul
matrix_rank: ~linear.matrix_rank
matrix_transpose: matrix_transpose(&a, /, -conjugate)
matvec: ~linear.matvec
normalize: ~linear.normalize
pinv: ~linear.pinv
qr: ~linear.qr
set_diag: ~linear.set_diag
slogdet: linalg.slogdet(&input, /)
solve: ~linear.solve
svd: ~linear.svd
tensor_diag: ~linear.tensor_diag
tensor_diag_part: diagonal(&input, /)
trace: trace(&x, /)
triangular_solve: ~linear.triangular_solve

[nn]
all_candidate_sampler: ~candidates.all_candidate_sampler
fixed_unigram_candidate_sampler: ~candidates.fixed_unigram_candidate_sampler
learned_unigram_candidate_sampler: ~candidates.learned_unigram_candidate_sampler
atrous_conv2d: ~network.atrous_conv2d
convolution: ~network.convolution
conv_transpose: ~network.conv_transpose
conv1d_transpose: ~network.conv1d_transpose
conv3d_transpose: ~network.conv3d_transpose
pool: ~network.pool
max_pool_with_argmax: ~network.max_pool_with_argmax
dilation2d: ~network.dilation2d
erosion2d: ~network.erosion2d
weighted_moments: ~network.weighted_moments
sufficient_statistics: ~network.sufficient_statistics
normalize_moments: ~network.normalize_moments
collapse_repeated: ~network.collapse_repeated
log_poisson_loss: ~special.log_poisson_loss
nce_loss: ~candidates.nce_loss
sampled_softmax_loss: ~candidates.sampled_softmax_loss
avg_pool: ~network.avg_pool
avg_pool1d: ~network.avg_pool1d
avg_pool2d: ~network.avg_pool2d
avg_pool3d: ~network.avg_pool3d
batch_normalization: ~network.batch_normalization
bias_add: ~network.bias_add
compute_average_loss: ~network.compute_average_loss
conv1d: ~network.conv1d
conv2d: ~network.conv2d
conv2d_transpose: ~network.conv2d_transpose
conv3d: ~network.conv3d
crelu: ~network.crelu
ctc_loss: ~network.ctc_loss
depth_to_space: ~arrays.depth_to_space
depthwise_conv2d: ~network.depthwise_conv2d
dropout: ~network.dropout
elu: nn.elu(&features, /)
embedding_lookup: ~network.embedding_lookup
gelu: nn.gelu(&features, /, approximate=False)
in_top_k: ~maths.in_top_k
l2_loss: ~network.l2_loss
l2_normalize: ~maths.l2_normalize
leaky_relu: nn.leaky_relu(&features, /, alpha=0.2)
local_response_normalization, lrn: ~network.local_response_normalization
log_softmax: ~maths.log_softmax
max_pool: ~network.max_pool
max_pool1d: ~network.max_pool1d
max_pool2d: ~network.max_pool2d
max_pool3d: ~network.max_pool3d
moments: ~network.moments
relu: nn.relu(&features, /)
relu6: nn.relu6(&features, /)
scale_regularization_loss: ~network.scale_regularization_loss
selu: nn.selu(&features, /)
separable_conv2d: ~network.separable_conv2d
sigmoid: ~maths.sigmoid
sigmoid_cross_entropy_with_logits: ~network.sigmoid_cross_entropy_with_logits
silu, swish: ~network.silu
softmax: ~maths.softmax
softmax_cross_entropy_with_logits: ~network.softmax_cross_entropy_with_logits
softplus: nn.softplus(&features, /)
softsign: nn.softsign(&features, /)
space_to_depth: ~arrays.space_to_depth
sparse_softmax_cross_entropy_with_logits: ~network.sparse_softmax_cross_entropy_with_logits
tanh: tanh(&x, /)
top_k: ~arrays.top_k
weighted_cross_entropy_with_logits: ~network.weighted_cross_entropy_with_logits
zero_fraction: ~maths.zero_fraction

[random]
Algorithm: ~draws.Algorithm
set_global_generator: ~draws.set_global_generator
create_rng_state: ~draws.create_rng_state
all_candidate_sampler: ~candidates.all_candidate_sampler
fixed_unigram_candidate_sampler: ~candidates.fixed_unigram_candidate_sampler
learned_unigram_candidate_sampler: ~candidates.learned_unigram_candidate_sampler
log_uniform_candidate_sampler: ~candidates.log_uniform_candidate_sampler
uniform_candidate_sampler: ~candidates.uniform_candidate_sampler
stateless_gamma: ~draws.stateless_gamma
stateless_poisson: ~draws.stateless_poisson
stateless_binomial: ~draws.stateless_binomial
Generator: random.Generator
categorical: ~draws.categorical
gamma: ~draws.gamma
get_global_generator: random.global_generator
normal: ~draws.normal
poisson: ~draws.poisson
set_seed: ~draws.set_seed
shuffle: ~draws.shuffle
split: random.split(seed, /, num>count)
fold_in: random.fold_in(seed, data, /)
stateless_categorical: ~draws.stateless_categorical
stateless_normal: ~draws.stateless_normal
stateless_truncated_normal: ~draws.stateless_truncated_normal
stateless_uniform: ~draws.stateless_uniform
truncated_normal: ~draws.truncated_normal
uniform: ~draws.uniform

[random.experimental]
Algorithm: ~draws.Algorithm
set_global_generator: ~draws.set_global_generator
create_rng_state: ~draws.create_rng_state
Generator: random.Generator
get_global_generator: random.global_generator
stateless_shuffle: ~draws.stateless_shuffle
stateless_split: random.split(seed, /, num>count)
stateless_fold_in: random.fold_in(seed, data, /)

[debugging]
assert_proper_iterable: ~control.assert_proper_iterable
assert_same_float_dtype: ~control.assert_same_float_dtype
is_numeric_tensor: ~control.is_numeric_tensor
enable_traceback_filtering, disable_traceback_filtering: ~control.nothing
is_traceback_filtering_enabled: ~settings.yes
get_log_device_placement: ~settings.no
Assert: debugging.Assert
assert_all_finite: debugging.assert_all_finite
assert_equal: debugging.assert_equal
assert_greater: debugging.assert_greater
assert_greater_equal: debugging.assert_greater_equal
assert_integer: ~control.assert_integer
assert_less: debugging.assert_less
assert_less_equal: debugging.assert_less_equal
assert_near: debugging.assert_near
assert_negative: debugging.assert_negative
assert_non_negative: debugging.assert_non_negative
assert_non_positive: debugging.assert_non_positive
assert_none_equal: debugging.assert_none_equal
assert_positive: debugging.assert_positive
assert_rank: debugging.assert_rank
assert_rank_at_least: debugging.assert_rank_at_least
assert_rank_in: debugging.assert_rank_in
assert_scalar: debugging.assert_scalar
assert_shapes: debugging.assert_shapes
assert_type: debugging.assert_type(tensor>x, tf_type>dtype, /, message)
check_numerics: debugging.check_numerics
disable_check_numerics: debugging.disable_check_numerics
enable_check_numerics: debugging.enable_check_numerics
set_log_device_placement: ~control.nothing

[nest]
map_structure: ~control.foreach
flatten: ~control.flatten
pack_sequence_as: ~control.pack_sequence_as
is_nested: ~control.is_nested
assert_same_structure: ~control.assert_same_structure

[config]
LogicalDevice: ~settings.LogicalDevice
PhysicalDevice: ~settings.PhysicalDevice
LogicalDeviceConfiguration: ~settings.Settings
get_logical_device_configuration: ~control.nothing
experimental_functions_run_eagerly: config.functions_run_eagerly
experimental_run_functions_eagerly, run_functions_eagerly: config.run_functions_eagerly(run_eagerly>on, /)
functions_run_eagerly: config.functions_run_eagerly
get_soft_device_placement: ~settings.get_soft_device_placement
set_soft_device_placement: ~settings.set_soft_device_placement
get_visible_devices, list_physical_devices: ~settings.list_physical_devices
list_logical_devices: ~settings.list_logical_devices
set_visible_devices: ~control.nothing
set_logical_device_configuration: ~control.nothing

[config.experimental]
VirtualDeviceConfiguration: ~settings.Settings
get_device_details: ~settings.get_device_details
get_virtual_device_configuration, set_virtual_device_configuration: ~control.nothing
get_synchronous_execution: ~settings.yes
tensor_float_32_execution_enabled: ~settings.no
enable_mlir_bridge, disable_mlir_bridge, set_device_policy: ~control.nothing
get_device_policy: ~settings.get_device_policy
get_memory_info: ~settings.get_memory_info
get_memory_usage: ~settings.get_memory_usage
reset_memory_stats: ~control.nothing
list_physical_devices, get_visible_devices: ~settings.list_physical_devices
list_logical_devices: ~settings.list_logical_devices
set_visible_devices: ~control.nothing
get_memory_growth: ~settings.get_memory_growth
set_memory_growth: ~control.nothing
enable_op_determinism: ~control.nothing
enable_tensor_float_32_execution: ~control.nothing
set_synchronous_execution: ~control.nothing

[config.optimizer]
get_jit: ~settings.get_jit
set_jit: ~control.nothing
set_experimental_options: ~control.nothing

[config.threading]
get_inter_op_parallelism_threads: ~settings.get_inter_op_parallelism_threads
get_intra_op_parallelism_threads: ~settings.get_intra_op_parallelism_threads
set_inter_op_parallelism_threads: ~control.nothing
set_intra_op_parallelism_threads: ~settings.set_intra_op_parallelism_threads

[autodiff]
ForwardAccumulator: ForwardAccumulator
GradientTape: GradientTape

[autograph]
set_verbosity: ~control.nothing
trace: ~control.print_

[autograph.experimental]
do_not_convert: ~control.do_not_convert
set_loop_options: ~control.nothing

[distribute]
NcclAllReduce, HierarchicalCopyAllReduce, ReductionToOneDevice, InputOptions, RunOptions: ~settings.Settings
get_replica_context: ~settings.get_replica_context
OneDeviceStrategy, MirroredStrategy, Strategy: ~settings.Replicas
ReduceOp: ~settings.ReduceOp
InputContext: ~settings.InputContext
get_strategy: ~settings.get_strategy
has_strategy: ~settings.has_strategy
in_cross_replica_context: ~settings.has_strategy

[test]
is_built_with_xla: ~settings.yes
is_built_with_rocm: ~settings.no
is_cpu_target_available: ~settings.yes
compute_gradient: ~control.compute_gradient
TestCase: ~settings.TestCase
main: ~settings.main
gpu_device_name: ~settings.gpu_device_name
is_built_with_cuda, is_built_with_gpu_support: ~settings.is_built_with_cuda
is_gpu_available: ~settings.is_gpu_available

[version]
GIT_VERSION, COMPILER_VERSION: ~settings.VERSION
VERSION: ~settings.VERSION

[image]
crop_and_resize: ~boxes.crop_and_resize
combined_non_max_suppression: ~boxes.combined_non_max_suppression
non_max_suppression: ~boxes.non_max_suppression
non_max_suppression_overlaps: ~boxes.non_max_suppression_overlaps
non_max_suppression_padded: ~boxes.non_max_suppression_padded
non_max_suppression_with_scores: ~boxes.non_max_suppression_with_scores
draw_bounding_boxes: ~boxes.draw_bounding_boxes
rgb_to_yiq: ~images.rgb_to_yiq
rgb_to_yuv: ~images.rgb_to_yuv
yiq_to_rgb: ~images.yiq_to_rgb
yuv_to_rgb: ~images.yuv_to_rgb
ssim: ~images.ssim
ssim_multiscale: ~images.ssim_multiscale
flip_left_right: ~images.flip_left_right
flip_up_down: ~images.flip_up_down
random_flip_left_right: ~images.random_flip_left_right
random_flip_up_down: ~images.random_flip_up_down
transpose: ~images.transpose
rot90: ~images.rot90
crop_to_bounding_box: ~images.crop_to_bounding_box
pad_to_bounding_box: ~images.pad_to_bounding_box
resize_with_crop_or_pad: ~images.resize_with_crop_or_pad
resize_with_pad: ~images.resize_with_pad
central_crop: ~images.central_crop
random_crop: ~images.random_crop
rgb_to_grayscale: ~images.rgb_to_grayscale
grayscale_to_rgb: ~images.grayscale_to_rgb
convert_image_dtype: ~images.convert_image_dtype
adjust_brightness: ~images.adjust_brightness
adjust_contrast: ~images.adjust_contrast
adjust_gamma: ~images.adjust_gamma
random_brightness: ~images.random_brightness
random_contrast: ~images.random_contrast
adjust_hue: ~images.adjust_hue
adjust_saturation: ~images.adjust_saturation
hsv_to_rgb: ~images.hsv_to_rgb
rgb_to_hsv: ~images.rgb_to_hsv
random_hue: ~images.random_hue
random_saturation: ~images.random_saturation
sobel_edges: ~images.sobel_edges
stateless_random_brightness: ~images.stateless_random_brightness
stateless_random_contrast: ~images.stateless_random_contrast
stateless_random_crop: ~images.stateless_random_crop
stateless_random_flip_left_right: ~images.stateless_random_flip_left_right
stateless_random_flip_up_down: ~images.stateless_random_flip_up_down
stateless_random_hue: ~images.stateless_random_hue
stateless_random_saturation: ~images.stateless_random_saturation
per_image_standardization: ~images.per_image_standardization
resize: ~images.resize
ResizeMethod: ~images.ResizeMethod
total_variation: ~images.total_variation
image_gradients: ~images.image_gradients
psnr: ~images.psnr
extract_patches: ~images.extract_patches

[summary]
create_noop_writer: ~settings.create_noop_writer
trace_on, trace_off, trace_export: ~control.nothing
*: summary

[errors]
OK: ~settings.OK
CANCELLED: ~settings.CANCELLED
UNKNOWN: ~settings.UNKNOWN
INVALID_ARGUMENT: ~settings.INVALID_ARGUMENT
DEADLINE_EXCEEDED: ~settings.DEADLINE_EXCEEDED
NOT_FOUND: ~settings.NOT_FOUND
ALREADY_EXISTS: ~settings.ALREADY_EXISTS
PERMISSION_DENIED: ~settings.PERMISSION_DENIED
UNAUTHENTICATED: ~settings.UNAUTHENTICATED
RESOURCE_EXHAUSTED: ~settings.RESOURCE_EXHAUSTED
FAILED_PRECONDITION: ~settings.FAILED_PRECONDITION
ABORTED: ~settings.ABORTED
OUT_OF_RANGE: ~settings.OUT_OF_RANGE
UNIMPLEMENTED: ~settings.UNIMPLEMENTED
INTERNAL: ~settings.INTERNAL
UNAVAILABLE: ~settings.UNAVAILABLE
DATA_LOSS: ~settings.DATA_LOSS
OperatorNotAllowedInGraphError: errors.TraceError
OpError, FailedPreconditionError, UnknownError: errors.HybridflowError
InvalidArgumentError: errors.OperandError
InternalError: errors.CompileError
DataLossError: errors.DataError
AbortedError, CancelledError, UnavailableError: errors.WorkerError
AlreadyExistsError: ~settings.FileExistsError
DeadlineExceededError: ~settings.TimeoutError
NotFoundError: ~settings.FileNotFoundError
OutOfRangeError: ~settings.StopIteration
PermissionDeniedError, UnauthenticatedError: ~settings.PermissionError
ResourceExhaustedError: ~settings.MemoryError
UnimplementedError: ~settings.NotImplementedError

[train]
ExponentialMovingAverage: ~averages.ExponentialMovingAverage
CheckpointOptions: ~settings.Settings
get_checkpoint_state: ~files.get_checkpoint_state
checkpoints_iterator: ~files.checkpoints_iterator
Checkpoint: ~files.Checkpoint
CheckpointManager: ~files.CheckpointManager
latest_checkpoint: ~files.latest_checkpoint
list_variables: ~files.list_variables
load_checkpoint: ~files.load_checkpoint
load_variable: ~files.load_variable
BytesList: ~records.BytesList
FloatList: ~records.FloatList
Int64List: ~records.Int64List
Feature: ~records.Feature
Features: ~records.Features
Example: ~records.Example

[saved_model]
contains_saved_model: ~files.contains_saved_model
LoadOptions, SaveOptions: ~settings.Settings
DEFAULT_SERVING_SIGNATURE_DEF_KEY: ~settings.SERVING_DEFAULT
SERVING: ~settings.SERVING
TRAINING: ~settings.TRAINING
save: ~files.save
load: ~files.load

[io]
read_file: ~files.read_file
write_file: ~files.write_file
matching_files: ~files.matching_files
decode_raw: ~files.decode_raw

FixedLenFeature: data.FixedLenFeature
FixedLenSequenceFeature: data.FixedLenSequenceFeature
TFRecordWriter: data.TFRecordWriter
VarLenFeature: data.VarLenFeature
parse_example: data.parse_example
parse_single_example: data.parse_single_example

[io.gfile]
exists: ~files.exists
glob: ~files.matching_files
makedirs, mkdir: ~files.makedirs
isdir: ~files.isdir
listdir: ~files.listdir
rmtree: ~files.rmtree
remove: ~files.remove
GFile: ~files.open_file

[data]
ThreadingOptions: ~settings.Settings
NumpyIterator: data.Iterator
AUTOTUNE: data.AUTOTUNE
INFINITE_CARDINALITY: data.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY: data.UNKNOWN_CARDINALITY
Dataset: ~files.Dataset
Iterator: data.Iterator
Options: data.Options
FixedLengthRecordDataset: data.FixedLengthRecordDataset
TFRecordDataset: data.TFRecordDataset
TextLineDataset: data.TextLineDataset

[data.experimental]
AutoShardPolicy: ~settings.AutoShardPolicy
ExternalStatePolicy: ~settings.ExternalStatePolicy
ThreadingOptions, OptimizationOptions, DistributeOptions, AutotuneOptions: ~settings.Settings
AutotuneAlgorithm: ~settings.AutotuneAlgorithm
dense_to_ragged_batch: ~files.ragged_batch
from_list: ~files.from_list
at: ~files.at
Reducer: ~files.Reducer
group_by_reducer: ~files.group_by_reducer
get_structure: ~files.get_structure
Counter: data.Dataset.counter
CsvDataset: data.CsvDataset
make_csv_dataset: data.make_csv_dataset
AUTOTUNE: data.AUTOTUNE
INFINITE_CARDINALITY: data.INFINITE_CARDINALITY
UNKNOWN_CARDINALITY: data.UNKNOWN_CARDINALITY
RandomDataset: data.Dataset.random
TFRecordWriter: data.TFRecordWriter
cardinality: ~files.cardinality
assert_cardinality: ~files.assert_cardinality
bucket_by_sequence_length: ~files.bucket_by_sequence_length
copy_to_device: ~files.copy_to_device
enumerate_dataset: ~files.enumerate_dataset
get_single_element: ~files.get_single_element
group_by_window: ~files.group_by_window
ignore_errors: ~files.ignore_errors
load: data.Dataset.load
map_and_batch: ~files.map_and_batch
parallel_interleave: ~files.parallel_interleave
prefetch_to_device: ~files.prefetch_to_device
rejection_resample: ~files.rejection_resample
save: data.Dataset.save
scan: ~files.scan
shuffle_and_repeat: ~files.shuffle_and_repeat
snapshot: ~files.snapshot
take_while: ~files.take_while
unbatch: ~files.unbatch
unique: ~files.unique
sample_from_datasets: data.Dataset.sample_from_datasets
choose_from_datasets: data.Dataset.choose_from_datasets


[keras]
Layer: layers.Layer
Loss: losses.Loss
Metric: metrics.Metric
Optimizer: optimizers.Optimizer
Initializer: initializers.Initializer
Regularizer: regularizers.Regularizer
InputSpec: layers.InputSpec
KerasTensor: layers.symbols.Symbol
Variable: ~values.Variable
DTypePolicy: mixed_precision.Policy
name_scope: ~control.name_scope
device: ~settings.device
Input: Input
Model: Model
Sequential: Sequential
version: ~settings.VERSION

[keras.models]
Model: Model
Sequential: Sequential
load_model: models.load_model
save_model: models.save_model
model_from_json: models.model_from_json
clone_model: models.clone_model

[keras.mixed_precision]
DTypePolicy: mixed_precision.Policy
dtype_policy: ~keras_names.dtype_policy
set_dtype_policy: mixed_precision.set_global_policy
*: mixed_precision

[keras.layers]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_layer
Input: Input
add: ~models.merged_add
average: ~models.merged_average
concatenate: ~models.concatenate
dot: ~models.dot
maximum: ~models.merged_maximum
minimum: ~models.merged_minimum
multiply: ~models.merged_multiply
subtract: ~models.merged_subtract
*: layers

[keras.optimizers optimizers keras.optimizers.legacy optimizers.legacy]
serialize: ~keras_names.serialize
deserialize: ~keras_names.deserialize_optimizer
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
l1_l2: regularizers.L1L2(l1=0.01, l2=0.01)

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
get: layers.activations.activation
serialize: layers.activations.name_of_activation
elu: nn.elu(&x, /, alpha)
exponential: exp(&x, /)
gelu: nn.gelu(&x, /, approximate)
hard_sigmoid: nn.hard_sigmoid(&x, /)
hard_silu, hard_swish: nn.hard_swish(&x, /)
leaky_relu: nn.leaky_relu(&x, /, negative_slope>alpha)
linear: layers.activations.linear
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
CustomObjectScope, custom_object_scope: core.configured.custom_objects

[keras.saving]
serialize_keras_object: ~keras_names.serialize_keras_object
deserialize_keras_object: ~keras_names.deserialize_keras_object
get_custom_objects: ~keras_names.get_custom_objects
get_registered_name: ~keras_names.get_registered_name
CustomObjectScope, custom_object_scope: core.configured.custom_objects
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

[keras.ops]
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
allclose: ~keras_ops.allclose
amax: ~maths.reduce_max(x>input_tensor, axis, keepdims)
amin: ~maths.reduce_min(x>input_tensor, axis, keepdims)
append: ~keras_ops.append
associative_scan: ~keras_ops.associative_scan
average: ~keras_ops.average
bincount: ~maths.bincount(x>arr, weights, minlength)
bitwise_and: bitwise_and(&x, &y, /)
bitwise_invert, bitwise_not: bitwise_invert(&x, /)
bitwise_left_shift, left_shift: bitwise_left_shift(&x, &y, /)
bitwise_or: bitwise_or(&x, &y, /)
bitwise_right_shift, right_shift: bitwise_right_shift(&x, &y, /)
bitwise_xor: bitwise_xor(&x, &y, /)
cbrt: ~keras_ops.cbrt
cholesky: linalg.cholesky(&x, /)
conj, conjugate: conj(&x, /)
conv: ~keras_ops.conv
custom_gradient: custom_gradient
deg2rad: ~keras_ops.deg2rad
rad2deg: ~keras_ops.rad2deg
det: linalg.det(&x, /)
diff: ~keras_ops.diff
digitize: ~keras_ops.digitize
eigh: linalg.eigh(&x, /)
empty_like: zeros_like(&x, /, dtype)
erfc: ~special.erfc(&x, /)
erfinv: ~special.erfinv(&x, /)
exp2: ~keras_ops.exp2
fabs: abs(&x, /)
fliplr: ~keras_ops.fliplr
flipud: ~keras_ops.flipud
fmax: ~keras_ops.fmax
fmin: ~keras_ops.fmin
fori_loop: fori_loop
get_item: ~keras_ops.get_item
hard_silu, hard_swish: nn.hard_swish(&x, /)
heaviside: ~keras_ops.heaviside
hstack: ~keras_ops.hstack
vstack: ~keras_ops.vstack
hypot: hypot(&x1, &x2, /)
inner: ~keras_ops.inner
inv: linalg.inv(&x, /)
isin: isin(&x1, &x2, /)
kron: ~keras_ops.kron
logaddexp: logaddexp(&x1, &x2, /)
logdet: ~linear.logdet(x>matrix)
logspace: ~keras_ops.logspace
lstsq: ~linear.lstsq(a>matrix, b>rhs)
matrix_rank: ~linear.matrix_rank(x>a)
max_pool: ~keras_ops.max_pool
average_pool: ~keras_ops.average_pool
median: ~keras_ops.median
quantile: ~keras_ops.quantile
multi_hot: ~keras_ops.multi_hot
nan_to_num: nan_to_num(&x, /)
pinv: linalg.pinv(&x, /)
psnr: ~keras_ops.psnr
qr: ~linear.qr(x>input)
rot90: ~keras_ops.rot90
scan: ~keras_ops.scan
segment_max: ~keras_ops.segment_max
select: ~keras_ops.select
slice_update: ~keras_ops.slice_update
slogdet: linalg.slogdet(&x, /)
solve: ~linear.solve(a>matrix, b>rhs)
solve_triangular: ~keras_ops.solve_triangular
svd: ~keras_ops.svd
switch: ~keras_ops.switch
trapezoid: ~keras_ops.trapezoid
tri: ~keras_ops.tri
trunc: trunc(&x, /)
vectorize: ~keras_ops.vectorize
layer_normalization: ~keras_ops.layer_normalization
rms_normalization: ~keras_ops.rms_normalization
batch_normalization: ~keras_ops.batch_normalization
saturate_cast: ~values.saturate_cast(x>value, dtype)
signbit: signbit(&x, /)
nextafter: nextafter(&x1, &x2, /)
abs, absolute: abs(&x, /)
add: add(&x1, &x2, /)
all: ~maths.reduce_all(x>input_tensor, axis, keepdims)
any: ~maths.reduce_any(x>input_tensor, axis, keepdims)
arange: ~arrays.range(start, stop>limit, step>delta, dtype)
arccos: acos(&x, /)
arccosh: acosh(&x, /)
arcsin: asin(&x, /)
arcsinh: asinh(&x, /)
arctan: atan(&x, /)
arctan2: atan2(&x1, &x2, /)
arctanh: atanh(&x, /)
argmax: argmax(&x, /, axis, keepdims)
argmin: argmin(&x, /, axis, keepdims)
argsort: argsort(&x, /, axis)
array, convert_to_tensor: ~values.convert_to_tensor(x>value, dtype)
broadcast_to: ~arrays.broadcast_to(x>input, shape)
cast: ~values.cast
ceil: ceil(&x, /)
clip: clip(&x, &x_min, &x_max, /)
concatenate: ~arrays.concat(xs>values, axis=0)
cond: ~control.cond(pred, true_fn, false_fn)
convert_to_numpy: ~values.array_of(x>value)
copy: positive(&x, /)
cos: cos(&x, /)
cosh: cosh(&x, /)
count_nonzero: ~maths.count_nonzero(x>input, axis)
cross: linalg.cross(&x1, &x2, /)
ctc_loss: ~keras_ops.ctc_loss
cumprod: cumulative_prod(&x, /, axis)
cumsum: cumulative_sum(&x, /, axis)
diag: ~linear.diag(x>diagonal)
diagonal: diagonal(&x, /)
divide, true_divide: ~maths.divide(x1>x, x2>y)
divide_no_nan: ~maths.divide_no_nan(x1>x, x2>y)
dot: ~keras_ops.dot
einsum: ~linear.einsum
elu: nn.elu(&x, /, alpha)
empty, zeros: ~arrays.zeros
equal: equal(&x1, &x2, /)
erf: erf(&x, /)
exp: exp(&x, /)
expand_dims: expand_dims(&x, /, axis)
expm1: expm1(&x, /)
eye: ~arrays.eye(N>num_rows, M>num_columns, dtype)
flip: flip(&x, /, axis)
floor: floor(&x, /)
floor_divide: floor_divide(&x1, &x2, /)
full: full(shape, fill_value, dtype)
full_like: full_like(&x, fill_value, /, dtype)
gelu: nn.gelu(&x, /, approximate=True)
greater: greater(&x1, &x2, /)
greater_equal: greater_equal(&x1, &x2, /)
hard_sigmoid: nn.hard_sigmoid(&x, /)
identity: ~arrays.eye(n>num_rows, dtype)
in_top_k: ~maths.in_top_k
is_tensor: ~values.is_tensor
isclose: isclose(&x1, &x2, /)
isfinite: isfinite(&x, /)
isinf: isinf(&x, /)
isnan: isnan(&x, /)
leaky_relu: nn.leaky_relu(&x, /, negative_slope>alpha=0.2)
less: less(&x1, &x2, /)
less_equal: less_equal(&x1, &x2, /)
linspace: linspace(start, stop, num=50)
log: log(&x, /)
log10: log10(&x, /)
log1p: log1p(&x, /)
log2: log2(&x, /)
log_sigmoid: nn.log_sigmoid(&x, /)
log_softmax: ~maths.log_softmax(x>logits, axis=-1)
logical_and: logical_and(&x1, &x2, /)
logical_not: logical_not(&x, /)
logical_or: logical_or(&x1, &x2, /)
logical_xor: logical_xor(&x1, &x2, /)
logsumexp: ~maths.reduce_logsumexp(x>input_tensor, axis, keepdims)
map: ~control.map_fn(f>fn, xs>elems)
matmul: ~linear.matmul(x1>a, x2>b)
max: ~maths.reduce_max(x>input_tensor, axis, keepdims)
maximum: maximum(&x1, &x2, /)
mean: ~models.k_mean
meshgrid: ~arrays.meshgrid
min: ~maths.reduce_min(x>input_tensor, axis, keepdims)
minimum: minimum(&x1, &x2, /)
mod: remainder(&x1, &x2, /)
moments: ~network.moments(x, axes, keepdims)
moveaxis: moveaxis(&x, source, destination, /)
multiply: multiply(&x1, &x2, /)
ndim: ~models.k_ndim
negative: negative(&x, /)
nonzero: nonzero(&x, /)
norm: ~keras_ops.norm
normalize: ~maths.l2_normalize(x, axis=-1)
not_equal: not_equal(&x1, &x2, /)
one_hot: ~arrays.one_hot(x>indices, num_classes>depth, axis=-1, dtype)
ones: ~arrays.ones
ones_like: ones_like(&x, /, dtype)
outer: linalg.outer(&x1, &x2, /)
pad: ~arrays.pad(x>tensor, pad_width>paddings, mode='constant', constant_values=0)
power: pow(&x1, &x2, /)
prod: ~maths.reduce_prod(x>input_tensor, axis, keepdims)
ravel: ~models.k_flatten
reciprocal: reciprocal(&x, /)
relu: nn.relu(&x, /)
relu6: nn.relu6(&x, /)
repeat: ~arrays.repeat(x>input, repeats, axis)
reshape: ~arrays.reshape(x>tensor, newshape>shape)
roll: roll(&x, shift, /, axis)
round: ~maths.round
rsqrt: rsqrt(&x, /)
scatter: ~arrays.scatter_nd(indices, values>updates, shape)
scatter_update: ~arrays.tensor_scatter_nd_update(inputs>tensor, indices, updates)
searchsorted: ~arrays.searchsorted(sorted_sequence, values, side)
segment_sum: ~keras_ops.segment_sum
selu: nn.selu(&x, /)
shape: ~keras_ops.shape
sigmoid: ~maths.sigmoid
sign: sign(&x, /)
silu, swish: nn.silu(&x, /)
sin: sin(&x, /)
sinh: sinh(&x, /)
size: ~values.size(x>input)
slice: ~arrays.slice_(inputs>input_, start_indices>begin, shape>size)
softmax: ~models.softmax
softplus: nn.softplus(&x, /)
softsign: nn.softsign(&x, /)
sort: ~arrays.sort(x>values, axis=-1)
split: ~keras_ops.split
sqrt: sqrt(&x, /)
square: square(&x, /)
squeeze: ~arrays.squeeze(x>input, axis)
stack: ~arrays.stack(x>values, axis=0)
std: ~maths.reduce_std(x>input_tensor, axis, keepdims)
stop_gradient: stop_gradient(&variable, /)
subtract: subtract(&x1, &x2, /)
sum: ~maths.reduce_sum(x>input_tensor, axis, keepdims)
swapaxes: ~keras_ops.swapaxes
take: ~keras_ops.take
take_along_axis: take_along_axis(&x, &indices, /, axis)
tan: tan(&x, /)
tanh: tanh(&x, /)
tensordot: ~linear.tensordot(x1>a, x2>b, axes=2)
tile: ~arrays.tile(x>input, repeats>multiples)
top_k: ~arrays.top_k(x>input, k)
trace: trace(&x, /)
transpose: ~arrays.transpose(x>a, axes>perm)
tril: tril(&x, /, k)
triu: triu(&x, /, k)
unstack: ~arrays.unstack(x>value, num, axis=0)
var: ~maths.reduce_variance(x>input_tensor, axis, keepdims)
vdot: ~keras_ops.dot
vectorized_map: ~control.vectorized_map(function>fn, elements>elems)
where: ~arrays.where(condition, x1>x, x2>y)
while_loop: ~control.while_loop(cond, body, loop_vars)
zeros_like: zeros_like(&x, /, dtype)
binary_crossentropy: ~models.binary_crossentropy(target>y_true, output>y_pred, from_logits)
categorical_crossentropy: ~models.categorical_crossentropy(target>y_true, output>y_pred, from_logits)
sparse_categorical_crossentropy: ~models.sparse_categorical_crossentropy(target>y_true, output>y_pred, from_logits)

[keras.ops.image]
resize: ~images.resize(images, size, interpolation>method='bilinear')
rgb_to_grayscale: ~images.rgb_to_grayscale
extract_patches: ~keras_ops.extract_patches

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

[sysconfig]
get_build_info: ~settings.get_build_info
"""

ABSENT = """
math betainc: integrate the density, or use scipy.special.betainc on x.numpy()
math igamma: use scipy.special.gammainc on x.numpy()
math igammac: use scipy.special.gammaincc on x.numpy()
math polygamma: tf.math.digamma is there, whose gradient is polygamma(1, x)
math zeta: use scipy.special.zeta on x.numpy()
math angle: there are no complex numbers; tf.atan2(imaginary, real)
math sobol_sample: use scipy.stats.qmc.Sobol
math special: write tf.math.bessel_i0 and the like; others are in scipy.special
math approx_max_k: write tf.math.top_k
math approx_min_k: write tf.math.top_k of -x
linalg eig: values may be complex; for symmetric matrices tf.linalg.eigh, else numpy.linalg.eig on x.numpy()
linalg eigvals: values may be complex; for symmetric matrices tf.linalg.eigvalsh, else numpy.linalg.eigvals on x.numpy()
linalg sqrtm: for symmetric matrices by tf.linalg.eigh, else scipy.linalg.sqrtm on x.numpy()
linalg logm: for symmetric matrices by tf.linalg.eigh, else scipy.linalg.logm on x.numpy()
linalg eigh_tridiagonal: make the matrix, and use tf.linalg.eigh
linalg banded_triangular_solve: make the matrix, and use tf.linalg.triangular_solve
linalg experimental: there is tf.linalg.solve, and tf.while_loop for iterations of your own
linalg LinearOperatorFullMatrix: operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det
linalg LinearOperatorDiag: operators are matrices here: tf.linalg.diag, or x * diagonal
linalg LinearOperatorIdentity: operators are matrices here: tf.eye
linalg LinearOperatorLowerTriangular: operators are matrices here: tf.linalg.triangular_solve
linalg LinearOperator: operators are matrices here: tf.linalg.matmul, tf.linalg.solve, tf.linalg.det
nn embedding_lookup_sparse: there are no sparse tensors; tf.nn.embedding_lookup, and tf.reduce_sum over rows
nn safe_embedding_lookup_sparse: there are no sparse tensors; tf.nn.embedding_lookup, and tf.reduce_sum over rows
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
io serialize_tensor: there are no tensors of texts; use tf.train.Checkpoint, or x.numpy().tobytes()
io parse_tensor: there are no tensors of texts; use numpy.frombuffer
io decode_csv: there are no tensors of texts; use tf.data.experimental.make_csv_dataset
io encode_base64: there are no tensors of texts; use Python's base64
io decode_base64: there are no tensors of texts; use Python's base64
io decode_compressed: there are no tensors of texts; use Python's zlib
io write_graph: print f.ir() of a tf.function
io parse_sequence_example: use tf.io.parse_single_example with FixedLenSequenceFeature
io parse_single_sequence_example: use tf.io.parse_single_example with FixedLenSequenceFeature
io RaggedFeature: there are no ragged tensors; use tf.io.VarLenFeature
io SparseFeature: there are no sparse tensors; use tf.io.VarLenFeature
. sets: there are no sparse tensors; use Python's sets, or tf.unique
. queue: use tf.data.Dataset, or Python's queue
. quantization: cast to tf.int8 and back with scales of your own
. xla: functions are always compiled
. profiler: use f.profile(*args) of a tf.function
. graph_util: f.get_concrete_function(...) has the graph
. types: use isinstance with tf.Tensor and tf.Variable
. experimental: hybridflow itself has NumPy's functions: import hybridflow as hf; hf.sum, hf.linspace
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
keras applications: there are no pretrained models; build the network of tf.keras.layers and load weights of your own
distribute TPUStrategy: the devices are the CPU and NVIDIA GPUs; write tf.distribute.MirroredStrategy
distribute MultiWorkerMirroredStrategy: one process computes; write tf.distribute.MirroredStrategy
distribute ParameterServerStrategy: one process computes; write tf.distribute.MirroredStrategy
. string: there are no tensors of texts; keep them in Python lists or NumPy arrays
. complex64: there are no complex numbers; keep the real and the imaginary part in two tensors
. complex128: there are no complex numbers; keep the real and the imaginary part in two tensors
. complex: there are no complex numbers; keep the real and the imaginary part in two tensors
. RaggedTensor: there are no ragged tensors; pad the rows (tf.data.Dataset.padded_batch) and mask them
. ragged: there are no ragged tensors; pad the rows (tf.data.Dataset.padded_batch) and mask them
. SparseTensor: there are no sparse tensors; use a dense one, or tf.gather and tf.scatter_nd
. sparse: there are no sparse tensors; use a dense one, or tf.gather and tf.scatter_nd
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
keras.utils get_file: nothing is downloaded; give the path of a file that is there
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
. signal: there are no transforms; use numpy.fft on x.numpy()
. audio: there are no decoders; read sounds with another library into NumPy arrays
. lite: use tf.saved_model.save
. tpu: the devices are the CPU and NVIDIA GPUs
"""
