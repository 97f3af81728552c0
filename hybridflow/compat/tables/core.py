"""The names of ``tf`` itself, those of its dtypes among them."""

NAMES = """
[.]
RaggedTensor: ragged.Ragged
SparseTensor: sparse.COO
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
unravel_index: ~arrays.unravel_index
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
custom_gradient: ~control.custom_gradient
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
string: ~values.string
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
complex64: ~values.complex64
complex128: ~values.complex128
complex: complex(&real, &imag, /)
saturate_cast: ~values.saturate_cast

[dtypes]
DType: ~values.DType
cast: ~values.cast
"""
