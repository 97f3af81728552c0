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
DataLoader: hf.data.DataLoader(dataset)
F: hf.nn
Mesh: x.to_device("gpu:1"); a program runs in one process, and nothing shares it out
Session: hf.compat.v1.Session(), or call the function: operations run at once
ShapeDtypeStruct: hf.TensorSpec(shape, dtype)
absolute: hf.abs(x)
acc: hf.mean(hf.argmax(logits, axis=-1) == labels)
allclose: hf.all(hf.isclose(x, y))
amax: hf.max(x, axis)
amin: hf.min(x, axis)
append: hf.concat([x, y])
applications: a model of hf.layers; no trained models come with it
apply_along_axis: hf.vmap(f, in_axes)
arccos: hf.acos(x)
arccosh: hf.acosh(x)
arcsin: hf.asin(x)
arcsinh: hf.asinh(x)
arctan: hf.atan(x)
arctan2: hf.atan2(y, x)
arctanh: hf.atanh(x)
argwhere: hf.stack(hf.nonzero(x), axis=1)
around: hf.round(x)
array: hf.asarray(values)
array_equal: hf.all(hf.equal(x, y))
array_split: hf.split(x, sizes, axis)
as_tensor: hf.asarray(values)
asnumpy: x.numpy()
assign: v.assign(value) of an hf.Variable
autograd: hf.GradientTape() or hf.grad(f)
autograph: hf.function, which takes Python's statements
average: hf.mean(x, axis)
batch_to_space: hf.reshape and hf.permute_dims
betainc: scipy.special.betainc in an hf.numpy_function
bmm: hf.matmul(x, y)
cast: hf.astype(x, dtype) or x.astype(dtype)
cat: hf.concat([x, y], axis=0)
cholesky: hf.linalg.cholesky(x)
clamp: hf.clip(x, low, high)
clip_by_value: hf.clip(x, low, high)
column_stack: hf.stack([x, y], axis=1)
compile: hf.function
complex128: a pair of real tensors; there are no complex dtypes
complex64: a pair of real tensors; there are no complex dtypes
concatenate: hf.concat([x, y], axis=0)
convert_to_tensor: hf.asarray(values)
convolve: hf.nn.conv1d(hf.pad(x, [(y.size - 1, y.size - 1)])[None, :, None], hf.flip(y)[:, None, None])[0, :, 0]
copy: x.copy()
corrcoef: c = x - hf.mean(x, axis=1, keepdims=True); n = c / hf.linalg.vector_norm(c, axis=1, keepdims=True); n @ n.T
cov: c = x - hf.mean(x, axis=1, keepdims=True); c @ c.T / (x.shape[1] - 1)
cpu: x.to_device("cpu")
cross: hf.linalg.cross(x, y)
cuda: hf.device("gpu:0")
cumprod: hf.cumulative_prod(x, axis)
cumsum: hf.cumulative_sum(x, axis)
custom_jvp: hf.custom_gradient
custom_vjp: hf.custom_gradient
datasets: hf.data.Dataset of files of your own; no data comes with it
debug: hf.debugging, or hf.print(x)
deg2rad: x * (hf.pi / 180)
delete: hf.concat([x[:i], x[i + 1:]])
det: hf.linalg.det(x)
device_put: x.to_device(device)
diag: hf.diagonal(x) of a matrix, hf.eye(x.size) * x of a vector
digamma: scipy.special.digamma in an hf.numpy_function
digitize: hf.searchsorted(bins, x, side="right")
distribute: x.to_device("gpu:1"); a program runs in one process, and nothing shares it out
distributed: x.to_device("gpu:1"); a program runs in one process, and nothing shares it out
divide_no_nan: hf.where(y == 0, 0.0, x / hf.where(y == 0, 1.0, y))
dot: x.dot(y) or x @ y
dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value), heads before steps
double: x.astype(hf.float64)
dropout: hf.nn.dropout(x, rate)
dstack: hf.stack([x, y], axis=2)
dtypes: hf.float32, hf.int64 and so on
ediff1d: hf.diff(x.flatten())
eigh: hf.linalg.eigh(x)
enable_eager_execution: nothing; operations run at once
erfinv: scipy.special.erfinv in an hf.numpy_function
eval_shape: f.get_concrete_function(*specs) of an hf.function
executing_eagerly: hf.config.functions_run_eagerly()
export: hf.saved.save(f, path)
fabs: hf.abs(x)
fft: numpy.fft on x.numpy(); there are no complex dtypes
fill: hf.full(shape, value)
fix: hf.trunc(x)
flatnonzero: hf.nonzero(x.flatten())[0]
flatten: x.flatten()
fliplr: hf.flip(x, axis=1)
flipud: hf.flip(x, axis=0)
float: hf.float32, hf.float64
fmod: hf.remainder(x, y), whose result has the sign of y
from_numpy: hf.asarray(array)
functional: hf.nn
gamma: scipy.special.gamma in an hf.numpy_function, or hf.random.gamma(shape, alpha)
gelu: hf.nn.gelu(x)
geomspace: hf.exp(hf.linspace(hf.log(start), hf.log(stop), num))
get_num_threads: hf.config.get_num_threads()
global_variables_initializer: nothing; variables start with their values
gradient: hf.grad(f) of a function, hf.diff(x) of values
gradients: hf.GradientTape() or hf.grad(f)
half: x.astype(hf.float16)
heaviside: hf.where(x == 0, y, (x > 0).astype(x.dtype))
hstack: hf.concat([x, y], axis=1)
i0: scipy.special.i0 in an hf.numpy_function
identity: hf.eye(n), or x.copy()
image: hf.layers.Resizing(height, width) and its kin, or hf.compat.tf.image
index_select: hf.take(x, indices, axis)
init_scope: nothing; make what is to live on outside of the function
inner: hf.tensordot(x, y, axes=((-1,), (-1,)))
insert: hf.concat([x[:i], values, x[i:]])
int: hf.int32, hf.int64
interp: numpy.interp in an hf.numpy_function
inv: hf.linalg.inv(x)
io: hf.data, hf.saved, hf.checkpoint
is_tensor: isinstance(x, hf.Tensor)
jit: hf.function
jnp: hf itself; its functions carry the names of the array API standard
keras: hf.layers, hf.optimizers, hf.losses, hf.initializers
kron: hf.reshape(x[:, None, :, None] * y[None, :, None, :], (x.shape[0] * y.shape[0], -1))
lax: hf itself: hf.scan, hf.while_loop, hf.cond, hf.fori_loop
leaky_relu: hf.nn.leaky_relu(x)
lexsort: hf.argsort of the last key, and of each other one in the order that those behind it have made
lgamma: scipy.special.gammaln in an hf.numpy_function
load: numpy.load(file)
log_softmax: hf.nn.log_softmax(x, axis)
logspace: 10.0 ** hf.linspace(start, stop, num)
long: x.astype(hf.int64)
make_jaxpr: f.ir(*args) of an hf.function
manual_seed: hf.random.set_seed(seed)
masked_fill: hf.where(mask, value, x), or x[mask] = value
math: hf itself: hf.exp(x), hf.log(x) ...
mgrid: hf.meshgrid(x, y, indexing="ij")
mm: x @ y
mod: hf.remainder(x, y)
movedim: hf.moveaxis(x, source, destination)
mul: hf.multiply(x, y)
nanmax: hf.max(hf.where(hf.isnan(x), -hf.inf, x), axis)
nanmean: hf.sum(hf.where(hf.isnan(x), 0.0, x), axis) / hf.sum(~hf.isnan(x), axis)
nanmin: hf.min(hf.where(hf.isnan(x), hf.inf, x), axis)
nansum: hf.sum(hf.where(hf.isnan(x), 0.0, x), axis)
ndarray: hf.Tensor
ndim: x.ndim
neg: hf.negative(x)
no_grad: nothing; only what runs inside an hf.GradientTape is recorded
norm: hf.linalg.vector_norm(x, axis=axis), or hf.linalg.matrix_norm(x)
np: hf itself; its functions carry the names of the array API standard
numpy: x.numpy()
onnx: hf.saved.save(f, path); it reads and writes files of its own alone
optim: hf.optimizers
parallel: x.to_device("gpu:1"); a program runs in one process, and nothing shares it out
permute: hf.permute_dims(x, axes)
piecewise: hf.where, one within the other
pinv: hf.linalg.pinv(x)
placeholder: an argument of an hf.function
placeholder_with_default: an argument of an hf.function
pmap: hf.vmap(f); a program runs in one process, on all cores
polyfit: hf.linalg.pinv(x[:, None] ** hf.arange(degree, -1, -1)) @ y
preprocessing: hf.data and hf.layers
profiler: f.profile(*args) of an hf.function
ptp: hf.max(x, axis) - hf.min(x, axis)
pytree: hf.tree
qr: hf.linalg.qr(x)
ragged: hf.data.Dataset and its padded_batch; there are no ragged tensors
rand: hf.random.uniform(shape)
randint: hf.random.randint(shape, low, high)
randn: hf.random.normal(shape)
random_normal: hf.random.normal(shape)
random_uniform: hf.random.uniform(shape)
range: hf.arange(start, stop, step)
rank: x.ndim
ravel: x.flatten()
reduce_all: hf.all(x, axis)
reduce_any: hf.any(x, axis)
reduce_euclidean_norm: hf.linalg.vector_norm(x, axis=axis)
reduce_logsumexp: hf.logsumexp(x, axis)
reduce_std: hf.std(x, axis)
reduce_variance: hf.var(x, axis)
relu: hf.nn.relu(x)
remat: hf.recompute_grad(f)
rint: hf.round(x)
rot90: hf.flip(hf.matrix_transpose(x), axis=0)
row_stack: hf.concat([x, y], axis=0)
rsub: hf.subtract(y, x)
save: numpy.save(file, x.numpy())
saved_model: hf.saved
scaled_dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value)
select: hf.where(condition, x, y)
set_num_threads: hf.config.set_num_threads(n)
set_seed: hf.random.set_seed(seed)
shape: x.shape
sharding: x.to_device("gpu:1"); a program runs in one process, and nothing shares it out
signal: numpy.fft on x.numpy(); there are no complex dtypes
silu: hf.nn.silu(x)
sinc: hf.where(x == 0, 1.0, hf.sin(hf.pi * x) / hf.where(x == 0, 1.0, hf.pi * x))
size: x.size
slogdet: hf.linalg.slogdet(x)
softmax: hf.nn.softmax(x, axis)
softplus: hf.nn.softplus(x)
solve: hf.linalg.solve(x, y)
sparse: hf.segment_sum(values, rows, n) of the products; there are no sparse tensors
special: hf itself: hf.erf(x), hf.logsumexp(x), hf.sigmoid(x); scipy.special in an hf.numpy_function
strings: numpy.strings, and hf.asarray of what comes of it; tensors hold numbers
sub: hf.subtract(x, y)
svd: hf.linalg.svd(x)
swapaxes: hf.moveaxis(x, source, destination), or x.mT
swish: hf.nn.swish(x)
switch: hf.switch_case(index, functions, *operands)
tensor: hf.asarray(values)
tensor_scatter_nd_add: hf.scatter_add(x, indices, updates)
tensor_scatter_nd_update: y = x.copy() and y[indices] = updates
to: x.to_device(device)
to_tensor: hf.asarray(values)
topk: hf.top_k(x, k)
train: hf.checkpoint, hf.optimizers
transpose: hf.permute_dims(x, axes), x.T of a matrix, or x.transpose(axes)
trapezoid: hf.sum((y[1:] + y[:-1]) * hf.diff(x)) / 2
trapz: hf.sum((y[1:] + y[:-1]) * hf.diff(x)) / 2
tree_map: hf.tree.map(f, tree)
tree_util: hf.tree
true_divide: hf.divide(x, y)
unique: hf.unique_values(x); hf.unique_all(x) has counts and indices too
unsqueeze: hf.expand_dims(x, axis)
utils: hf.data
variable: hf.Variable(value)
vdot: hf.vecdot(x, y)
vectorize: hf.vmap(f)
vstack: hf.concat([x, y], axis=0)
zero_grad: nothing; each hf.GradientTape starts from zero
"""

_OF_TENSOR = """
abs: abs(x) or hf.abs(x)
add_: x + y; tensors are values
assign: v.assign(value) of an hf.Variable v, or v[index] = value for a part of it
assign_add: v.assign_add(value) of an hf.Variable v, or v[index] += value for a part of it
assign_sub: v.assign_sub(value) of an hf.Variable v, or v[index] -= value for a part of it
at: y = x.copy() and y[indices] = value, or hf.scatter_add(x, indices, updates)
backward: an hf.GradientTape and tape.gradient(loss, variables), or hf.grad(f)
block_until_ready: nothing; results are ready when they are returned
bool: x.astype(hf.bool_)
byte: x.astype(hf.uint8)
chunk: hf.split(x, parts, axis)
clamp: x.clip(low, high)
clone: x.copy()
contiguous: x itself; tensors are contiguous where it matters
cpu: x.to_device("cpu")
cuda: x.to_device("gpu:0")
cumprod: hf.cumulative_prod(x, axis)
data: x itself
detach: hf.stop_gradient(x)
dim: x.ndim
div: x / y
div_: x / y; tensors are values
double: x.astype(hf.float64)
eq: x == y
eval: x.numpy()
expand: hf.broadcast_to(x, shape)
expand_as: hf.broadcast_to(x, y.shape)
fill: hf.full_like(x, value)
fill_: hf.full_like(x, value)
float: x.astype(hf.float32)
grad: tape.gradient(loss, x) of an hf.GradientTape, or hf.grad(f)
grad_fn: nothing; an hf.GradientTape records
half: x.astype(hf.float16)
index_select: hf.take(x, indices, axis)
int: x.astype(hf.int32)
is_cuda: x.device
long: x.astype(hf.int64)
masked_fill: hf.where(mask, value, x), or x[mask] = value
mm: x @ y
mul: x * y
mul_: x * y; tensors are values
nbytes: x.size * x.dtype.itemsize
ndimension: x.ndim
norm: hf.linalg.vector_norm(x, axis=axis), or hf.linalg.matrix_norm(x)
numel: x.size
permute: x.transpose(axes)
pow: x ** y
ptp: x.max() - x.min()
relu: hf.nn.relu(x)
requires_grad: tape.watch(x) of an hf.GradientTape
requires_grad_: tape.watch(x) of an hf.GradientTape
retain_grad: tape.watch(x) of an hf.GradientTape
scatter_add_: hf.scatter_add(x, indices, updates, axis)
softmax: hf.nn.softmax(x, axis)
sub: x - y
sub_: x - y; tensors are values
swapaxes: hf.moveaxis(x, source, destination), or x.mT
t: x.T
to: x.astype(dtype) or x.to_device(device)
tobytes: x.numpy().tobytes()
topk: hf.top_k(x, k)
type_as: x.astype(y.dtype)
unsqueeze: hf.expand_dims(x, axis)
view: x.reshape(shape)
view_as: x.reshape(y.shape)
zero_: hf.zeros_like(x)
"""


def _table(text: str) -> dict[str, str]:
    return dict(line.split(": ", 1) for line in text.strip().splitlines())


_OF_LINALG = """
cond: hf.linalg.svdvals(x)[0] / hf.linalg.svdvals(x)[-1]
eig: hf.linalg.eigh(x) of symmetric matrices
eigvals: hf.linalg.eigvalsh(x) of symmetric matrices
expm: w, q = hf.linalg.eigh(x); (q * hf.exp(w)) @ q.T of symmetric matrices
kron: hf.reshape(x[:, None, :, None] * y[None, :, None, :], (x.shape[0] * y.shape[0], -1))
logdet: hf.linalg.slogdet(x).logabsdet
lstsq: hf.linalg.pinv(a) @ b
multi_dot: hf.matmul, one after another
norm: hf.linalg.vector_norm(x, axis=axis) or hf.linalg.matrix_norm(x)
"""

_OF_NN = """
AdaptiveAvgPool2d: hf.layers.GlobalAveragePooling2D()
AvgPool2d: hf.layers.AveragePooling2D(size)
BCELoss: hf.losses.BinaryCrossentropy()
BCEWithLogitsLoss: hf.losses.BinaryCrossentropy(from_logits=True)
BatchNorm1d: hf.layers.BatchNormalization()
BatchNorm2d: hf.layers.BatchNormalization()
Conv1d: hf.layers.Conv1D(filters, size)
Conv2d: hf.layers.Conv2D(filters, size)
Conv3d: hf.layers.Conv3D(filters, size)
ConvTranspose2d: hf.layers.Conv2DTranspose(filters, size)
CrossEntropyLoss: hf.losses.SparseCategoricalCrossentropy(from_logits=True)
Dense: hf.layers.Dense(units)
Dropout: hf.layers.Dropout(rate)
Embedding: hf.layers.Embedding(count, width)
Flatten: hf.layers.Flatten()
GELU: hf.layers.Activation("gelu")
GRU: hf.layers.GRU(units)
GroupNorm: hf.layers.GroupNormalization(groups)
Identity: hf.layers.Identity()
L1Loss: hf.losses.MeanAbsoluteError()
LSTM: hf.layers.LSTM(units)
LayerNorm: hf.layers.LayerNormalization()
Linear: hf.layers.Dense(units)
MSELoss: hf.losses.MeanSquaredError()
MaxPool2d: hf.layers.MaxPooling2D(size)
Module: hf.Module, hf.layers.Layer or hf.Model
ModuleList: a list of layers as an attribute
MultiheadAttention: hf.layers.MultiHeadAttention(heads, width)
Parameter: hf.Variable(value)
ReLU: hf.layers.ReLU()
Sequential: hf.Sequential(layers)
Sigmoid: hf.layers.Activation("sigmoid")
Softmax: hf.layers.Softmax()
Tanh: hf.layers.Activation("tanh")
batch_norm: hf.layers.BatchNormalization()
bias_add: x + bias
binary_cross_entropy_with_logits: hf.nn.sigmoid_cross_entropy(labels, logits)
cross_entropy: hf.nn.softmax_cross_entropy(labels, logits)
embedding_lookup: hf.take(table, indices, axis=0)
init: hf.initializers
linear: x @ w + b
logsumexp: hf.logsumexp(x, axis)
mse_loss: hf.nn.mean_squared_error
normalize: hf.nn.l2_normalize(x, axis)
pad: hf.pad(x, paddings)
sigmoid_cross_entropy_with_logits: hf.nn.sigmoid_cross_entropy(labels, logits, reduction="none")
softmax_cross_entropy_with_logits: hf.nn.softmax_cross_entropy(labels, logits, reduction="none")
standardize: hf.nn.layer_norm(x)
"""

_OF_RANDOM = """
PRNGKey: hf.random.stateless_normal(shape, seed), with hf.random.split(seed)
beta: hf.random.gamma(shape, a), and x / (x + y) of two
default_rng: hf.random.Generator(seed)
integers: hf.random.randint(shape, low, high)
key: hf.random.stateless_normal(shape, seed), with hf.random.split(seed)
manual_seed: hf.random.set_seed(seed)
rand: hf.random.uniform(shape)
randn: hf.random.normal(shape)
random: hf.random.uniform(shape)
seed: hf.random.set_seed(seed)
standard_normal: hf.random.normal(shape)
"""

_OF_LOSSES = """
BCE: hf.losses.BinaryCrossentropy()
BCEWithLogitsLoss: hf.losses.BinaryCrossentropy(from_logits=True)
CrossEntropyLoss: hf.losses.SparseCategoricalCrossentropy(from_logits=True)
MAE: hf.losses.MeanAbsoluteError()
MSE: hf.losses.MeanSquaredError()
binary_crossentropy: hf.losses.BinaryCrossentropy()
categorical_crossentropy: hf.losses.CategoricalCrossentropy()
cross_entropy: hf.losses.softmax_cross_entropy(labels, logits)
mae: hf.losses.mean_absolute_error
mse: hf.losses.mean_squared_error
sparse_categorical_crossentropy: hf.losses.SparseCategoricalCrossentropy()
"""

OF_MODULE, OF_TENSOR = _table(_OF_MODULE), _table(_OF_TENSOR)
OF_ROOM = {
    "linalg": _table(_OF_LINALG),
    "losses": _table(_OF_LOSSES),
    "nn": _table(_OF_NN),
    "random": _table(_OF_RANDOM),
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

    def __get__(self, instance: Any, owner: type) -> Any:
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


def _operands(function: Any) -> str | None:
    """How a function of one or two tensors is called; None for any other."""
    code = getattr(getattr(function, "__wrapped__", function), "__code__", None)
    return {"x": "x", "x1": "x, y"}.get(code.co_varnames[0]) if code is not None and code.co_argcount else None


def hide(names: Iterable[str], owner: type) -> list[str]:
    """The attributes of an object less those that are there for an answer alone."""
    return [name for name in names if not isinstance(vars(owner).get(name), OtherName)]
