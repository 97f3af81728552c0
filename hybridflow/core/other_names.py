"""Names that other libraries have for what is here: a table that answers whoever tries them.

``_OF_MODULE`` are those of ``np.``, ``tf.``, ``torch.`` and ``jnp.``, ``_OF_TENSOR`` those of their arrays, each with
what to write instead; ``docs/names.md`` is made of the same table.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

_OF_MODULE = """
Array: hf.Tensor
absolute: hf.abs(x)
acc: hf.mean(hf.argmax(logits, axis=-1) == labels)
amax: hf.max(x, axis)
amin: hf.min(x, axis)
append: hf.concat([x, y])
arccos: hf.acos(x)
arccosh: hf.acosh(x)
arcsin: hf.asin(x)
arcsinh: hf.asinh(x)
arctan: hf.atan(x)
arctan2: hf.atan2(y, x)
arctanh: hf.atanh(x)
around: hf.round(x)
array: hf.asarray(values)
as_tensor: hf.asarray(values)
asnumpy: x.numpy()
assign: v.assign(value) of an hf.Variable
autograd: hf.GradientTape() or hf.grad(f)
average: hf.mean(x, axis)
batch_to_space: hf.reshape and hf.permute_dims
bmm: hf.matmul(x, y)
cast: hf.astype(x, dtype) or x.astype(dtype)
cat: hf.concat([x, y], axis=0)
clamp: hf.clip(x, low, high)
clip_by_value: hf.clip(x, low, high)
column_stack: hf.stack([x, y], axis=1)
concatenate: hf.concat([x, y], axis=0)
convert_to_tensor: hf.asarray(values)
copy: x.copy()
cpu: x.to_device("cpu")
cumprod: hf.cumulative_prod(x, axis)
cumsum: hf.cumulative_sum(x, axis)
cuda: hf.device("gpu:0")
deg2rad: x * (hf.pi / 180)
device_put: x.to_device(device)
divide_no_nan: hf.where(y == 0, 0.0, x / hf.where(y == 0, 1.0, y))
dot: x.dot(y) or x @ y
double: x.astype(hf.float64)
dropout: hf.nn.dropout(x, rate)
enable_eager_execution: nothing; operations run at once
executing_eagerly: hf.config.functions_run_eagerly()
fabs: hf.abs(x)
fill: hf.full(shape, value)
flatten: x.flatten()
float: hf.float32, hf.float64
fmod: hf.remainder(x, y), whose result has the sign of y
from_numpy: hf.asarray(array)
functional: hf.nn
gelu: hf.nn.gelu(x)
get_num_threads: hf.config.get_num_threads()
global_variables_initializer: nothing; variables start with their values
gradients: hf.GradientTape() or hf.grad(f)
half: x.astype(hf.float16)
hstack: hf.concat([x, y], axis=1)
identity: hf.eye(n), or x.copy()
index_select: hf.take(x, indices, axis)
int: hf.int32, hf.int64
is_tensor: isinstance(x, hf.Tensor)
jit: hf.function
jnp: hf itself; its functions carry the names of the array API standard
keras: hf.layers, hf.optimizers, hf.losses, hf.initializers
leaky_relu: hf.nn.leaky_relu(x)
load: numpy.load(file)
log_softmax: hf.nn.log_softmax(x, axis)
long: x.astype(hf.int64)
manual_seed: hf.random.set_seed(seed)
masked_fill: hf.where(mask, value, x), or x[mask] = value
math: hf itself: hf.exp(x), hf.log(x) ...
mm: x @ y
mod: hf.remainder(x, y)
movedim: hf.moveaxis(x, source, destination)
mul: hf.multiply(x, y)
ndarray: hf.Tensor
ndim: x.ndim
neg: hf.negative(x)
no_grad: nothing; only what runs inside an hf.GradientTape is recorded
norm: hf.linalg.vector_norm(x, axis=axis), or hf.linalg.matrix_norm(x)
numpy: x.numpy()
optim: hf.optimizers
permute: hf.permute_dims(x, axes)
placeholder: an argument of an hf.function
placeholder_with_default: an argument of an hf.function
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
rint: hf.round(x)
rsub: hf.subtract(y, x)
save: numpy.save(file, x.numpy())
scaled_dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value)
dot_product_attention: hf.nn.scaled_dot_product_attention(query, key, value), heads before steps
select: hf.where(condition, x, y)
set_num_threads: hf.config.set_num_threads(n)
shape: x.shape
silu: hf.nn.silu(x)
size: x.size
softmax: hf.nn.softmax(x, axis)
softplus: hf.nn.softplus(x)
sub: hf.subtract(x, y)
swapaxes: hf.moveaxis(x, source, destination), or x.mT
swish: hf.nn.swish(x)
tensor: hf.asarray(values)
tensor_scatter_nd_add: hf.scatter_add(x, indices, updates)
tensor_scatter_nd_update: y = x.copy() and y[indices] = updates
to_tensor: hf.asarray(values)
topk: hf.top_k(x, k)
transpose: hf.permute_dims(x, axes), x.T of a matrix, or x.transpose(axes)
tree_map: hf.tree.map(f, tree)
tree_util: hf.tree
true_divide: hf.divide(x, y)
unsqueeze: hf.expand_dims(x, axis)
variable: hf.Variable(value)
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
eig: hf.linalg.eigh(x) of symmetric matrices
eigvals: hf.linalg.eigvalsh(x) of symmetric matrices
logdet: hf.linalg.slogdet(x).logabsdet
lstsq: hf.linalg.pinv(a) @ b
multi_dot: hf.matmul, one after another
norm: hf.linalg.vector_norm(x, axis=axis) or hf.linalg.matrix_norm(x)
"""
OF_MODULE, OF_TENSOR, OF_LINALG = _table(_OF_MODULE), _table(_OF_TENSOR), _table(_OF_LINALG)


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
