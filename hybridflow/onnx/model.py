"""Models of ONNX files, as modules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hybridflow import config
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import now, suspended
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor
from hybridflow.errors import ArgumentError, ConcretizationError, DTypeError, OnnxError, entered
from hybridflow.jit.function import function
from hybridflow.jit.tensor_spec import TensorSpec
from hybridflow.module import Module
from hybridflow.onnx import host_values
from hybridflow.onnx.graph import File, Graph, Node, Port
from hybridflow.onnx.library import dtype_of, schema_version
from hybridflow.onnx.reading import read
from hybridflow.onnx.running import Run

_MOST_NUMBERS = 64  # programs for inputs that decide which branch is taken

# Operands that say how something is done, and are no weights.
_SETTINGS = {
    "Clip": (1, 2),
    "Resize": (1, 2, 3),
    "Upsample": (1,),
    "Pad": (1, 2),
    "Range": (0, 1, 2),
    "Dropout": (1, 2),
}
_QUANTISED = ("QuantizeLinear", "DequantizeLinear", "QLinearConv", "QLinearMatMul", "MatMulInteger", "ConvInteger")
_STATISTICS = {"BatchNormalization": (3, 4)}


class OnnxModel(Module):
    """A model of an ONNX file; ``hf.onnx.load`` returns it.

    It is called with the inputs of the file in their order, or by their names, and compiled: one program serves all
    extents that the file leaves open. In other compiled functions it is part of their program; gradients flow through
    it.

    Args:
        file: what was read.
        trainable: whether weights are variables.
        outputs: the names of its results.

    >>> hf.onnx.OnnxModel.__mro__[1] is hf.Module
    True
    """

    def __init__(self, file: File, trainable: bool = False, outputs: Sequence[str] | None = None) -> None:
        self._file = file
        self._named: dict[str, Variable] = {}
        graph = file.graph
        if outputs is not None:
            graph = _cut(file, outputs)
        self._graph = _with_folded(graph) if not trainable else graph
        if trainable:
            self._graph = self._with_variables(graph)
        self._runner = Run(file)
        for array in _arrays(self._graph):
            self._runner.know(array)
        self.input_names = tuple(port.name for port in self._graph.inputs)
        self.output_names = tuple(port.name for port in self._graph.outputs)
        self.signature: tuple[TensorSpec | None, ...] = tuple(_spec(port) for port in self._graph.inputs)
        specs = [spec for spec in self.signature if spec is not None]
        self._deciding = _deciding(self._graph, self.signature)
        self._by_numbers: dict[tuple[Any, ...], Any] = {}
        self._runs_eagerly = False
        name = os.path.splitext(os.path.basename(file.path))[0]
        self.name = name
        self._compiled = function(
            self._run_graph, input_signature=specs if len(specs) == len(self.signature) else None, name=name
        )

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        yield from self._named.items()

    @property
    def path(self) -> str:
        """The file that it comes from."""
        return self._file.path

    @property
    def function(self) -> Any:
        """The compiled function that a call runs, with ``explain``, ``kernels`` and ``profile``."""
        return self._compiled

    @entered
    def __call__(self, *inputs: object, **named: object) -> Any:
        """The result, or a tuple of them where the model has several."""
        values = self._bound(inputs, named)
        if any(isinstance(value, np.ndarray) and value.dtype.kind == "U" for value in values):
            return self._run_graph(*values)
        if self._deciding and now().trace is None:
            return self._for_numbers(values)
        return self._call(self._compiled, values)

    def _call(self, compiled: Any, values: Sequence[Any]) -> Any:
        """By the compiled function; eagerly, from then on, where it would have to know a value."""
        if not self._runs_eagerly:
            try:
                return compiled(*values)
            except ConcretizationError:
                if now().trace is not None:
                    raise
                self._runs_eagerly = True
        with config.running_eagerly():
            return self._run_graph(*[_as_argument(value) for value in values])

    def _for_numbers(self, values: Sequence[Any]) -> Any:
        """By a program of its own for each number that decides which branch is taken."""
        numbers = tuple(np.asarray(values[place]).item() for place in self._deciding)
        if numbers not in self._by_numbers:
            if len(self._by_numbers) >= _MOST_NUMBERS:
                self._by_numbers.clear()
            known = {
                place: np.array(number, self._dtype_of_input(place)) for place, number in zip(self._deciding, numbers)
            }
            specs = [spec for place, spec in enumerate(self.signature) if place not in known]

            def run(*rest: object) -> Any:
                others = iter(rest)
                return self._run_graph(
                    *(known[place] if place in known else next(others) for place in range(len(self.signature)))
                )

            declared = None if any(spec is None for spec in specs) else specs
            self._by_numbers[numbers] = function(run, input_signature=declared, name=self.name)
        if self._runs_eagerly:
            return self._call(None, values)
        rest = [value for place, value in enumerate(values) if place not in self._deciding]
        return self._by_numbers[numbers](*rest)

    def _dtype_of_input(self, place: int) -> Any:
        spec = self.signature[place]
        assert spec is not None
        return spec.dtype

    def text(self) -> str:
        """The nodes of the file as text, a line for each.

        Returns:
            A text.
        """
        lines = [f"graph {self._graph.name or '?'} ({self.path})"]
        lines += [f"  input {name}: {spec}" for name, spec in zip(self.input_names, self.signature)]
        lines += _lines(self._graph, "  ")
        return "\n".join(lines)

    def _bound(self, inputs: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        names = self.input_names
        rest = names[len(inputs) :]
        if len(inputs) > len(names) or set(named) != set(rest):
            wanted = ", ".join(f"{n}: {s}" for n, s in zip(names, self.signature))
            raise ArgumentError("onnx", f"{self.path} has {len(names)} inputs: {wanted}. Give each of them once.")
        values = [*inputs, *(named[name] for name in rest)]
        return [self._as_declared(*entry) for entry in zip(names, values, self.signature)]

    def _as_declared(self, name: str, value: object, spec: TensorSpec | None) -> Any:
        """Python's numbers and lists in the dtype of the input."""
        if spec is None:
            array = isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "OU"
            return np.asarray(value, str) if array or isinstance(value, str) else value
        dtype = getattr(value, "dtype", None)
        if dtype is None:
            return np.asarray(value, spec.dtype)
        if dtype != spec.dtype:
            raise DTypeError(
                "onnx",
                f"the input {name!r} of {self.path} is {dtype}; expected {spec.dtype}. Convert it with hf.astype.",
            )
        return value

    def _run_graph(self, *inputs: object) -> Any:
        results = [self._result(value) for value in self._runner.graph(self._graph, inputs, None)]
        return results[0] if len(results) == 1 else tuple(results)

    def _result(self, value: object) -> Any:
        if isinstance(value, list):
            return [self._result(each) for each in value]
        if isinstance(value, np.ndarray) and value.dtype.kind == "U":
            return value.astype(object)
        return None if value is None else self._runner.tensor(value)

    def _with_variables(self, graph: Graph) -> Graph:
        """The graph with its weights as variables: floats of one axis and more that are no settings of operators."""
        settings, statistics = set(), set()
        for node in graph.all_nodes():
            for place, name in enumerate(node.inputs):
                if place in _SETTINGS.get(node.op, ()) or node.op in _QUANTISED:
                    settings.add(name)
                if place in _STATISTICS.get(node.op, ()):
                    statistics.add(name)
        constants: dict[str, Any] = dict(graph.constants)
        with suspended():
            for name, array in graph.constants.items():
                if name in settings or array.ndim == 0 or not _is_float(array):
                    continue
                variable = Variable(array, trainable=name not in statistics, name=name)
                self._named[name] = constants[name] = variable
        return Graph(graph.name, graph.inputs, graph.outputs, constants, graph.nodes)

    def __repr__(self) -> str:
        return f"<OnnxModel {self.path}: {', '.join(self.input_names)} -> {', '.join(self.output_names)}>"


def _lines(graph: Graph, indent: str) -> Iterator[str]:
    for node in graph.nodes:
        told = [
            f"{name}={_short_text(value)}" for name, value in node.attributes.items() if not isinstance(value, Graph)
        ]
        operands = ", ".join(_operand(name, graph) for name in node.inputs)
        results = ", ".join(node.outputs)
        yield f"{indent}{results} = {node.op}({operands})" + (f" {{{', '.join(told)}}}" if told else "")
        for name, value in node.attributes.items():
            if isinstance(value, Graph):
                yield f"{indent}  {name}({', '.join(port.name for port in value.inputs)}):"
                yield from _lines(value, indent + "    ")
    yield f"{indent}return {', '.join(port.name for port in graph.outputs)}"


def _operand(name: str, graph: Graph) -> str:
    value = graph.constants.get(name)
    return name if value is None else f"{name}: {np.dtype(value.dtype)}{list(value.shape)}"


def _short_text(value: object) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}" if value.size > 8 else str(value.tolist())
    return str(value)


def _as_argument(value: object) -> Any:
    """What a compiled function makes of an argument."""
    if isinstance(value, (list, tuple)):
        return [_as_argument(each) for each in value]
    return value if value is None else as_tensor(value, "onnx")


def _deciding(graph: Graph, signature: Sequence[TensorSpec | None]) -> tuple[int, ...]:
    """The places of inputs that are single integers, such as a rate, and decide which branch an If takes by the
    arithmetic of ``host_values``."""
    places = []
    for place, (port, spec) in enumerate(zip(graph.inputs, signature)):
        if spec is None or spec.shape != () or not dtypes.is_integer(spec.dtype):
            continue
        known = {*graph.constants, port.name}
        values = {port.name}
        for node in graph.nodes:
            names = [name for name in node.inputs if name]
            if node.op == "If" and names[0] in values:
                places.append(place)
                break
            if (
                node.op in host_values.RULES
                and not node.domain
                and known.issuperset(names)
                and values.intersection(names)
            ):
                known.update(node.outputs)
                values.update(node.outputs)
    return tuple(places)


def _is_float(array: np.ndarray) -> bool:
    return array.dtype in dtypes.DEF and dtypes.is_float(array.dtype)


def _spec(port: Port) -> TensorSpec | None:
    if not port.element or port.shape is None:
        return None
    dtype = dtype_of(port.element)
    if dtype.kind == "O":
        return None
    return TensorSpec([n if isinstance(n, int) else None for n in port.shape], dtype)


def _arrays(graph: Graph) -> Iterator[np.ndarray]:
    yield from (value for value in graph.constants.values() if isinstance(value, np.ndarray))
    for node in graph.nodes:
        yield from (value for value in node.attributes.values() if isinstance(value, np.ndarray))
        for inner in node.graphs:
            yield from _arrays(inner)


def _cut(file: File, outputs: Sequence[str]) -> Graph:
    """The part of a graph that some values need."""
    graph = file.graph
    outputs = [outputs] if isinstance(outputs, str) else list(outputs)
    makers = {name: node for node in graph.nodes for name in node.outputs if name}
    known = {port.name: port for port in graph.outputs}
    needed: set[int] = set()
    seen: set[str] = set()
    waiting = list(outputs)
    for name in outputs:
        if name not in makers and name not in graph.constants and all(name != port.name for port in graph.inputs):
            close = ", ".join(list(makers)[-5:])
            raise OnnxError("onnx", f"{file.path} makes no value {name!r}. The last ones are {close}.")
    while waiting:
        name = waiting.pop()
        node = makers.get(name)
        if name in seen or node is None:
            seen.add(name)
            continue
        seen.add(name)
        needed.add(id(node))
        waiting += [each for each in (*node.inputs, *_captured(node)) if each]
    nodes = [node for node in graph.nodes if id(node) in needed]
    inputs = [port for port in graph.inputs if port.name in seen]
    ports = [known.get(name, Port(name)) for name in outputs]
    constants = {name: array for name, array in graph.constants.items() if name in seen}
    return Graph(graph.name, inputs, ports, constants, nodes)


def _captured(node: Node) -> set[str]:
    """Names that the graphs of a node may take from around it."""
    names: set[str] = set()
    for graph in node.graphs:
        for inner in graph.all_nodes():
            names.update(inner.inputs)
            for deeper in inner.graphs:
                names.update(port.name for port in deeper.outputs)
        names.update(port.name for port in graph.outputs)
    return names


def _with_folded(graph: Graph) -> Graph:
    """The graph without nodes whose results are known from constants alone: they are computed once."""
    constants, nodes = dict(graph.constants), []
    for node in graph.nodes:
        value = _folded(node, constants)
        if value is None or len(node.outputs) != 1:
            nodes.append(node)
        else:
            constants[node.outputs[0]] = value
    return Graph(graph.name, graph.inputs, graph.outputs, constants, nodes)


def _folded(node: Node, constants: dict[str, Any]) -> np.ndarray | None:
    if node.domain or not all(name in constants for name in node.inputs if name):
        return None
    if node.op == "Constant":
        value = node.attributes.get("value")
        return value if isinstance(value, np.ndarray) else None
    version = schema_version(node.domain, node.op, node.opset)
    if version is None:
        return None
    operands = [constants[name] if name else None for name in node.inputs]
    try:
        return host_values.computed(node.op, version, operands, node.attributes)
    except Exception:  # which the run says with the node's name
        return None


def load(path: str | os.PathLike[str], trainable: bool = False, outputs: Sequence[str] | None = None) -> OnnxModel:
    """Load a model from an ONNX file.

    The file is checked by the package ``onnx`` (``pip install 'hybridflow[onnx]'``); no code of a file is run. Data in
    other files must lie in its folder.

    Args:
        path: the file.
        trainable: whether its float weights become variables, named as in the file.
        outputs: names of values, to have these as results rather than the model's; what they do not need is left out.

    Returns:
        An ``OnnxModel``: a module that is called with the inputs of the file.

    Raises:
        OnnxError: for what is no ONNX file, is damaged or too large, and for names that it does not have.
        ImportError: without the package ``onnx``.

    >>> import os, tempfile
    >>> import onnx, onnx.helper as make
    >>> x, y = (make.make_tensor_value_info(n, onnx.TensorProto.FLOAT, ["batch", 2]) for n in "xy")
    >>> graph = make.make_graph([make.make_node("Relu", ["x"], ["y"])], "small", [x], [y])
    >>> path = os.path.join(tempfile.mkdtemp(), "small.onnx")
    >>> onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 21)], ir_version=10), path)
    >>> hf.onnx.load(path)([[1.0, -2.0]])
    <Tensor f32[1,2] cpu>
    [[1. 0.]]
    """
    return OnnxModel(read(os.fspath(path)), trainable, outputs)
