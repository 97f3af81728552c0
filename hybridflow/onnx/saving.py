"""Functions and models as ONNX files: from their traced graphs, a row for each op."""

from __future__ import annotations

import collections
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.checkpoint import files
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim, dividend, products_of
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.core import pytree
from hybridflow.core.type_aliases import DTypeLike
from hybridflow.errors import ArgumentError, OnnxError
from hybridflow.jit.concrete_function import ARGUMENT, RESULT, ConcreteFunction
from hybridflow.onnx.composites import Composite, composite_of
from hybridflow.onnx.library import element_of, onnx
from hybridflow.saved.saving import program_of
from hybridflow.tracing.trace import State

if TYPE_CHECKING:
    from hybridflow.compiler.ir.types import Extent, TensorType


OPSETS = (13, 24)  # the oldest and the newest that is written
_VERSION = {13: 7, 14: 7, 15: 8, 16: 8, 17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 11}  # of the format
_LEAST = -(2**63)

Rule = Callable[["Writer", Node], str]
RULES: dict[str, Rule] = {}


def save(
    obj: object,
    path: str | os.PathLike[str],
    input_signature: Sequence[Any] | None = None,
    opset: int = 21,
    exact: bool = False,
) -> str:
    """Save a function or a model as an ONNX file, which other libraries run.

    What is written is the graph that is traced, an operator or a few for each operation. Open extents stay open, under
    their names. Values of variables are those of now.

    Args:
        obj: a function with an ``input_signature``, a model that knows its input, or anything that can be called.
        path: the file.
        input_signature: a TensorSpec for each argument.
        opset: the version of ONNX's operators, 13 to 24.
        exact: whether each operation is written by itself. Otherwise operators of ONNX stand for several: activations,
            normalizations, pooling, means, products and convolutions with a bias. Other libraries may compute them in
            another order. Normalizations of float64 stay as they are: ONNX holds their epsilon as float32.

    Returns:
        The path of the file.

    Raises:
        OnnxError: for operations that ONNX has no counterpart of, with the line that made them.
        ArgumentError: where there is no signature, for functions that assign variables, and for other opsets.
        ImportError: without the package ``onnx``.

    >>> import os, tempfile
    >>> @hf.function(input_signature=[hf.TensorSpec(["batch", 2])])
    ... def f(x):
    ...     return hf.nn.softmax(x * 2)
    >>> path = hf.onnx.save(f, os.path.join(tempfile.mkdtemp(), "f.onnx"))
    >>> hf.onnx.load(path)(hf.zeros((3, 2)))
    <Tensor f32[3,2] cpu>
    [[0.5 0.5]
     [0.5 0.5]
     [0.5 0.5]]
    """
    if not OPSETS[0] <= opset <= OPSETS[1]:
        raise ArgumentError("onnx", f"opset is {opset}. Expected {OPSETS[0]} to {OPSETS[1]}.")
    model = _model(program_of(obj, input_signature), opset, exact)
    data = model.SerializeToString()
    name = os.fspath(path)
    files.replace(name, lambda file: file.write(data))
    return name


def _model(concrete: ConcreteFunction, opset: int, exact: bool) -> Any:
    library = onnx()
    graph = concrete.graph
    if graph.updates:
        raise ArgumentError("onnx", f"{concrete.name} assigns variables, which an ONNX file cannot.")
    writer = Writer(opset, exact)
    inputs = []
    names = iter(_argument_names(concrete))
    for node, source in zip(graph.inputs, concrete.staged.sources):
        if node.attrs["role"] is Role.ARGUMENT:
            name = writer.named(next(names))
            writer.names[node] = name
            inputs.append(_port(name, node))
            writer.know_symbols(name, node.shape)
        else:
            value: Any = source.variable if isinstance(source, State) else source
            label = str(node.attrs.get("name") or "constant")
            writer.names[node] = writer.constant(value.numpy(), label)
    results = _results(writer, concrete)
    outputs = []
    writer.nodes_of(graph)
    for label, node in results:
        name = writer.named(label)
        writer.nodes.append(library.helper.make_node("Identity", [writer.value(node)], [name]))
        outputs.append(_port(name, node))
    nodes, used = _without_unused(writer.nodes, {port.name for port in outputs})
    weights = [weight for weight in writer.weights if weight.name in used]
    proto = library.helper.make_graph(nodes, concrete.name or "graph", inputs, outputs, weights)
    model = library.helper.make_model(
        proto,
        opset_imports=[library.helper.make_opsetid("", opset)],
        ir_version=_VERSION[opset],
        producer_name="hybridflow",
    )
    library.checker.check_model(model)
    return model


def _without_unused(nodes: Sequence[Any], used: set[str]) -> tuple[list[Any], set[str]]:
    """The nodes whose results are read, and the names of all that is read."""
    kept = []
    for node in reversed(nodes):
        if used.intersection(node.output):
            kept.append(node)
            used.update(_read_by(node))
    return kept[::-1], used


def _read_by(node: Any) -> Iterator[str]:
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from (port.name for port in attribute.g.output)
            for inner in attribute.g.node:
                yield from _read_by(inner)


def _argument_names(concrete: ConcreteFunction) -> list[str]:
    parameters = concrete.graph.arguments
    return [_identifier(str(node.attrs.get("name") or "x")) for node in parameters]


def _identifier(text: str) -> str:
    clean = "".join(c if c.isalnum() or c in "_." else "_" for c in text).strip("_")
    return clean or "x"


def _results(writer: Writer, concrete: ConcreteFunction) -> list[tuple[str, Node]]:
    """The results that are tensors, with their names: the keys of a dict, or numbers."""
    arguments = concrete.graph.arguments
    nodes: list[Node] = []
    for kind, value in concrete.plan:
        if kind == RESULT:
            nodes.append(concrete.graph.outputs[value])
        elif kind == ARGUMENT:
            nodes.append(arguments[value])
        else:
            raise ArgumentError("onnx", f"{concrete.name} returns a value that is no tensor.")
    places = pytree.unflatten(concrete.results, list(range(len(nodes))))
    places = places if concrete.setting is None else places[0]
    if isinstance(places, Mapping) and all(isinstance(value, int) for value in places.values()):
        return [(_identifier(str(name)), nodes[place]) for name, place in places.items()]
    if len(nodes) == 1:
        return [("output", nodes[0])]
    return [(f"output_{k}", node) for k, node in enumerate(nodes)]


def _port(name: str, node: Node) -> Any:
    shape = [n if isinstance(n, int) else (n.symbol or str(n)) for n in node.shape]
    return onnx().helper.make_tensor_value_info(name, element_of(np.dtype(node.dtype)), shape)


class Writer:
    """Nodes and weights of a file that is made."""

    def __init__(self, opset: int, exact: bool) -> None:
        self.opset, self.exact = opset, exact
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.names: dict[Any, str] = {}
        self.taken: set[str] = set()
        self.arrays: dict[str, np.ndarray] = {}  # of the weights
        self._uses: collections.Counter[Node] = collections.Counter()
        self._symbols: dict[str, str] = {}
        self._constants: dict[tuple[str, tuple[int, ...], bytes], str] = {}

    # ---- names and values

    def named(self, label: str) -> str:
        name, k = label, 1
        while name in self.taken:
            name, k = f"{label}_{k}", k + 1
        self.taken.add(name)
        return name

    def constant(self, array: np.ndarray, label: str = "constant") -> str:
        key = array.dtype.name, array.shape, np.ascontiguousarray(array).tobytes()
        if array.nbytes <= 64 and key in self._constants:
            return self._constants[key]
        name = self.named(label)
        self.arrays[name] = array
        self.weights.append(onnx().numpy_helper.from_array(np.asarray(array, order="C"), name))
        if array.nbytes <= 64:
            self._constants[key] = name
        return name

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def emit(self, op: str, *inputs: str, label: str | None = None, **attributes: object) -> str:
        if op in _VIEWS and all(name in self.arrays for name in inputs):  # a view of a weight is a weight
            arrays = [self.arrays[name] for name in inputs]
            return self.constant(_VIEWS[op](*arrays, **attributes), label or inputs[0])
        name = self.named(_identifier(label or op.lower()))
        self.nodes.append(onnx().helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def emit_several(self, op: str, inputs: Sequence[str], count: int, **attributes: object) -> list[str]:
        names = [self.named(op.lower()) for _ in range(count)]
        self.nodes.append(onnx().helper.make_node(op, list(inputs), names, **attributes))
        return names

    def value(self, node: Node) -> str:
        """The name of a node's value."""
        if node not in self.names:
            self.names[node] = _broadcast(self, node)  # the one kind that is written when it is needed
        return self.names[node]

    def operand(self, node: Node, whole: bool) -> str:
        """The name of an operand of an elementwise operator, which broadcasts by itself where one is ``whole``."""
        if node.op.name != "broadcast" or not whole:
            return self.value(node)
        key = "spread", node
        if key not in self.names:
            self.names[key] = _spread(self, node)
        return self.names[key]

    # ---- values of images with channels first, as ONNX has them: beside those with channels last, whose transpositions
    # are left out where nobody reads them

    def first(self, node: Node) -> str:
        """The name of a value with the last axis behind the first one."""
        key = "first", node
        if key not in self.names:
            ndim = len(node.shape)
            self.names[key] = self.transposed(self.value(node), [0, ndim - 1, *range(1, ndim - 1)])
        return self.names[key]

    def has_first(self, node: Node) -> bool:
        return ("first", node) in self.names

    def keep_first(self, node: Node, name: str) -> str:
        """The name with channels last of a value that has been written with channels first."""
        self.names["first", node] = name
        return self.transposed(name, [0, *range(2, len(node.shape)), 1])

    def _firsts_of(self, node: Node) -> dict[Any, str] | None:
        """Names of the operands with channels first, where one of them has been written so."""
        ndim = len(node.shape)
        if not 3 <= ndim <= 5 or not any(self.has_first(x) and len(x.shape) == ndim for x in node.inputs):
            return None
        result: dict[Any, str] = {}
        for source in node.inputs:
            if source.op.name == "broadcast" and not self.has_first(source):
                name = self._spread_first(source)
            else:
                name = self.first(source)
            result[source] = name
            if source.op.name == "broadcast":
                result["spread", source] = name
        return result

    def _spread_first(self, node: Node) -> str:
        """The operand of a broadcast with axes of one element where it has none, channels first."""
        (source,), axes, ndim = node.inputs, node.attrs["axes"], len(node.shape)
        places = [0 if k == 0 else 1 if k == ndim - 1 else k + 1 for k in axes]
        order = sorted(range(len(axes)), key=places.__getitem__)
        name = self.transposed(self.value(source), order)
        missing = [k for k in range(min(places, default=ndim), ndim) if k not in places]
        missing = [k - min(places, default=ndim) for k in missing]
        return self.emit("Unsqueeze", name, self.integers(*missing)) if missing else name

    @contextmanager
    def inner(self) -> Iterator[list[Any]]:
        """A graph within the graph, whose values are not seen outside of it."""
        outside, names = self.nodes, dict(self.names)
        self.nodes = []
        try:
            yield self.nodes
        finally:
            self.nodes, self.names = outside, names

    # ---- extents

    def know_symbols(self, name: str, shape: Sequence[Any]) -> None:
        for axis, extent in enumerate(shape):
            if isinstance(extent, Dim) and extent.symbol and extent.symbol not in self._symbols:
                whole = self.emit("Shape", name)
                self._symbols[extent.symbol] = self.emit("Gather", whole, self.integers(axis), label=extent.symbol)

    def extent(self, extent: Any) -> str:
        """An extent as a tensor [1] of int64."""
        if isinstance(extent, int):
            return self.integers(extent)
        total = ""
        for factor, names in products_of(extent):
            part = "" if factor == 1 and names else self.integers(factor)
            for name in names:
                value = self._name(name)
                part = self.emit("Mul", part, value) if part else value
            total = self.emit("Add", total, part) if total else part
        return total

    def _name(self, name: Any) -> str:
        if isinstance(name, str):
            if name not in self._symbols:
                raise OnnxError("onnx", f"the extent {name} is that of no argument.")
            return self._symbols[name]
        return self.emit("Div", self.extent(dividend(name)), self.extent(name.divisor))

    def extents(self, shape: Sequence[Any]) -> str:
        """A shape as a tensor."""
        if all(isinstance(n, int) for n in shape):
            return self.integers(*shape)
        return self.emit("Concat", *(self.extent(n) for n in shape), axis=0)

    def form(self, shape: Sequence[Any]) -> str:
        """A shape for Reshape, which finds one extent by itself."""
        places = [k for k, n in enumerate(shape) if not isinstance(n, int)]
        if len(places) == 1 and all(n != 0 for k, n in enumerate(shape) if k not in places):
            return self.integers(*(-1 if k in places else n for k, n in enumerate(shape)))
        return self.extents(shape)

    # ---- graphs

    def nodes_of(self, graph: Graph) -> None:
        self._uses.update(graph.outputs)
        for node in graph.nodes:
            self._uses.update(node.inputs)
        for node in graph.nodes:
            if node.op.name == "broadcast" or node in self.names:
                continue
            composite = None if self.exact else composite_of(node, self.opset)
            if composite is not None:
                self.names[node] = self._composed(node, composite)
                continue
            if not self.exact and node.op.name == "add" and (name := self._with_bias(node)) is not None:
                self.names[node] = name
                continue
            rule = RULES.get(node.op.name)
            if rule is None:
                self.refuse(node)
            firsts = self._firsts_of(node) if node.op.name in ELEMENTWISE else None
            if firsts is None:
                self.names[node] = rule(self, node)  # type: ignore[misc]
                continue
            before = {key: self.names[key] for key in firsts if key in self.names}
            self.names.update(firsts)
            name = rule(self, node)  # type: ignore[misc]
            for key in firsts:
                del self.names[key]
            self.names.update(before)
            self.names[node] = self.keep_first(node, name)

    def _composed(self, node: Node, composite: Composite) -> str:
        source = composite.operands[0]
        assert isinstance(source, Node)
        if composite.op == "ReduceMean":
            return _folded(self, composite.op, source, list(composite.attributes["axes"]))
        is_like = composite.op in ("Relu", "Clip", "Gelu") and self.has_first(source)
        is_first = composite.channels_first or is_like
        names = [self.first(source) if is_first else self.value(source)]
        for operand in composite.operands[1:]:
            if operand is None:
                names.append("")
            else:
                names.append(self.constant(operand) if isinstance(operand, np.ndarray) else self.value(operand))
        while not names[-1]:  # some runtimes crash over a name without a value at the end
            names.pop()
        name = self.emit(composite.op, *names, **composite.attributes)
        return self.keep_first(node, name) if is_first else name

    def _with_bias(self, node: Node) -> str | None:
        """A convolution whose result is read by nobody but by what adds a vector to it."""
        source, bias = node.inputs
        parts: Any = self.names.get(("convolution", source))
        is_along = bias.op.name == "broadcast" and tuple(bias.attrs["axes"]) == (len(node.shape) - 1,)
        if parts is None or not is_along or self._uses[source] != 1:
            return None
        (vector,) = bias.inputs
        return self.keep_first(node, self.emit("Conv", *parts[0], self.value(vector), **parts[1]))

    def refuse(self, node: Node, why: str = "") -> None:
        raise OnnxError(
            "onnx", f"{node.op.name} {why or 'has no counterpart in ONNX here'}; its result is {node.type}.", node.where
        )

    def body(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Run a sub-graph's nodes here, on these values."""
        for parameter, name in zip(graph.inputs, operands, strict=True):
            self.names[parameter] = name
        self.nodes_of(graph)
        return [self.value(node) for node in graph.outputs]

    def reshaped(self, name: str, shape: Sequence[Any]) -> str:
        return self.emit("Reshape", name, self.form(shape))

    def transposed(self, name: str, perm: Sequence[int]) -> str:
        return name if list(perm) == list(range(len(perm))) else self.emit("Transpose", name, perm=list(perm))

    def cast(self, name: str, dtype: DTypeLike) -> str:
        return self.emit("Cast", name, to=element_of(np.dtype(dtype)))

    def like(self, node: Node, value: float) -> str:
        return self.constant(np.array(value, node.dtype))


# Views of weights, which are weights.
_VIEWS: dict[str, Callable[..., np.ndarray]] = {
    "Reshape": lambda x, shape: x.reshape([x.shape[k] if n == 0 else n for k, n in enumerate(shape.tolist())]),
    "Transpose": lambda x, perm: x.transpose(perm),
    "Unsqueeze": lambda x, axes: np.expand_dims(x, tuple(axes.tolist())),
}


def _spread(w: Writer, node: Node) -> str:
    """The operand of a broadcast with axes of one element where it has none."""
    (source,), axes = node.inputs, node.attrs["axes"]
    name = w.value(source)
    ndim = len(node.shape)
    if not axes or tuple(axes) == tuple(range(ndim - len(axes), ndim)):
        return name  # as ONNX aligns by itself
    return w.emit("Unsqueeze", name, w.integers(*(k for k in range(ndim) if k not in axes)))


def _broadcast(w: Writer, node: Node) -> str:
    if node.op.name != "broadcast":
        raise OnnxError("onnx", f"{node.op.name} is read before it is written.", node.where)
    return w.emit("Expand", _spread(w, node), w.extents(node.shape))


# ---- the rows


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


def operands(w: Writer, node: Node) -> list[str]:
    whole = any(source.op.name != "broadcast" and len(source.shape) == len(node.shape) for source in node.inputs)
    if whole:
        return [w.operand(source, True) for source in node.inputs]
    first, *rest = node.inputs or (None,)
    return [] if first is None else [w.value(first), *(w.operand(source, True) for source in rest)]


def _elementwise(op: str) -> Rule:
    return lambda w, node: w.emit(op, *operands(w, node))


for _name, _op in {
    "abs": "Abs",
    "acos": "Acos",
    "acosh": "Acosh",
    "add": "Add",
    "asin": "Asin",
    "asinh": "Asinh",
    "atan": "Atan",
    "atanh": "Atanh",
    "ceil": "Ceil",
    "cos": "Cos",
    "cosh": "Cosh",
    "divide": "Div",
    "equal": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "floor": "Floor",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "isinf": "IsInf",
    "isnan": "IsNaN",
    "less": "Less",
    "less_equal": "LessOrEqual",
    "log": "Log",
    "logical_and": "And",
    "logical_not": "Not",
    "logical_or": "Or",
    "logical_xor": "Xor",
    "maximum": "Max",
    "minimum": "Min",
    "multiply": "Mul",
    "negative": "Neg",
    "pow": "Pow",
    "reciprocal": "Reciprocal",
    "round": "Round",
    "sigmoid": "Sigmoid",
    "sign": "Sign",
    "sin": "Sin",
    "sinh": "Sinh",
    "sqrt": "Sqrt",
    "stop_gradient": "Identity",
    "subtract": "Sub",
    "tan": "Tan",
    "tanh": "Tanh",
    "where": "Where",
}.items():
    RULES[_name] = _elementwise(_op)

ELEMENTWISE = {
    *RULES,
    *("convert", "not_equal", "square", "rsqrt", "expm1", "log1p", "logaddexp", "log2", "log10", "erfc", "copysign"),
    *("trunc", "isfinite", "bitwise_and", "bitwise_right_shift", "remainder", "floor_divide", "multiply_add"),
}


@rule("convert")
def _convert(w: Writer, node: Node) -> str:
    return w.cast(w.value(node.inputs[0]), node.dtype)


@rule("not_equal")
def _not_equal(w: Writer, node: Node) -> str:
    return w.emit("Not", w.emit("Equal", *operands(w, node)))


@rule("square")
def _square(w: Writer, node: Node) -> str:
    name = w.value(node.inputs[0])
    return w.emit("Mul", name, name)


@rule("rsqrt")
def _rsqrt(w: Writer, node: Node) -> str:
    return w.emit("Reciprocal", w.emit("Sqrt", w.value(node.inputs[0])))


@rule("expm1")
def _expm1(w: Writer, node: Node) -> str:
    """By tanh of the half, which is exact near 0: 2 t / (1 - t); where that is 1, exp(x) - 1."""
    x = w.value(node.inputs[0])
    t = w.emit("Tanh", w.emit("Mul", x, w.like(node, 0.5)))
    small = w.emit("Div", w.emit("Mul", t, w.like(node, 2)), w.emit("Sub", w.like(node, 1), t))
    large = w.emit("Sub", w.emit("Exp", x), w.like(node, 1))
    return w.emit("Where", w.emit("Less", w.emit("Abs", x), w.like(node, 0.5)), small, large)


@rule("log1p")
def _log1p(w: Writer, node: Node) -> str:
    return _log1p_of(w, w.value(node.inputs[0]), node)


def _log1p_of(w: Writer, x: str, like: Node) -> str:
    """By atanh, which is exact near 0: 2 atanh(x / (2 + x)); elsewhere log(1 + x)."""
    ratio = w.emit("Div", x, w.emit("Add", x, w.like(like, 2)))
    near = w.emit("Less", w.emit("Abs", x), w.like(like, 0.5))
    small = w.emit("Mul", w.emit("Atanh", w.emit("Where", near, ratio, w.like(like, 0))), w.like(like, 2))
    return w.emit("Where", near, small, w.emit("Log", w.emit("Add", x, w.like(like, 1))))


@rule("logaddexp")
def _logaddexp(w: Writer, node: Node) -> str:
    a, b = operands(w, node)
    largest = w.emit("Max", a, b)
    distance = w.emit("Abs", w.emit("Sub", a, b))
    equal = w.emit("Equal", a, b)  # infinities too, which have no distance
    distance = w.emit("Where", equal, w.like(node, 0), distance)
    return w.emit("Add", largest, _log1p_of(w, w.emit("Exp", w.emit("Neg", distance)), node))


@rule("log2", "log10")
def _log_of_base(w: Writer, node: Node) -> str:
    base = 2 if node.op.name == "log2" else 10
    return w.emit("Div", w.emit("Log", w.value(node.inputs[0])), w.like(node, np.log(base)))


@rule("erfc")
def _erfc(w: Writer, node: Node) -> str:
    return w.emit("Sub", w.like(node, 1), w.emit("Erf", w.value(node.inputs[0])))


@rule("copysign")
def _copysign(w: Writer, node: Node) -> str:
    """The sign of zero is that of 1 / x."""
    a, b = operands(w, node)
    signed = w.emit("Where", w.emit("Equal", b, w.like(node, 0)), w.emit("Reciprocal", b), b)
    below = w.emit("Less", signed, w.like(node, 0))
    size = w.emit("Abs", a)
    return w.emit("Where", below, w.emit("Neg", size), size)


@rule("trunc")
def _trunc(w: Writer, node: Node) -> str:
    x = w.value(node.inputs[0])
    return w.emit("Where", w.emit("Less", x, w.like(node, 0)), w.emit("Ceil", x), w.emit("Floor", x))


@rule("isfinite")
def _isfinite(w: Writer, node: Node) -> str:
    x = w.value(node.inputs[0])
    return w.emit("Not", w.emit("Or", w.emit("IsNaN", x), w.emit("IsInf", x)))


@rule("bitwise_and")
def _bitwise_and(w: Writer, node: Node) -> str:
    if dtypes.is_bool(node.dtype):
        return w.emit("And", *operands(w, node))
    if w.opset < 18:
        w.refuse(node, "needs opset 18")
    return w.emit("BitwiseAnd", *operands(w, node))


@rule("bitwise_right_shift")
def _bitwise_right_shift(w: Writer, node: Node) -> str:
    if not dtypes.is_unsigned(node.dtype):
        w.refuse(node, "of signed numbers is not supported")
    return w.emit("BitShift", *operands(w, node), direction="RIGHT")


@rule("remainder")
def _remainder(w: Writer, node: Node) -> str:
    if dtypes.is_integer(node.dtype):
        return w.emit("Mod", *operands(w, node))
    a, b = operands(w, node)
    rest = w.emit("Mod", a, b, fmod=1)  # of the sign of a
    zero = w.like(node, 0)
    other = w.emit("Less", w.emit("Mul", w.emit("Sign", rest), w.emit("Sign", b)), zero)
    return w.emit("Where", other, w.emit("Add", rest, b), rest)


@rule("floor_divide")
def _floor_divide(w: Writer, node: Node) -> str:
    a, b = operands(w, node)
    if dtypes.is_float(node.dtype):
        return w.emit("Floor", w.emit("Div", a, b))
    return w.emit("Div", w.emit("Sub", a, w.emit("Mod", a, b)), b)


@rule("multiply_add")
def _multiply_add(w: Writer, node: Node) -> str:
    a, b, c = (w.value(source) for source in node.inputs)
    return w.emit("Add", w.emit("Mul", a, b), c)


# ---- views


@rule("reshape")
def _reshape(w: Writer, node: Node) -> str:
    (source,) = node.inputs
    parts: Any = w.names.get(("convolution", source))
    if parts is not None and node.shape == (*source.shape[:-2], source.shape[-2] * source.shape[-1]):
        w.names["convolution", node] = parts  # groups and their outputs are one axis, as they are in ONNX
        return w.keep_first(node, parts[2])
    return w.reshaped(w.value(node.inputs[0]), node.shape)


@rule("transpose")
def _transpose(w: Writer, node: Node) -> str:
    return w.transposed(w.value(node.inputs[0]), node.attrs["perm"])


@rule("slice")
def _slice(w: Writer, node: Node) -> str:
    (source,), attrs = node.inputs, node.attrs
    axes = [
        k
        for k, n in enumerate(source.shape)
        if not (attrs["start"][k] == 0 and attrs["stop"][k] == n and attrs["step"][k] == 1)
    ]
    if not axes:
        return w.value(source)
    starts, ends, steps = ([attrs[part][k] for k in axes] for part in ("start", "stop", "step"))
    if w.has_first(source):
        places = w.integers(*(_place_first(k, source) for k in axes))
        parts = (w.extents(starts), w.extents(ends), places, w.integers(*steps))
        return w.keep_first(node, w.emit("Slice", w.first(source), *parts))
    return w.emit("Slice", w.value(source), w.extents(starts), w.extents(ends), w.integers(*axes), w.integers(*steps))


@rule("reverse")
def _reverse(w: Writer, node: Node) -> str:
    axes = node.attrs["axes"]
    return _reversed(w, w.value(node.inputs[0]), axes)


def _reversed(w: Writer, name: str, axes: Sequence[int]) -> str:
    count = len(axes)
    return w.emit(
        "Slice",
        name,
        w.integers(*[-1] * count),
        w.integers(*[_LEAST] * count),
        w.integers(*axes),
        w.integers(*[-1] * count),
    )


@rule("concat")
def _concat(w: Writer, node: Node) -> str:
    if any(w.has_first(source) for source in node.inputs):
        axis = _place_first(node.attrs["axis"], node)
        return w.keep_first(node, w.emit("Concat", *(w.first(source) for source in node.inputs), axis=axis))
    return w.emit("Concat", *(w.value(source) for source in node.inputs), axis=node.attrs["axis"])


@rule("pad")
def _pad(w: Writer, node: Node) -> str:
    (source,), attrs = node.inputs, node.attrs
    value = attrs["value"]
    fill = w.constant(np.asarray(getattr(value, "array", value), node.dtype).reshape(()))
    if w.has_first(source) and not any(attrs["interior"]):
        order = [0, len(source.shape) - 1, *range(1, len(source.shape) - 1)]
        pads = [attrs[side][k] for side in ("low", "high") for k in order]
        return w.keep_first(node, w.emit("Pad", w.first(source), w.extents(pads), fill))
    name, shape = w.value(source), list(source.shape)
    for axis, more in enumerate(attrs["interior"]):
        if more:
            name = _apart(w, name, shape, axis, more, fill)
            shape[axis] = (shape[axis] - 1) * (more + 1) + 1
    pads = [*attrs["low"], *attrs["high"]]
    return name if all(n == 0 for n in pads) else w.emit("Pad", name, w.extents(pads), fill)


def _apart(w: Writer, name: str, shape: Sequence[Extent], axis: int, more: int, fill: str) -> str:
    """Elements of an axis with so many others between them."""
    ndim = len(shape)
    name = w.emit("Unsqueeze", name, w.integers(axis + 1))
    ends = [0] * (ndim + 1)
    ends[axis + 1] = more
    name = w.emit("Pad", name, w.integers(*[0] * (ndim + 1), *ends), fill)
    wide = [*shape[:axis], shape[axis] * (more + 1), *shape[axis + 1 :]]
    name = w.reshaped(name, wide)
    return w.emit("Slice", name, w.integers(0), w.integers(-more), w.integers(axis), w.integers(1))


# ---- creation


@rule("constant")
def _constant(w: Writer, node: Node) -> str:
    return w.constant(np.array(node.attrs["value"].array))


@rule("extent")
def _extent(w: Writer, node: Node) -> str:
    value = w.emit("Squeeze", w.extent(node.attrs["value"]), w.integers(0))
    return value if node.dtype == dtypes.int64 else w.cast(value, node.dtype)


@rule("iota")
def _iota(w: Writer, node: Node) -> str:
    axis, shape = node.attrs["axis"], node.shape
    end = w.emit("Squeeze", w.extent(shape[axis]), w.integers(0))
    zero, one = w.constant(np.array(0, np.int64)), w.constant(np.array(1, np.int64))
    name = w.emit("Range", zero, end, one)
    name = name if node.dtype == dtypes.int64 else w.cast(name, node.dtype)
    if len(shape) == 1:
        return name
    name = w.reshaped(name, [-1 if k == axis else 1 for k in range(len(shape))])
    return w.emit("Expand", name, w.extents(shape))


# ---- folds


def _place_first(axis: int, node: Node) -> int:
    """Where an axis lies with channels first."""
    return 0 if axis == 0 else 1 if axis == len(node.shape) - 1 else axis + 1


def _folded(w: Writer, op: str, source: Node | str, axes: list[int]) -> str:
    """Axes became operands of ReduceSum in opset 13, and of the others in 18."""
    if isinstance(source, str):
        name = source
    else:
        inner = set(range(1, len(source.shape) - 1))
        if w.has_first(source) and (inner <= set(axes) or len(source.shape) - 1 in axes):  # others keep their order
            name, axes = w.first(source), sorted(_place_first(axis, source) for axis in axes)
        else:
            name = w.value(source)
    if not axes:
        return name
    if op == "ReduceSum" or w.opset >= 18:
        return w.emit(op, name, w.integers(*axes), keepdims=0)
    return w.emit(op, name, axes=axes, keepdims=0)


def _fold(op: str) -> Rule:
    return lambda w, node: _folded(w, op, node.inputs[0], list(node.attrs["axes"]))


for _name, _op in {"sum": "ReduceSum", "max": "ReduceMax", "min": "ReduceMin", "prod": "ReduceProd"}.items():
    RULES[_name] = _fold(_op)


@rule("any", "all")
def _any(w: Writer, node: Node) -> str:
    name = w.cast(w.value(node.inputs[0]), dtypes.int32)
    op = "ReduceMax" if node.op.name == "any" else "ReduceMin"
    name = _folded(w, op, name, list(node.attrs["axes"]))
    return w.cast(name, dtypes.bool_)


@rule("argmax", "argmin")
def _place(w: Writer, node: Node) -> str:
    axes = node.attrs["axes"]
    name, op = w.value(node.inputs[0]), {"argmax": "ArgMax", "argmin": "ArgMin"}[node.op.name]
    if len(axes) != 1:
        if len(axes) != len(node.inputs[0].shape):
            w.refuse(node, "over some of several axes is not supported")
        name = w.reshaped(name, [-1])
        return w.emit(op, name, axis=0, keepdims=0)
    return w.emit(op, name, axis=axes[0], keepdims=0)


@rule("cumulative_sum")
def _cumulative_sum(w: Writer, node: Node) -> str:
    return w.emit("CumSum", w.value(node.inputs[0]), w.constant(np.array(node.attrs["axis"], np.int64)))


@rule("vecdot")
def _vecdot(w: Writer, node: Node) -> str:
    a, b = (w.value(source) for source in node.inputs)
    wide = node.dtype
    if node.inputs[0].dtype != wide:
        a, b = w.cast(a, wide), w.cast(b, wide)
    return w.emit("ReduceSum", w.emit("Mul", a, b), w.integers(*node.attrs["axes"]), keepdims=0)


# ---- products


@rule("matmul")
def _matmul(w: Writer, node: Node) -> str:
    sides = []
    for source, turned in zip(node.inputs, (node.attrs["transpose_a"], node.attrs["transpose_b"])):
        name, ndim = w.value(source), len(source.shape)
        if turned:
            name = w.transposed(name, [*range(ndim - 2), ndim - 1, ndim - 2])
        sides.append(name)
    dtype = node.inputs[0].dtype
    if node.dtype == dtype:
        return w.emit("MatMul", *sides)
    if dtypes.is_integer(dtype) and dtype.itemsize == 1 and node.dtype == dtypes.int32:
        return w.emit("MatMulInteger", *sides)
    return w.emit("MatMul", *(w.cast(name, node.dtype) for name in sides))


@rule("convolve")
def _convolve(w: Writer, node: Node) -> str:
    """Images [n, *extents, groups, channels], filters [*window, channels, groups, outputs]."""
    x, f = node.inputs
    attrs = node.attrs
    count = len(f.shape) - 3
    groups, group_channels = x.shape[-2:]
    outputs = f.shape[-1]
    source = x.inputs[0] if x.op.name == "reshape" else x
    if source.shape == (*x.shape[:-2], groups * group_channels) and not any(attrs["interior"]):
        image = w.first(source)
    else:
        image, extents = w.value(x), list(x.shape[1 : count + 1])
        for axis, more in enumerate(attrs["interior"]):
            if more:
                image = _apart(w, image, [x.shape[0], *extents, groups, group_channels], axis + 1, more, w.like(x, 0))
                extents[axis] = (extents[axis] - 1) * (more + 1) + 1
        image = w.reshaped(image, [x.shape[0], *extents, groups * group_channels])
        image = w.transposed(image, [0, count + 1, *range(1, count + 1)])
    weight = w.transposed(w.value(f), [count + 1, count + 2, count, *range(count)])
    weight = w.reshaped(weight, [groups * outputs, group_channels, *f.shape[:count]])
    pads = [*attrs["low"], *attrs["high"]]
    if any(not isinstance(n, int) for n in pads):
        w.refuse(node, "with padding that depends on open extents is not supported")
    if any(n < 0 for n in pads):
        around = [0, 0, *attrs["low"], 0, 0, *attrs["high"]]
        image = w.emit("Pad", image, w.integers(*around), w.like(x, 0))
        pads = [0] * (2 * count)
    how = {"strides": list(attrs["step"]), "dilations": list(attrs["dilation"]), "pads": pads, "group": groups}
    out = w.emit("Conv", image, weight, **how)
    w.names["convolution", node] = (image, weight), how, out  # type: ignore[assignment]
    out = w.transposed(out, [0, *range(2, count + 2), 1])
    return w.reshaped(out, node.shape)


# ---- places


@rule("take")
def _take(w: Writer, node: Node) -> str:
    return w.emit("Gather", *(w.value(source) for source in node.inputs), axis=node.attrs["axis"])


@rule("take_along_axis")
def _take_along_axis(w: Writer, node: Node) -> str:
    return w.emit("GatherElements", *(w.value(source) for source in node.inputs), axis=node.attrs["axis"])


@rule("scatter_add", "scatter_set")
def _scatter(w: Writer, node: Node) -> str:
    x, indices, updates = (w.value(source) for source in node.inputs)
    if node.attrs.get("axis", 0) != 0 or len(node.inputs[1].shape) != 1:
        w.refuse(node, "along another axis than the first is not supported")
    places = w.emit("Unsqueeze", indices, w.integers(1))
    how = {"reduction": "add"} if node.op.name == "scatter_add" else {}
    if how and w.opset < 16:
        w.refuse(node, "needs opset 16")
    return w.emit("ScatterND", x, places, updates, **how)


@rule("search")
def _search(w: Writer, node: Node) -> str:
    """How many elements of an ordered row lie before each value; where that is NaN, as many as are no NaN, or all."""
    row, wanted = node.inputs
    if node.attrs["batch"]:
        w.refuse(node, "in several rows is not supported")
    ndim = len(wanted.shape)
    values = w.emit("Unsqueeze", w.value(wanted), w.integers(ndim))
    elements = w.value(row)
    if node.attrs["right"]:
        before = w.emit("Not", w.emit("Greater", elements, values))
    else:
        before = w.emit("Less", elements, values)
    if dtypes.is_float(row.dtype):
        missing, open_ = w.emit("IsNaN", elements), w.emit("IsNaN", values)
        if node.attrs["right"]:  # NaN is the largest: behind what is no NaN, and before none but itself
            before = w.emit("Or", w.emit("And", before, w.emit("Not", missing)), open_)
        else:
            before = w.emit("Or", before, w.emit("And", open_, w.emit("Not", missing)))
    return w.emit("ReduceSum", w.cast(before, dtypes.int64), w.integers(ndim), keepdims=0)


@rule("sort", "argsort")
def _sort(w: Writer, node: Node) -> str:
    axis = node.attrs["axis"]
    count = w.extent(node.inputs[0].shape[axis])
    name = w.value(node.inputs[0])
    values, places = w.emit_several("TopK", [name, count], 2, axis=axis, largest=int(node.attrs["descending"]))
    return values if node.op.name == "sort" else places


# ---- control flow: the results of a node with several are names under (node, number)


@rule("project")
def _project(w: Writer, node: Node) -> str:
    return w.names[node.inputs[0], node.attrs["index"]]


def _keep(w: Writer, node: Node, names: Sequence[str]) -> str:
    for k, name in enumerate(names):
        w.names[node, k] = name
    return names[0] if names else ""


@rule("call")
def _call(w: Writer, node: Node) -> str:
    return _keep(w, node, w.body(node.attrs["body"], [w.value(source) for source in node.inputs]))


@rule("custom")
def _custom(w: Writer, node: Node) -> str:
    return _keep(w, node, [w.value(source) for source in node.inputs])


def _subgraph(w: Writer, name: str, nodes: list[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    return onnx().helper.make_graph(nodes, name, list(inputs), list(outputs))


def _typed(name: str, type: TensorType) -> Any:
    shape = [n if isinstance(n, int) else None for n in type.shape]
    return onnx().helper.make_tensor_value_info(name, element_of(np.dtype(type.dtype)), shape)


def _results_of(w: Writer, graph: Graph, operands: Sequence[str]) -> list[Any]:
    """The outputs of a sub-graph that is written: each a value of its own."""
    outputs = []
    for node, name in zip(graph.outputs, w.body(graph, operands)):
        outputs.append(_typed(w.emit("Identity", name), node.type))
    return outputs


@rule("cond")
def _cond(w: Writer, node: Node) -> str:
    which, *rest = node.inputs
    branches = node.attrs["branches"]
    if which.dtype != dtypes.bool_ or len(branches) != 2:
        w.refuse(node, "with other than two branches is not supported")
    names = [w.value(source) for source in rest]
    graphs = []
    for label, branch in zip(("then", "else"), branches):
        with w.inner() as nodes:
            outputs = _results_of(w, branch, names)
            graphs.append(_subgraph(w, label, nodes, [], outputs))
    results = w.emit_several(
        "If", [w.value(which)], len(branches[0].outputs), then_branch=graphs[0], else_branch=graphs[1]
    )
    return _keep(w, node, results)


@rule("scan")
def _scan(w: Writer, node: Node) -> str:
    attrs = node.attrs
    body, carries, stacked = attrs["body"], attrs["carries"], attrs["stacked"]
    names = [w.value(source) for source in node.inputs]
    rows = names[carries : carries + stacked]
    count = max(stacked, 1)
    if not stacked:  # something has to say how many turns there are
        end = w.emit("Squeeze", w.extent(attrs["length"]), w.integers(0))
        rows = [w.emit("Range", w.constant(np.array(0, np.int64)), end, w.constant(np.array(1, np.int64)))]
    with w.inner() as nodes:
        carried = [w.named("carry") for _ in range(carries)]
        slices = [w.named("slice") for _ in range(count)]
        inputs = [_typed(name, p.type) for name, p in zip(carried, body.inputs)]
        if stacked:
            inputs += [_typed(name, p.type) for name, p in zip(slices, body.inputs[carries:])]
        else:
            inputs.append(onnx().helper.make_tensor_value_info(slices[0], 7, []))
        outputs = _results_of(w, body, [*carried, *slices[:stacked], *names[carries + stacked :]])
        graph = _subgraph(w, "body", nodes, inputs, outputs)
    if attrs["reverse"]:
        rows = [_reversed(w, name, [0]) for name in rows]
    results = w.emit_several("Scan", [*names[:carries], *rows], len(body.outputs), body=graph, num_scan_inputs=count)
    if attrs["reverse"]:
        results[carries:] = [_reversed(w, name, [0]) for name in results[carries:]]
    return _keep(w, node, results)


@rule("while")
def _while(w: Writer, node: Node) -> str:
    test, body = node.attrs["cond"], node.attrs["body"]
    names = [w.value(source) for source in node.inputs]
    carries = len(body.outputs)
    kept = dict(w.names)
    (first,) = w.body(test, names)
    w.names = kept
    with w.inner() as nodes:
        carried = [w.named("carry") for _ in range(carries)]
        iteration, goes = w.named("turn"), w.named("goes")
        inputs = [
            onnx().helper.make_tensor_value_info(iteration, 7, []),
            onnx().helper.make_tensor_value_info(goes, 9, []),
            *(_typed(name, p.type) for name, p in zip(carried, body.inputs)),
        ]
        outputs = _results_of(w, body, [*carried, *names[carries:]])
        following = [port.name for port in outputs]
        again = _results_of(w, test, [*following, *names[carries:]])
        graph = _subgraph(w, "body", nodes, inputs, [*again, *outputs])
    results = w.emit_several("Loop", ["", first, *names[:carries]], carries, body=graph)
    return _keep(w, node, results)
