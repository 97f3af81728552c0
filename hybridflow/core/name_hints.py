"""Names that other libraries have for what is here: a table that answers whoever tries them.

``_OF_MODULE`` are those of ``np.``, ``tf.``, ``torch.`` and ``jnp.``, ``_OF_TENSOR`` those of their arrays, others
those of modules below, each with what to write instead; ``docs/names.md`` is made of the same tables.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_OF_MODULE = """
Array: hf.Tensor
Assert: hf.debugging.Assert(condition, data)
ConfigProto: hf.config; there are no sessions to configure
DType: the type of hf.float32: numpy.dtype
DataLoader: hf.data.DataLoader(dataset)
Dataset: hf.data.Dataset
F: hf.nn
Graph: hf.function, or hf.compat.v1.Graph()
Mesh: hf.distribute.make_mesh({"data": 4})
NamedSharding: hf.distribute.NamedSharding(mesh, spec)
Operation: f.ir(*args) of an hf.function, which shows the nodes
P: hf.distribute.P
RaggedTensor: hf.ragged.Ragged(values, row_splits)
Session: hf.compat.v1.Session(), or call the function: operations run at once
ShapeDtypeStruct: hf.TensorSpec(shape, dtype)
SparseTensor: hf.sparse.COO(indices, values, shape)
TensorShape: a tuple of ints, and None in an hf.TensorSpec
UnconnectedGradients: tape.gradient(y, x), which is None where nothing leads from x to y
absolute: hf.abs(x)
acc: hf.mean(hf.argmax(logits, axis=-1) == labels)
activations: hf.nn.relu(x) and its kin, or the name: hf.layers.Dense(8, activation="relu")
ad_checkpoint: hf.recompute_grad(f)
addcdiv: x + value * y / z
addcmul: x + value * y * z
addmm: x + y @ z
allclose: hf.all(hf.isclose(x, y))
amax: hf.max(x, axis)
amin: hf.min(x, axis)
amp: hf.mixed_precision.set_global_policy("mixed_bfloat16")
aot_compile: hf.aot.compile(f, path)
append: hf.concat([x, y])
apply_over_axes: hf.sum(x, axis=(0, 1), keepdims=True) and its kin, which take several axes
arccos: hf.acos(x)
arccosh: hf.acosh(x)
arcsin: hf.asin(x)
arcsinh: hf.asinh(x)
arctan2: hf.atan2(y, x)
arctan: hf.atan(x)
arctanh: hf.atanh(x)
argwhere: hf.stack(hf.nonzero(x), axis=1)
around: hf.round(x)
array: hf.asarray(values)
array_equal: hf.all(hf.equal(x, y))
array_equiv: hf.all(hf.equal(x, y)), which broadcasts
array_split: hf.split(x, sizes, axis)
as_tensor: hf.asarray(values)
asanyarray: hf.asarray(values)
asarray_chkfinite: hf.debugging.check_numerics(x, message)
ascontiguousarray: hf.asarray(values); tensors are contiguous where it matters
asnumpy: x.numpy()
assert_equal: hf.debugging.assert_equal(x, y)
assign: v.assign(value) of an hf.Variable
atleast_1d: hf.reshape(x, x.shape or (1,))
atleast_2d: hf.reshape(x, (1,) * (2 - x.ndim) + x.shape) of up to two axes
atleast_3d: hf.reshape(x, x.shape + (1,) * (3 - x.ndim)) of two or three axes
audio: numpy.fft and wave of Python; hf.summary.audio writes sounds
autocast: hf.mixed_precision.set_global_policy("mixed_bfloat16")
autodiff: hf.GradientTape() or hf.grad(f)
autograd: hf.GradientTape() or hf.grad(f)
autograph: hf.function, which takes Python's statements
backend: hf itself; there is one backend
backends: hf.config, or hf.function(fastmath=True)
baddbmm: x + y @ z
bartlett: 1 - hf.abs(2 * hf.arange(n) / (n - 1) - 1)
batch_to_space: hf.reshape and hf.permute_dims
bernoulli: hf.random.bernoulli(p, shape)
betainc: hf.special.betainc(a, b, x)
betaln: hf.special.betaln(x, y)
bitcast: hf.asarray(x.numpy().view(dtype))
bitwise_not: hf.bitwise_invert(x)
blackman: numpy.blackman(n), and hf.asarray of it
block: hf.concat of hf.concat
block_diag: hf.linalg.block_diag(x, y)
block_until_ready: nothing; results are ready when they are read
bmm: hf.matmul(x, y)
broadcast: hf.broadcast_to(x, shape), or hf.broadcast_arrays(x, y)
broadcast_dynamic_shape: hf.broadcast_shapes(x.shape, y.shape)
bucketize: hf.searchsorted(boundaries, x)
c_: hf.stack([x, y], axis=1)
cartesian_prod: hf.stack([g.flatten() for g in hf.meshgrid(x, y, indexing="ij")], axis=1)
cast: hf.astype(x, dtype) or x.astype(dtype)
cat: hf.concat([x, y], axis=0)
cdist: hf.linalg.vector_norm(x[:, None] - y[None, :], axis=-1)
chain_matmul: hf.matmul, one after another
checkify: hf.debugging.check_numerics(x, message) and its kin, or assert
cholesky: hf.linalg.cholesky(x)
chunk: hf.split(x, parts, axis)
clamp: hf.clip(x, low, high)
clip_by_global_norm: hf.optimizers.clip_by_global_norm(tensors, clip_norm)
clip_by_norm: hf.optimizers.clip_by_norm(x, clip_norm)
clip_by_value: hf.clip(x, low, high)
column_stack: hf.stack([x, y], axis=1)
combinations: itertools.combinations(range(n), 2), and hf.take(x, indices)
common_type: hf.result_type(x, y)
compile: hf.function
compress: hf.boolean_mask(x, condition, axis=axis)
concatenate: hf.concat([x, y], axis=0)
conjugate: hf.conj(x)
constant_initializer: hf.initializers.Constant(value)
control_dependencies: nothing; effects and assignments run in the order in which they are written
convert_element_type: hf.astype(x, dtype)
convert_to_tensor: hf.asarray(values)
copy: x.copy()
copyto: y[...] = x
cosine_similarity: hf.sum(hf.nn.l2_normalize(x, -1) * hf.nn.l2_normalize(y, -1), axis=-1)
cpu: x.to_device("cpu")
cross: hf.linalg.cross(x, y)
cuda: hf.device("gpu:0")
cumprod: hf.cumulative_prod(x, axis)
cumsum: hf.cumulative_sum(x, axis)
custom_jvp: hf.custom_gradient
custom_vjp: hf.custom_gradient
datasets: hf.data.Dataset of files of your own; no data comes with it
debug: hf.debugging, or hf.print(x)
default_backend: hf.list_devices()
default_rng: hf.random.Generator(seed)
degrees: x * (180 / hf.pi)
delete: hf.concat([x[:i], x[i + 1:]])
depth_to_space: hf.reshape and hf.permute_dims
det: hf.linalg.det(x)
device_count: len(hf.list_devices())
device_get: x.numpy()
device_put: x.to_device(device)
devices: hf.list_devices()
diag_embed: x[..., None] * hf.eye(x.shape[-1])
diag_indices: i = hf.arange(n), and x[i, i]
diag_indices_from: i = hf.arange(x.shape[0]), and x[i, i]
diagflat: hf.diag(x.flatten())
digamma: hf.special.digamma(x)
disable_jit: hf.config.run_functions_eagerly(True)
dist: hf.linalg.vector_norm(x - y)
distributed: hf.distribute
distributions: hf.random.normal(shape) and its kin; no densities come with it
divide_no_nan: hf.where(y == 0, 0.0, x / hf.where(y == 0, 1.0, y))
dot: x.dot(y) or x @ y
dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value), heads before steps
double: x.astype(hf.float64)
dropout: hf.nn.dropout(x, rate)
dsplit: hf.split(x, parts, axis=2)
dstack: hf.stack([x, y], axis=2)
dtype: numpy.dtype, or x.dtype
dtypes: hf.float32, hf.int64 and so on
dynamic_partition: x[parts == k] for each k
dynamic_slice: x[i:i + n]
dynamic_stitch: y = hf.zeros(shape) and y[indices] = values
dynamic_update_slice: y = x.copy() and y[i:i + n] = values
edit_distance: Python, in an hf.py_function
eigh: hf.linalg.eigh(x)
einops: hf.einsum(text, x, y), or hf.reshape and hf.permute_dims
einsum_path: hf.einsum(text, x, y)
enable_eager_execution: nothing; operations run at once
enable_grad: nothing; what runs inside an hf.GradientTape is recorded
enable_x64: nothing; hf.float64 and hf.int64 are there without it
ensure_compile_time_eval: NumPy, whose values are known while a function is traced
ensure_shape: x itself, with hf.debugging.assert_shapes([(x, shape)])
erfc: hf.special.erfc(x)
erfinv: hf.special.erfinv(x)
errstate: hf.debugging.enable_check_numerics(), or numpy.errstate; floats become NaN and infinity in silence
estimator: hf.Model and its fit
euler_gamma: numpy.euler_gamma
eval_shape: f.get_concrete_function(*specs) of an hf.function
executing_eagerly: hf.config.functions_run_eagerly()
experimental: hf itself; nothing is set apart as experimental but hf.summary.experimental
export: hf.saved.save(f, path)
export_onnx: hf.onnx.save(f, path)
extract: hf.boolean_mask(x, condition)
fabs: hf.abs(x)
feature_column: hf.layers.CategoryEncoding and its kin
fill: hf.full(shape, value)
fill_diagonal: y = x.copy() and y[i, i] = value for i = hf.arange(n)
finite_difference: hf.grad(f)
fix: hf.trunc(x)
flatnonzero: hf.nonzero(x.flatten())[0]
flatten: x.flatten()
fliplr: hf.flip(x, axis=1)
flipud: hf.flip(x, axis=0)
float0: nothing; integers have no derivative, which is None
float: hf.float32, hf.float64
floordiv: hf.floor_divide(x, y)
from_numpy: hf.asarray(array)
frombuffer: hf.asarray(numpy.frombuffer(buffer, dtype))
fromfile: hf.asarray(numpy.fromfile(path, dtype))
fromfunction: f(*hf.meshgrid(hf.arange(n), hf.arange(m), indexing="ij"))
fromiter: hf.asarray(list(values))
frompyfunc: hf.vmap(f) of tensors, or hf.numpy_function
fromstring: hf.asarray(numpy.fromstring(text, sep=" "))
func: hf itself: hf.grad, hf.vmap, hf.jvp, hf.vjp
functional: hf.nn
gamma: hf.special.gamma(x), or hf.random.gamma(shape, alpha)
gammaln: hf.special.gammaln(x)
gelu: hf.nn.gelu(x)
genfromtxt: hf.asarray(numpy.genfromtxt(file))
geomspace: hf.exp(hf.linspace(hf.log(start), hf.log(stop), num))
ger: hf.outer(x, y)
get_default_device: the device of the innermost hf.device(name), else "cpu"
get_default_graph: hf.compat.v1.get_default_graph()
get_logger: HF_LOG, or logging.getLogger("hybridflow")
get_num_threads: hf.config.get_num_threads()
get_printoptions: numpy.get_printoptions()
global_norm: hf.optimizers.global_norm(tensors)
global_variables_initializer: nothing; variables start with their values
gpu: hf.device("gpu:0")
gradients: hf.GradientTape() or hf.grad(f)
group: nothing; effects run in the order in which they are written
half: x.astype(hf.float16)
hamming: hf.signal.hamming_window(n, periodic=False)
hanning: hf.signal.hann_window(n, periodic=False)
hessians: hf.hessian(f)
histc: hf.histogram(x, bins)
histogram2d: hf.histogramdd([x, y], bins)
histogram_bin_edges: hf.histogram(x, bins).edges
histogram_fixed_width: hf.histogram(x, bins, range)
hsplit: hf.split(x, parts, axis=1)
hstack: hf.concat([x, y], axis=1)
hub: a model of hf.layers; no trained models come with it
i0: hf.special.i0(x)
identity: hf.eye(n), or x.copy()
image: hf.layers.Resizing(height, width) and its kin, or hf.compat.tf.image
in1d: hf.isin(x, values)
index_add: hf.scatter_add(x, indices, updates, axis)
index_copy: y = x.copy() and y[indices] = values
index_exp: slices and tuples, as they are: x[1:, None]
index_fill: y = x.copy() and y[indices] = value
index_put: y = x.copy() and y[indices] = values
index_select: hf.take(x, indices, axis)
indices: hf.meshgrid(hf.arange(n), hf.arange(m), indexing="ij")
inference_mode: nothing; only what runs inside an hf.GradientTape is recorded
init_scope: nothing; make what is to live on outside of the function
inner: hf.tensordot(x, y, axes=((-1,), (-1,)))
insert: hf.concat([x[:i], values, x[i:]])
int: hf.int32, hf.int64
intersect1d: u = hf.unique_values(x), and u[hf.isin(u, y)]
inv: hf.linalg.inv(x)
invert: hf.bitwise_invert(x)
io: hf.data, hf.saved, hf.checkpoint
io_callback: hf.py_function(f, arguments, specs)
iota: hf.arange(n)
is_available: hf.list_devices()
is_complex: hf.isdtype(x.dtype, "complex floating")
is_floating_point: hf.isdtype(x.dtype, "real floating")
is_tensor: isinstance(x, hf.Tensor)
iscomplex: hf.imag(x) != 0
iscomplexobj: hf.isdtype(x.dtype, "complex floating")
isreal: hf.imag(x) == 0
isrealobj: not hf.isdtype(x.dtype, "complex floating")
isscalar: x.ndim == 0
issubdtype: hf.isdtype(x.dtype, "real floating") and its kin
jit: hf.function
jnp: hf itself; its functions carry the names of the array API standard
kaiser: hf.signal.kaiser_window(n, beta)
keras: hf.layers, hf.optimizers, hf.losses, hf.initializers
kthvalue: hf.sort(x, axis)[..., k - 1]
lax: hf itself: hf.scan, hf.while_loop, hf.cond, hf.fori_loop
leaky_relu: hf.nn.leaky_relu(x)
left_shift: hf.bitwise_left_shift(x, y)
lerp: x + weight * (y - x)
lgamma: hf.special.gammaln(x)
load: numpy.load(file)
loadtxt: hf.asarray(numpy.loadtxt(file))
local_devices: hf.list_devices()
log_compiles: HF_LOG=retrace, or f.retraces()
log_softmax: hf.nn.log_softmax(x, axis)
logaddexp2: hf.logaddexp(x * log2, y * log2) / log2 with log2 = math.log(2)
logcumsumexp: hf.cumlogsumexp(x, axis)
logit: hf.special.logit(x)
logspace: 10.0 ** hf.linspace(start, stop, num)
long: x.astype(hf.int64)
lstsq: hf.linalg.lstsq(a, b)
make_jaxpr: f.ir(*args) of an hf.function
make_tensor_proto: hf.checkpoint.save_arrays(path, {"x": x})
manual_seed: hf.random.set_seed(seed)
mask_indices: hf.nonzero(mask)
masked_fill: hf.where(mask, value, x), or x[mask] = value
masked_scatter: y = x.copy() and y[mask] = values
masked_select: x[mask], or hf.boolean_mask(x, mask)
math: hf itself: hf.exp(x), hf.log(x) ...
matvec: x @ y
may_share_memory: nothing; a tensor never changes with another one
memmap: hf.data.NumpyDataset(path), or hf.asarray(numpy.memmap(path)[i:j])
min_scalar_type: numpy.min_scalar_type(value)
mm: x @ y
mod: hf.remainder(x, y)
mode: u = hf.unique_counts(x), and u.values[hf.argmax(u.counts)]
movedim: hf.moveaxis(x, source, destination)
mps: the CPU; there is no code for Apple's GPUs
msort: hf.sort(x, axis=0)
mul: hf.multiply(x, y)
multinomial: hf.random.categorical(logits, shape)
mv: x @ y
mvlgamma: hf.special.multigammaln(x, p)
name_scope: name=..., where something takes a name
named_call: a function of Python; f.profile names the lines
named_scope: a function of Python; f.profile names the lines
narrow: x[:, start:start + length]
ndarray: hf.Tensor
ndenumerate: numpy.ndenumerate(x.numpy())
ndim: x.ndim
ndindex: numpy.ndindex(*x.shape)
nditer: a loop over x.numpy(), or hf.vmap(f)
neg: hf.negative(x)
nest: hf.tree
no_grad: nothing; only what runs inside an hf.GradientTape is recorded
no_op: nothing; effects run in the order in which they are written
norm: hf.linalg.norm(x, axis=axis)
np: hf itself; its functions carry the names of the array API standard
npz: hf.data.NumpyDataset(path), or hf.checkpoint.load_arrays(path)
numel: x.size
numpy: x.numpy()
object_: lists of Python; tensors hold numbers
ones_initializer: hf.initializers.Ones()
ops: hf itself: hf.exp(x), hf.matmul(x, y)
optim: hf.optimizers
parallel: hf.distribute.MirroredStrategy(replicas=n)
parallel_stack: hf.stack([x, y], axis=0)
pdist: hf.linalg.vector_norm(x[:, None] - x[None, :], axis=-1)
permute: hf.permute_dims(x, axes)
pinned_memory: dataset.prefetch_to_device("gpu:0"), which sends elements from pinned memory
pinv: hf.linalg.pinv(x)
pjit: hf.function, and hf.distribute.shard_map inside
place: y = x.copy() and y[mask] = values
placeholder: an argument of an hf.function
placeholder_with_default: an argument of an hf.function
pmap: hf.distribute.shard_map(f, mesh=mesh, in_specs=..., out_specs=...)
polar: hf.complex(r * hf.cos(angle), r * hf.sin(angle))
poly1d: numpy.poly1d, or hf.sum(c * x[:, None] ** hf.arange(c.size), axis=1)
poly: functools.reduce(hf.convolve, [hf.stack([1, -r]) for r in roots])
polyadd: p + q of one length; hf.pad puts zeros in front
polyder: p[:-1] * hf.arange(p.size - 1, 0, -1)
polydiv: numpy.polydiv(p, q)
polygamma: hf.special.polygamma(n, x)
polyint: hf.concat([p / hf.arange(p.size, 0, -1), hf.zeros(1)])
polymul: hf.convolve(p, q)
polysub: p - q of one length; hf.pad puts zeros in front
preprocessing: hf.data and hf.layers
printoptions: numpy.printoptions(...), which tensors follow
profiler: f.profile(*args) of an hf.function
promote_types: hf.result_type(t, u)
pure_callback: hf.numpy_function(f, arguments, spec, stateful=False)
put: y = x.copy() and y[indices] = values
putmask: hf.where(mask, values, x)
pytree: hf.tree
qr: hf.linalg.qr(x)
quantization: hf.quantize
quantize_dynamic: hf.quantize.dynamic(model)
fake_quant_with_min_max_args: hf.quantize.fake_quantize(x, scale, zero_point)
from_torch: hf.from_dlpack(tensor)
r_: hf.concat([x, y], axis=0)
radians: x * (hf.pi / 180)
rand: hf.random.uniform(shape)
randint: hf.random.randint(shape, low, high)
randn: hf.random.normal(shape)
random_normal: hf.random.normal(shape)
random_split: dataset.take(n) and dataset.skip(n)
random_uniform: hf.random.uniform(shape)
random_uniform_initializer: hf.initializers.RandomUniform(low, high)
range: hf.arange(start, stop, step)
rank: x.ndim
ravel: x.flatten()
real_if_close: hf.real(x)
rearrange: hf.reshape and hf.permute_dims, or hf.einsum(text, x)
reduce_all: hf.all(x, axis)
reduce_any: hf.any(x, axis)
reduce_bitwise_or: hf.associative_scan(hf.bitwise_or, x)[-1]
reduce_euclidean_norm: hf.linalg.vector_norm(x, axis=axis)
reduce_logsumexp: hf.logsumexp(x, axis)
reduce_std: hf.std(x, axis)
reduce_variance: hf.var(x, axis)
relu: hf.nn.relu(x)
remat: hf.recompute_grad(f)
repeat_interleave: hf.repeat(x, n, axis)
require: hf.asarray(values)
reset_default_graph: nothing; there is no default graph but that of hf.compat.v1
resize: x.reshape(shape), or hf.layers.Resizing(height, width)
reverse: hf.flip(x, axis)
reverse_sequence: hf.where of positions and lengths, and hf.take_along_axis
right_shift: hf.bitwise_right_shift(x, y)
rint: hf.round(x)
rollaxis: hf.moveaxis(x, axis, start)
row_stack: hf.concat([x, y], axis=0)
rsub: hf.subtract(y, x)
s_: slices and tuples, as they are: x[1:, None]
saturate_cast: hf.clip(x, low, high).astype(dtype)
save: numpy.save(file, x.numpy())
saved_model: hf.saved
savetxt: numpy.savetxt(file, x.numpy())
savez: hf.checkpoint.save_arrays(path, {"x": x})
saving: hf.models.save_model(model, path), hf.models.load_model(path)
scaled_dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value)
scatter: y = x.copy() and y[indices] = values, or hf.scatter_add(x, indices, updates)
scatter_: y = x.copy() and y[indices] = values
scatter_nd: y = hf.zeros(shape) and y[tuple(indices.T)] = updates
scipy: scipy itself, in an hf.numpy_function
sequence_mask: hf.arange(n) < lengths[:, None]
set_default_device: with hf.device("gpu:0"):
set_default_dtype: hf.mixed_precision.set_global_policy("float64") of layers, or dtype=... of what is made
set_grad_enabled: nothing; what runs inside an hf.GradientTape is recorded
set_num_threads: hf.config.set_num_threads(n)
set_printoptions: numpy.set_printoptions(...), which tensors follow
set_seed: hf.random.set_seed(seed)
setdiff1d: u = hf.unique_values(x), and u[~hf.isin(u, y)]
seterr: hf.debugging.enable_check_numerics(), or numpy.seterr; floats become NaN and infinity in silence
setxor1d: hf.unique_values of those of x that are not in y, and the other way round
shape: x.shape
shape_n: [x.shape, y.shape]
shard_map: hf.distribute.shard_map(mesh=mesh, in_specs=..., out_specs=...)
sharding: hf.distribute.NamedSharding(mesh, spec)
shares_memory: nothing; a tensor never changes with another one
silu: hf.nn.silu(x)
sinc: hf.special.sinc(x)
size: x.size
slogdet: hf.linalg.slogdet(x)
softmax: hf.nn.softmax(x, axis)
softmax_cross_entropy: hf.losses.softmax_cross_entropy(labels, logits)
softplus: hf.nn.softplus(x)
solve: hf.linalg.solve(x, y)
sort_complex: hf.sort(x) of real numbers
space_to_batch: hf.reshape and hf.permute_dims
space_to_depth: hf.reshape and hf.permute_dims
spacing: hf.nextafter(hf.abs(x), hf.inf) - hf.abs(x)
stats: hf.random for draws, hf.special.ndtr and its kin for distribution functions
stop_gradients: hf.stop_gradient(x)
str_: lists of Python, or elements of hf.data.Dataset; tensors hold numbers
strategy: hf.distribute.MirroredStrategy()
sub: hf.subtract(x, y)
svd: hf.linalg.svd(x)
swapaxes: hf.moveaxis(x, source, destination), or x.mT
swish: hf.nn.swish(x)
switch: hf.switch_case(index, functions, *operands)
sysconfig: hybridflow doctor, which says what it was built for
tensor: hf.asarray(values)
tensor_scatter_nd_add: hf.scatter_add(x, indices, updates)
tensor_scatter_nd_update: y = x.copy() and y[indices] = updates
tensor_split: hf.split(x, sizes, axis)
test: pytest, with hf.debugging.assert_near(x, y)
tf: import hybridflow.compat.tf as tf
to: x.to_device(device)
to_numpy: x.numpy()
to_tensor: hf.asarray(values)
topk: hf.top_k(x, k)
tpu: the CPU or "gpu:0"; there is no code for TPUs
train: hf.checkpoint, hf.optimizers
trainer: hf.Model and its fit
transfer_guard: nothing; copies are never made unasked, and f.explain lists them
transpose: hf.permute_dims(x, axes), x.T of a matrix, or x.transpose(axes)
trapz: hf.sum((y[1:] + y[:-1]) * hf.diff(x)) / 2
tree_map: hf.tree.map(f, tree)
tree_util: hf.tree
tril_indices: hf.nonzero(hf.tril(hf.ones((n, n))))
tril_indices_from: hf.nonzero(hf.tril(hf.ones(x.shape)))
trim_zeros: numpy.trim_zeros(x.numpy())
triu_indices: hf.nonzero(hf.triu(hf.ones((n, n))))
triu_indices_from: hf.nonzero(hf.triu(hf.ones(x.shape)))
true_divide: hf.divide(x, y)
truncatediv: hf.trunc(x / y)
truncatemod: x - y * hf.trunc(x / y)
tuple: nothing; effects run in the order in which they are written
types: hf.TensorSpec, hf.Tensor and hf.Variable
unbind: hf.unstack(x, axis=0)
union1d: hf.unique_values(hf.concat([x.flatten(), y.flatten()]))
unsorted_segment_sum: hf.segment_sum(x, segments, n)
unsqueeze: hf.expand_dims(x, axis)
utils: hf.data
variable: hf.Variable(value)
variable_scope: hf.Module, whose attributes are its variables
vdot: hf.vecdot(x.ravel(), y.ravel())
vecmat: hf.matmul(x, y)
vectorize: hf.vmap(f)
version: hf.__version__
view_as_real: hf.stack([hf.real(x), hf.imag(x)], axis=-1)
vsplit: hf.split(x, parts, axis=0)
vstack: hf.concat([x, y], axis=0)
where_v2: hf.where(condition, x, y)
xla: hf.function, which compiles by itself
xlogy: hf.special.xlogy(x, y)
zero_grad: nothing; each hf.GradientTape starts from zero
zeros_initializer: hf.initializers.Zeros()
"""

_OF_TENSOR = """
abs: abs(x) or hf.abs(x)
add_: x + y; tensors are values
addmm: x + y @ z
addressable_data: x itself; a tensor lies on one device
allclose: hf.all(hf.isclose(x, y))
apply: hf.numpy_function(f, [x], x.dtype)
apply_: hf.numpy_function(f, [x], x.dtype)
assign: v.assign(value) of an hf.Variable v, or v[index] = value for a part of it
assign_add: v.assign_add(value) of an hf.Variable v, or v[index] += value for a part of it
assign_sub: v.assign_sub(value) of an hf.Variable v, or v[index] -= value for a part of it
at: y = x.copy() and y[indices] = value, or hf.scatter_add(x, indices, updates)
backward: an hf.GradientTape and tape.gradient(loss, variables), or hf.grad(f)
base: nothing; tensors are values
bfloat16: x.astype(hf.bfloat16)
bincount: hf.bincount(x)
block_until_ready: nothing; results are ready when they are returned
bmm: x @ y
bool: x.astype(hf.bool_)
byte: x.astype(hf.uint8)
byteswap: hf.asarray(x.numpy().byteswap())
cholesky: hf.linalg.cholesky(x)
choose: hf.take_along_axis(hf.stack(choices), x[None], axis=0)[0]
chunk: hf.split(x, parts, axis)
clamp: x.clip(low, high)
clone: x.copy()
coalesce: x itself; an hf.IndexedSlices adds up rows when it is read
compress: hf.boolean_mask(x, condition)
contiguous: x itself; tensors are contiguous where it matters
copy_: v.assign(value) of an hf.Variable v, or y = x.copy()
cpu: x.to_device("cpu")
cuda: x.to_device("gpu:0")
cummax: hf.cummax(x, axis)
cumprod: hf.cumulative_prod(x, axis)
data: x itself
data_ptr: x.numpy().ctypes.data of the CPU, or x.__dlpack__()
delete: nothing; memory is free when nobody refers to it, or give an argument up by donate_argnums
det: hf.linalg.det(x)
detach: hf.stop_gradient(x)
devices: x.device
dim: x.ndim
div: x / y
div_: x / y; tensors are values
double: x.astype(hf.float64)
dump: numpy.save(file, x.numpy())
element_size: x.dtype.itemsize
eq: x == y
eval: x.numpy()
expand: hf.broadcast_to(x, shape)
expand_as: hf.broadcast_to(x, y.shape)
fill: hf.full_like(x, value)
fill_: hf.full_like(x, value)
flags: nothing; tensors are read-only values
fliplr: hf.flip(x, axis=1)
flipud: hf.flip(x, axis=0)
float: x.astype(hf.float32)
gather: hf.take_along_axis(x, indices, axis)
ge: x >= y
grad: tape.gradient(loss, x) of an hf.GradientTape, or hf.grad(f)
grad_fn: nothing; an hf.GradientTape records
graph: f.ir(*args) of an hf.function
gt: x > y
half: x.astype(hf.float16)
histc: hf.histogram(x, bins)
index_add_: hf.scatter_add(x, indices, updates, axis)
index_fill_: y = x.copy() and y[indices] = value
index_put_: y = x.copy() and y[indices] = values
index_select: hf.take(x, indices, axis)
indices: hf.IndexedSlices has them; a tensor is dense
initializer: v = hf.Variable(value), which starts with its value
int: x.astype(hf.int32)
inverse: hf.linalg.inv(x)
is_contiguous: x itself; tensors are contiguous where it matters
is_cuda: x.device
is_deleted: hf.errors.DonatedError, which reading a tensor that was given up raises
is_leaf: nothing; an hf.GradientTape records
itemsize: x.dtype.itemsize
kthvalue: hf.sort(x, axis)[..., k - 1]
le: x <= y
lerp: x + weight * (y - x)
log_softmax: hf.nn.log_softmax(x, axis)
long: x.astype(hf.int64)
lt: x < y
map_: hf.numpy_function(f, [x], x.dtype)
masked_fill: hf.where(mask, value, x), or x[mask] = value
masked_fill_: x[mask] = value, or hf.where(mask, value, x)
masked_scatter: y = x.copy() and y[mask] = values
masked_select: x[mask], or hf.boolean_mask(x, mask)
median: hf.median(x, axis)
mm: x @ y
mode: u = hf.unique_counts(x), and u.values[hf.argmax(u.counts)]
movedim: hf.moveaxis(x, source, destination)
mul: x * y
mul_: x * y; tensors are values
name: hf.Variable(value, name="w"); tensors have none
narrow: x[:, start:start + length]
nbytes: x.size * x.dtype.itemsize
ndimension: x.ndim
ne: x != y
neg: -x
nelement: x.size
new_full: hf.full(shape, value, dtype=x.dtype)
new_ones: hf.ones(shape, dtype=x.dtype)
new_tensor: hf.asarray(values, dtype=x.dtype)
new_zeros: hf.zeros(shape, dtype=x.dtype)
nonzero: hf.nonzero(x)
norm: hf.linalg.norm(x, axis=axis)
numel: x.size
op: f.ir(*args) of an hf.function, which shows the nodes
partition: hf.sort(x, axis)
permute: x.transpose(axes)
pin_memory: dataset.prefetch_to_device("gpu:0"), which sends elements from pinned memory
pow: x ** y
ptp: x.max() - x.min()
put: y = x.copy() and y[indices] = values
qr: hf.linalg.qr(x)
quantile: hf.quantile(x, q, axis)
read_value: v.value() of an hf.Variable v
register_hook: hf.custom_gradient, which is given each cotangent
relu: hf.nn.relu(x)
repeat_interleave: x.repeat(n, axis)
requires_grad: tape.watch(x) of an hf.GradientTape
requires_grad_: tape.watch(x) of an hf.GradientTape
retain_grad: tape.watch(x) of an hf.GradientTape
scatter: y = x.copy() and y[indices] = values
scatter_: y = x.copy() and y[indices] = values
scatter_add_: hf.scatter_add(x, indices, updates, axis)
scatter_nd_update: y = x.copy() and y[indices] = updates
searchsorted: hf.searchsorted(x, values)
set: y = x.copy() and y[indices] = value
setflags: nothing; tensors are read-only values
sharding: x.device
share_memory_: nothing; threads share tensors
softmax: hf.nn.softmax(x, axis)
sparse_mask: hf.where(mask, x, 0)
split: hf.split(x, parts, axis)
stack: hf.stack([x, y], axis)
storage: x.numpy()
stride: x.numpy().strides
strides: x.numpy().strides
sub: x - y
sub_: x - y; tensors are values
svd: hf.linalg.svd(x)
swapaxes: hf.moveaxis(x, source, destination), or x.mT
swapdims: hf.moveaxis(x, source, destination), or x.mT
t: x.T
to: x.astype(dtype) or x.to_device(device)
to_sparse: hf.sparse.from_dense(x)
tobytes: x.numpy().tobytes()
tofile: x.numpy().tofile(file)
topk: hf.top_k(x, k)
trainable: hf.Variable(value, trainable=True)
type_as: x.astype(y.dtype)
unbind: hf.unstack(x, axis=0)
unflatten: x.reshape(shape)
unfold: x[hf.arange(n)[:, None] + hf.arange(width)] of one axis
unique: hf.unique_values(x)
unsqueeze: hf.expand_dims(x, axis)
value: x itself; v.value() of an hf.Variable v
values: hf.IndexedSlices has them; a tensor is dense
view: x.reshape(shape)
view_as: x.reshape(y.shape)
where: hf.where(condition, x, y)
zero_: hf.zeros_like(x)
"""


def _table(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().splitlines())


_OF_LINALG = """
adjoint: x.mH
band_part: hf.triu(hf.tril(x, upper), -lower)
cho_factor: hf.linalg.cholesky(x)
cho_solve: hf.linalg.cholesky_solve(c, b)
diag: x[..., None] * hf.eye(x.shape[-1])
diag_part: hf.linalg.diagonal(x)
einsum: hf.einsum(text, x, y)
eye: hf.eye(n)
global_norm: hf.optimizers.global_norm(tensors)
householder_product: hf.linalg.qr(x).Q
inverse: hf.linalg.inv(x)
l2_normalize: hf.nn.l2_normalize(x, axis)
logdet: hf.linalg.slogdet(x).logabsdet
matvec: x @ y
multi_dot: hf.matmul, one after another
schur: hf.linalg.eigh(x) of symmetric matrices, or scipy.linalg.schur in an hf.numpy_function
set_diag: y = x.copy() and y[i, i] = values for i = hf.arange(n)
solve_triangular: hf.linalg.triangular_solve(x, y)
tensorinv: hf.linalg.inv of the reshaped matrix
tensorsolve: hf.linalg.solve of the reshaped matrix
"""

_OF_NN = """
AdaptiveAvgPool1d: hf.layers.GlobalAveragePooling1D()
AdaptiveAvgPool2d: hf.layers.GlobalAveragePooling2D()
AlphaDropout: hf.layers.AlphaDropout(rate)
AvgPool1d: hf.layers.AveragePooling1D(size)
AvgPool2d: hf.layers.AveragePooling2D(size)
AvgPool3d: hf.layers.AveragePooling3D(size)
BCELoss: hf.losses.BinaryCrossentropy()
BCEWithLogitsLoss: hf.losses.BinaryCrossentropy(from_logits=True)
BatchNorm1d: hf.layers.BatchNormalization()
BatchNorm2d: hf.layers.BatchNormalization()
BatchNorm3d: hf.layers.BatchNormalization()
Bilinear: hf.einsum("bi,oij,bj->bo", x, w, y) with a weight w
Conv1d: hf.layers.Conv1D(filters, size)
Conv2d: hf.layers.Conv2D(filters, size)
Conv3d: hf.layers.Conv3D(filters, size)
ConvTranspose1d: hf.layers.Conv1DTranspose(filters, size)
ConvTranspose2d: hf.layers.Conv2DTranspose(filters, size)
ConvTranspose3d: hf.layers.Conv3DTranspose(filters, size)
CosineSimilarity: hf.sum(hf.nn.l2_normalize(x, -1) * hf.nn.l2_normalize(y, -1), axis=-1)
CrossEntropyLoss: hf.losses.SparseCategoricalCrossentropy(from_logits=True)
DataParallel: hf.distribute.MirroredStrategy(replicas=n)
Dense: hf.layers.Dense(units)
Dropout: hf.layers.Dropout(rate)
Dropout2d: hf.layers.SpatialDropout2D(rate)
ELU: hf.layers.ELU()
Embedding: hf.layers.Embedding(count, width)
EmbeddingBag: hf.layers.Embedding(count, width), and hf.sum of its result
Flatten: hf.layers.Flatten()
GELU: hf.layers.Activation("gelu")
GLU: x, gate = hf.split(x, 2, axis=-1), and x * hf.sigmoid(gate)
GRU: hf.layers.GRU(units)
GRUCell: hf.layers.GRUCell(units)
GroupNorm: hf.layers.GroupNormalization(groups)
Hardtanh: hf.clip(x, -1, 1)
HuberLoss: hf.losses.Huber()
Identity: hf.layers.Identity()
InstanceNorm2d: hf.layers.GroupNormalization(-1)
KLDivLoss: hf.losses.KLDivergence()
L1Loss: hf.losses.MeanAbsoluteError()
LSTM: hf.layers.LSTM(units)
LSTMCell: hf.layers.LSTMCell(units)
LayerNorm: hf.layers.LayerNormalization()
LeakyReLU: hf.layers.LeakyReLU()
Linear: hf.layers.Dense(units)
LogSoftmax: hf.nn.log_softmax(x, axis)
MSELoss: hf.losses.MeanSquaredError()
MaxPool1d: hf.layers.MaxPooling1D(size)
MaxPool2d: hf.layers.MaxPooling2D(size)
MaxPool3d: hf.layers.MaxPooling3D(size)
Mish: x * hf.tanh(hf.nn.softplus(x))
Module: hf.Module, hf.layers.Layer or hf.Model
ModuleDict: a dict of layers as an attribute
ModuleList: a list of layers as an attribute
MultiheadAttention: hf.layers.MultiHeadAttention(heads, width)
NLLLoss: hf.losses.SparseCategoricalCrossentropy()
PReLU: hf.layers.PReLU()
Parameter: hf.Variable(value)
ParameterList: a list of variables as an attribute
PixelShuffle: hf.reshape and hf.permute_dims
RMSNorm: hf.layers.RMSNormalization()
RNN: hf.layers.SimpleRNN(units)
ReLU: hf.layers.ReLU()
SELU: hf.layers.Activation("selu")
Sequential: hf.Sequential(layers)
SiLU: hf.layers.Activation("silu")
Sigmoid: hf.layers.Activation("sigmoid")
SmoothL1Loss: hf.losses.Huber()
Softmax: hf.layers.Softmax()
Softplus: hf.layers.Activation("softplus")
Tanh: hf.layers.Activation("tanh")
Transformer: layers of hf.layers.MultiHeadAttention and hf.layers.LayerNormalization; examples/ has one
TransformerEncoderLayer: hf.layers.MultiHeadAttention and hf.layers.LayerNormalization; examples/ has one
Unfold: hf.nn.conv2d of an eye for a filter
Upsample: hf.layers.UpSampling2D(size)
ZeroPad2d: hf.layers.ZeroPadding2D(padding)
batch_norm: hf.layers.BatchNormalization()
bias_add: x + bias
binary_cross_entropy: hf.losses.BinaryCrossentropy()(labels, p)
binary_cross_entropy_with_logits: hf.nn.sigmoid_cross_entropy(labels, logits)
conv: hf.nn.convolution(x, filters)
conv_transpose2d: hf.nn.conv2d_transpose(x, filters, output_shape, strides)
cosine_similarity: hf.sum(hf.nn.l2_normalize(x, -1) * hf.nn.l2_normalize(y, -1), axis=-1)
crelu: hf.nn.relu(hf.concat([x, -x], axis=-1))
cross_entropy: hf.nn.softmax_cross_entropy(labels, logits)
embedding_lookup: hf.take(table, indices, axis=0)
fold: hf.scatter_add(x, indices, updates)
glu: x, gate = hf.split(x, 2, axis=-1), and x * hf.sigmoid(gate)
grid_sample: hf.layers.RandomRotation and its kin, or hf.gather_nd(x, positions)
group_norm: hf.layers.GroupNormalization(groups)
huber_loss: hf.nn.huber(labels, predictions)
in_top_k: hf.metrics.sparse_top_k_categorical_accuracy(labels, predictions, k)
init: hf.initializers
initializers: hf.initializers
instance_norm: hf.layers.GroupNormalization(-1)
interpolate: hf.layers.Resizing(height, width)
kl_div: hf.losses.KLDivergence()(labels, predictions)
l1_loss: hf.nn.mean_absolute_error(labels, predictions)
l2_loss: hf.sum(x ** 2) / 2
linear: x @ w + b
local_response_normalization: x / (bias + alpha * hf.nn.avg_pool of squares) ** beta
log_loss: hf.losses.BinaryCrossentropy()(labels, p)
logsumexp: hf.logsumexp(x, axis)
lrn: x / (bias + alpha * hf.nn.avg_pool of squares) ** beta
mish: x * hf.tanh(hf.nn.softplus(x))
mse_loss: hf.nn.mean_squared_error
nll_loss: hf.losses.SparseCategoricalCrossentropy()(labels, p)
normalize: hf.nn.l2_normalize(x, axis)
pad: hf.pad(x, paddings)
sigmoid_cross_entropy_with_logits: hf.nn.sigmoid_cross_entropy(labels, logits, reduction="none")
smooth_l1_loss: hf.nn.huber(labels, predictions)
softmax_cross_entropy_with_logits: hf.nn.softmax_cross_entropy(labels, logits, reduction="none")
softmax_cross_entropy_with_logits_v2: hf.nn.softmax_cross_entropy(labels, logits, reduction="none")
sparse_softmax_cross_entropy_with_logits: hf.nn.softmax_cross_entropy(labels, logits, reduction="none")
standardize: hf.nn.layer_norm(x)
top_k: hf.top_k(x, k)
unfold: hf.nn.conv2d of an eye for a filter
utils: hf.optimizers.clip_by_global_norm(gradients, norm)
weighted_cross_entropy_with_logits: weight * hf.nn.sigmoid_cross_entropy(labels, logits, reduction="none")
zero_fraction: hf.mean((x == 0).astype(hf.float32))
"""

_OF_RANDOM = """
PRNGKey: hf.random.stateless_normal(shape, seed), with hf.random.split(seed)
bytes: hf.random.bits(shape)
chisquare: hf.random.chi_square(shape, df)
default_rng: hf.random.Generator(seed)
double_sided_maxwell: hf.random.maxwell(shape, scale), and hf.where(hf.random.bernoulli(0.5, shape), x, -x)
get_state: hf.random.global_generator()
integers: hf.random.randint(shape, low, high)
key: hf.random.stateless_normal(shape, seed), with hf.random.split(seed)
loggamma: hf.log(hf.random.gamma(shape, a))
logseries: numpy.random.default_rng(seed).logseries(p, shape)
manual_seed: hf.random.set_seed(seed)
noncentral_chisquare: hf.random.chi_square(shape, df + 2 * hf.random.poisson(shape, nonc / 2))
power: hf.random.uniform(shape) ** (1 / a)
rademacher: 2 * hf.random.bernoulli(0.5, shape).astype(hf.int64) - 1
rand: hf.random.uniform(shape)
randn: hf.random.normal(shape)
random: hf.random.uniform(shape)
random_sample: hf.random.uniform(shape)
seed: hf.random.set_seed(seed)
standard_cauchy: hf.random.cauchy(shape)
standard_exponential: hf.random.exponential(shape)
standard_gamma: hf.random.gamma(shape, a)
standard_normal: hf.random.normal(shape)
standard_t: hf.random.student_t(shape, df)
stateless_random_normal: hf.random.stateless_normal(shape, seed)
t: hf.random.student_t(shape, df)
vonmises: hf.random.von_mises(shape, loc, concentration)
weibull_min: hf.random.weibull(shape, concentration, scale)
zipf: numpy.random.default_rng(seed).zipf(a, shape)
"""

_OF_LOSSES = """
BCE: hf.losses.BinaryCrossentropy()
BCELoss: hf.losses.BinaryCrossentropy()
BCEWithLogitsLoss: hf.losses.BinaryCrossentropy(from_logits=True)
CrossEntropyLoss: hf.losses.SparseCategoricalCrossentropy(from_logits=True)
KLD: hf.losses.KLDivergence()
KLDivLoss: hf.losses.KLDivergence()
L1Loss: hf.losses.MeanAbsoluteError()
MAE: hf.losses.MeanAbsoluteError()
MSE: hf.losses.MeanSquaredError()
MSELoss: hf.losses.MeanSquaredError()
binary_crossentropy: hf.losses.BinaryCrossentropy()
categorical_crossentropy: hf.losses.CategoricalCrossentropy()
cross_entropy: hf.losses.softmax_cross_entropy(labels, logits)
mae: hf.losses.mean_absolute_error
mse: hf.losses.mean_squared_error
sparse_categorical_crossentropy: hf.losses.SparseCategoricalCrossentropy()
"""

_OF_DATA = """
ConcatDataset: dataset.concatenate(other)
IterableDataset: hf.data.Dataset.from_generator(f)
RandomSampler: hf.data.DataLoader(dataset, shuffle=True)
Sampler: hf.data.DataLoader(dataset, sampler=indices)
Subset: dataset.take(n) or dataset.skip(n)
TensorDataset: hf.data.Dataset.from_tensor_slices((x, y))
experimental: hf.data itself
random_split: dataset.take(n) and dataset.skip(n)
"""

_OF_OPTIMIZERS = """
CosineDecay: hf.optimizers.schedules.CosineDecay(rate, steps)
ExponentialDecay: hf.optimizers.schedules.ExponentialDecay(rate, steps, decay)
LinearLR: hf.optimizers.schedules.PolynomialDecay(rate, steps)
Momentum: hf.optimizers.SGD(rate, momentum=0.9)
StepLR: hf.optimizers.schedules.ExponentialDecay(rate, steps, decay, staircase=True)
apply_updates: optimizer.apply_gradients(zip(gradients, variables))
chain: the arguments of hf.optimizers.Optimizer: clipnorm, weight_decay, use_ema
legacy: hf.optimizers itself
lr_scheduler: hf.optimizers.schedules
"""

_OF_INTERPOLATE = """
BSpline: hf.interpolate.CubicSpline(x, y)
interp1d: hf.interp(x, xp, fp)
make_interp_spline: hf.interpolate.CubicSpline(x, y)
"""

_OF_LAYERS = """
BatchNorm: hf.layers.BatchNormalization()
BatchNorm2d: hf.layers.BatchNormalization()
Conv1d: hf.layers.Conv1D(filters, size)
Conv2d: hf.layers.Conv2D(filters, size)
LayerNorm: hf.layers.LayerNormalization()
Linear: hf.layers.Dense(units)
MaxPool2d: hf.layers.MaxPool2D(size)
Module: hf.Module, or hf.layers.Layer
MultiheadAttention: hf.layers.MultiHeadAttention(heads, width)
Parameter: hf.Variable(value), or layer.add_weight(shape)
Sequential: hf.Sequential(layers)
experimental: hf.layers itself
"""

_OF_MODELS = """
load: hf.models.load_model(path)
resnet50: hf.Sequential or hf.Model of hf.layers; no trained models come with it
save: hf.models.save_model(model, path)
"""

_OF_CHECKPOINT = """
load: hf.checkpoint.load_arrays(path), or hf.checkpoint.Checkpoint(model=model).restore(path)
read: hf.checkpoint.load_arrays(path)
restore: hf.checkpoint.Checkpoint(model=model).restore(path)
save: hf.checkpoint.Checkpoint(model=model).save(path), or hf.checkpoint.save_arrays(path, arrays)
"""

_OF_CONFIG = """
enable_eager_execution: nothing; operations run at once
experimental: hf.config itself
experimental_run_functions_eagerly: hf.config.run_functions_eagerly(True)
list_logical_devices: hf.list_devices()
list_physical_devices: hf.list_devices()
optimizer: hf.function, which compiles by itself
set_soft_device_placement: nothing; operations run where their operands lie
set_visible_devices: CUDA_VISIBLE_DEVICES, before Python starts
threading: hf.config.set_num_threads(n)
update: the functions of hf.config and the HF_ variables
"""

_OF_DISTRIBUTE = """
DistributedDataParallel: with hf.distribute.MirroredStrategy(replicas=n).scope(): model.compile(...)
DistributedSampler: strategy.distribute_dataset(dataset); each replica has its rows of each batch
MultiWorkerMirroredStrategy: hf.distribute.MirroredStrategy(replicas=n)
OneDeviceStrategy: hf.distribute.MirroredStrategy(replicas=1)
PartitionSpec: hf.distribute.P
all_gather_into_tensor: hf.distribute.all_gather(x)
all_to_all_single: hf.distribute.all_to_all(x)
destroy_process_group: nothing; a process leaves its group as it ends
get_rank: hf.distribute.process_index(), or hf.distribute.axis_index() of a replica
get_replica_context: hf.distribute.axis_index() and its kin
get_world_size: hf.distribute.process_count(), or hf.distribute.axis_size() replicas
init_process_group: nothing; hybridflow run makes the group
pmax: hf.distribute.all_reduce(x, "max")
pmean: hf.distribute.all_reduce(x, "mean")
pmin: hf.distribute.all_reduce(x, "min")
ppermute: hf.distribute.permute(x, pairs)
pshuffle: hf.distribute.permute(x, pairs)
psum: hf.distribute.all_reduce(x)
psum_scatter: hf.distribute.reduce_scatter(x)
reduce_scatter_tensor: hf.distribute.reduce_scatter(x)
"""

_OF_DEBUGGING = """
is_numeric_tensor: hf.isdtype(x.dtype, "numeric")
set_log_device_placement: f.explain(*args) of an hf.function
"""

_OF_SPARSE = """
CSRMatrix: hf.sparse.CSR
SparseTensor: hf.sparse.COO
coo_array: hf.sparse.from_dense(x)
coo_matrix: hf.sparse.from_dense(x)
csr_array: hf.sparse.from_dense(x), or hf.sparse.from_scipy(matrix)
csr_matrix: hf.sparse.from_dense(x), or hf.sparse.from_scipy(matrix)
"""

_OF_TREE = """
map_structure: hf.tree.map(f, tree)
reduce: functools.reduce(f, hf.tree.leaves(tree))
tree_flatten: hf.tree.flatten(tree)
tree_leaves: hf.tree.leaves(tree)
tree_map: hf.tree.map(f, tree)
tree_structure: hf.tree.structure(tree)
tree_unflatten: hf.tree.unflatten(structure, leaves)
"""

_OF_MIXED_PRECISION = """
set_dtype_policy: hf.mixed_precision.set_global_policy(name)
set_policy: hf.mixed_precision.set_global_policy(name)
"""

OF_MODULE, OF_TENSOR = _table(_OF_MODULE), _table(_OF_TENSOR)
OF_ROOM = {
    "checkpoint": _table(_OF_CHECKPOINT),
    "config": _table(_OF_CONFIG),
    "data": _table(_OF_DATA),
    "debugging": _table(_OF_DEBUGGING),
    "distribute": _table(_OF_DISTRIBUTE),
    "interpolate": _table(_OF_INTERPOLATE),
    "layers": _table(_OF_LAYERS),
    "linalg": _table(_OF_LINALG),
    "losses": _table(_OF_LOSSES),
    "mixed_precision": _table(_OF_MIXED_PRECISION),
    "models": _table(_OF_MODELS),
    "nn": _table(_OF_NN),
    "optimizers": _table(_OF_OPTIMIZERS),
    "random": _table(_OF_RANDOM),
    "sparse": _table(_OF_SPARSE),
    "tree": _table(_OF_TREE),
}


class NoSuchName(AttributeError):
    """An AttributeError that says what to write instead.  What it says is found when it is read: most are caught by
    hasattr and getattr of those who look what an object can do."""

    __module__, __qualname__ = AttributeError.__module__, AttributeError.__qualname__  # as tracebacks show it

    def __init__(self, owner: str, name: str, answer: str | None, known: Iterable[str] = ()) -> None:
        super().__init__(owner, name)
        self.name = name  # and no ``obj``, in which Python would look for similar names once more
        self._owner, self._answer, self._known = owner, answer, known

    def __str__(self) -> str:
        start = f"{self._owner} has no attribute {self.name!r}"
        if self._answer is None:
            close = difflib.get_close_matches(str(self.name), [*self._known], 1, 0.75)
            return f"{start}; did you mean {close[0]}?" if close else start
        if self._answer.startswith("nothing; "):
            return f"{start}, and it takes none: {self._answer[9:]}."
        return f"{start}; write {self._answer}."

    def __reduce__(self) -> Any:
        return AttributeError, (str(self),)


class OtherName:
    """Stands for an attribute that tensors of other libraries have, and answers with ours; to hasattr it is not there.

    A ``__getattr__`` would make every attribute slower, those that are there too.
    """

    def __init__(self, name: str, answer: str) -> None:
        self._name, self._answer = name, answer

    def __get__(self, instance: object, owner: type) -> Any:
        raise NoSuchName(f"{owner.__name__!r} object", self._name, self._answer)


def answers(module: str, names: list[str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a public module: it answers for names of others, and shows its own alone.

    Args:
        module: its ``__name__``.
        names: its ``__all__``.
    """

    def get(name: str) -> Any:
        answer = OF_ROOM.get(module.removeprefix("hybridflow."), {}).get(name)
        raise NoSuchName(f"module {module!r}", name, answer, names)

    return get, lambda: [*names, *(name for name in vars(sys.modules[module]) if name.startswith("__"))]


def give(owner: type, tensor: type, functions: Mapping[str, Any]) -> None:
    """Let a class answer for the names of the table, and for those of public functions of a tensor, as far as tensors
    have no such attribute."""
    answers = {name: f"hf.{name}({operands})" for name, f in functions.items() if (operands := _operands(f))}
    for name, answer in {**answers, **OF_TENSOR}.items():
        if not hasattr(tensor, name):
            setattr(owner, name, OtherName(name, answer))


def _operands(function: object) -> str | None:
    """How a function of one or two tensors is called; None for any other."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return {"x": "x", "x1": "x, y"}.get(code.co_varnames[0]) if code is not None and code.co_argcount else None


def hide(names: Iterable[str], owner: type) -> list[str]:
    """The attributes of an object less those that are there for an answer alone."""
    return [name for name in names if not isinstance(vars(owner).get(name), OtherName)]
