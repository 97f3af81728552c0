"""What graphs of compiled functions answer to programs of TensorFlow: their operations, and descriptions of them.

Operations are those of the program here; each has TensorFlow's type where there is one of that meaning.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import hybridflow as hf
from hybridflow.autograph.source.lookup import Source, find
from hybridflow.autograph.transform.instrument import instrument
from hybridflow.compat.adapters.values import as_dtype
from hybridflow.compat.export import tf_export
from hybridflow.compiler.ir.extents import known
from hybridflow.compiler.ir.graph import Graph, Node, Role
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.passes.pattern_match import splat
from hybridflow.errors import ArgumentError
from hybridflow.jit.concrete_function import ConcreteFunction

# Types of TensorFlow's operations that are not the name of ours in capitals, and the names it starts from.
_TYPES = {
    "add": "AddV2", "subtract": "Sub", "multiply": "Mul", "divide": "RealDiv", "floor_divide": "FloorDiv",
    "remainder": "FloorMod", "power": "Pow", "negative": "Neg", "matmul": "MatMul", "batch_matmul": "BatchMatMulV2",
    "constant": "Const", "cond": "If", "while": "While", "scan": "Scan", "convert": "Cast", "broadcast": "BroadcastTo",
    "slice": "StridedSlice", "select": "SelectV2", "concat": "ConcatV2", "convolve": "Conv2D", "gather": "GatherV2",
    "iota": "Range", "argmax": "ArgMax", "argmin": "ArgMin", "pad": "PadV2", "reverse": "ReverseV2",
    "arctan2": "Atan2", "logistic": "Sigmoid", "isnan": "IsNan", "isfinite": "IsFinite", "isinf": "IsInf",
}  # fmt: skip
_NAMES = {
    "AddV2": "add",
    "Sub": "sub",
    "Mul": "mul",
    "RealDiv": "truediv",
    "Pow": "pow",
    "If": "cond",
    "While": "while",
}


def _type_of(node: Node) -> str:
    if node.is_parameter:
        return "Placeholder"
    name = node.op.name
    if name == "maximum" and any(value == 0 for x in node.inputs if (value := splat(x)) is not None):
        return "Relu"
    return _TYPES.get(name) or re.sub(r"(?:^|_)(\w)", lambda m: m[1].upper(), name)


@dataclass(eq=False)
class GraphTensor:
    """A value of a graph, which exists while the program runs only."""

    op: GraphOperation = field(repr=False)
    value_index: int
    type: TensorType = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.op.name}:{self.value_index}"

    @property
    def dtype(self) -> Any:
        return as_dtype(self.type.dtype)

    @property
    def shape(self) -> Any:
        return hf.TensorSpec(known(self.type.shape), self.type.dtype).shape

    def __repr__(self) -> str:
        return f"<tf.Tensor {self.name!r} shape={tuple(self.shape)} dtype={self.dtype.name}>"


@dataclass(eq=False)
class GraphOperation:
    """An operation of a graph, as ``tf.Operation``."""

    name: str
    type: str
    inputs: list[GraphTensor] = field(repr=False)
    attributes: dict[str, Any] = field(repr=False)
    outputs: list[GraphTensor] = field(default_factory=list, repr=False)
    control_inputs: tuple[Any, ...] = field(default=(), repr=False)
    device: str = field(default="", repr=False)

    def get_attr(self, name: str) -> Any:
        """One of its attributes.  Raises ValueError where there is none of that name."""
        if name not in self.attributes:
            raise ValueError(f"Operation {self.name!r} has no attr named {name!r}; it has {sorted(self.attributes)}.")
        return self.attributes[name]

    def values(self) -> tuple[GraphTensor, ...]:
        return tuple(self.outputs)

    @property
    def op_def(self) -> Any:
        return Definition(self.type)

    @property
    def node_def(self) -> NodeDef:
        return NodeDef(self.name, self.type, [_input_name(x) for x in self.inputs], self.device, self.attributes)

    def __repr__(self) -> str:
        return f"<tf.Operation {self.name!r} type={self.type}>"


def _input_name(x: GraphTensor) -> str:
    return x.op.name if x.value_index == 0 else x.name


@dataclass
class NodeDef:
    """A description of an operation."""

    name: str
    op: str
    input: list[str]
    device: str = ""
    attr: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        lines = [f'  name: "{self.name}"', f'  op: "{self.op}"', *(f'  input: "{name}"' for name in self.input)]
        return "\n".join(["node {", *lines, "}"])


@dataclass
class GraphDef:
    """A description of a graph."""

    node: list[NodeDef]

    def __str__(self) -> str:
        return "\n".join(map(str, self.node))


@dataclass
class Definition:
    """A name, with arguments and results where it is that of a function."""

    name: str
    input_arg: list[Any] = field(default_factory=list)
    output_arg: list[Any] = field(default_factory=list)


@dataclass
class FunctionDef:
    """A description of a function: its ``signature``, and the operations that are no arguments."""

    signature: Definition
    node_def: list[NodeDef]


class _Listing:
    """The operations of a graph, by name, with arguments first and results last."""

    def __init__(self, graph: Graph) -> None:
        self.operations: list[GraphOperation] = []
        self.values: dict[Node, GraphTensor] = {}  # of nodes of one result
        self._results: dict[Node, list[GraphTensor]] = {}
        self._counts: dict[str, int] = {}
        for node in graph.inputs:
            self._parameter(node)
        for node in graph.nodes:
            if node.op.name == "project":
                self.values[node] = self._results[node.inputs[0]][node.attrs["index"]]
                continue
            attributes = {name: value for name, value in node.attrs.items() if _is_plain(value)}
            inputs = [self.values[x] for x in node.inputs if x in self.values]  # tokens are no values
            self._enter(node, self._add(_type_of(node), None, inputs, node.type, attributes))
        self.results = [
            self._add("Identity", None, [self.values[node]], node.type, {}).outputs[0] for node in graph.outputs
        ]

    def _enter(self, node: Node, operation: GraphOperation) -> None:
        self._results[node] = operation.outputs
        if operation.outputs:
            self.values[node] = operation.outputs[0]

    def _parameter(self, node: Node) -> None:
        name = re.sub(r":\d+$", "", node.attrs["name"])
        if node.attrs["role"] is not Role.STATE:
            self._enter(node, self._add("Placeholder", name, [], node.type, {"dtype": as_dtype(node.type.dtype)}))
            return
        held = self._add("Placeholder", f"{name}_resource", [], node.type, {})
        self._enter(node, self._add("ReadVariableOp", f"{name}/ReadVariableOp", held.outputs, node.type, {}))

    def _add(
        self, type: str, name: str | None, inputs: Iterable[GraphTensor], kind: object, attributes: dict[str, Any]
    ) -> GraphOperation:
        start = name or _NAMES.get(type, type)
        count = self._counts[start] = self._counts.get(start, -1) + 1
        operation = GraphOperation(start if not count else f"{start}_{count}", type, list(inputs), attributes)
        parts = [kind] if isinstance(kind, TensorType) else getattr(kind, "parts", ())
        kinds = [part for part in parts if isinstance(part, TensorType)]
        operation.outputs.extend(GraphTensor(operation, k, one) for k, one in enumerate(kinds))
        self.operations.append(operation)
        return operation


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int, float, str)) or (
        isinstance(value, tuple) and all(isinstance(part, (bool, int, float, str)) for part in value)
    )


def _listing(graph: Graph) -> _Listing:
    if "_tf_listing" not in vars(graph):
        vars(graph)["_tf_listing"] = _Listing(graph)
    listing: _Listing = vars(graph)["_tf_listing"]
    return listing


def _operation(graph: Graph, name: str) -> GraphOperation:
    """The operation of a name.  Raises KeyError."""
    for operation in _listing(graph).operations:
        if operation.name == name:
            return operation
    raise KeyError(f"The name {name!r} refers to an Operation not in the graph.")


def _tensor(graph: Graph, name: str) -> GraphTensor:
    """The value of a name like ``add:0``.  Raises KeyError or ValueError."""
    owner, colon, index = name.partition(":")
    if not colon or not index.isdigit():
        raise ValueError(f"{name!r} is no name of a tensor; those are like 'add:0'.")
    outputs = _operation(graph, owner).outputs
    if int(index) >= len(outputs):
        raise KeyError(
            f"The name {name!r} refers to a Tensor which does not exist: {owner} has {len(outputs)} outputs."
        )
    return outputs[int(index)]


def _graph_def(graph: Graph, *_: object, **__: object) -> GraphDef:
    return GraphDef([operation.node_def for operation in _listing(graph).operations])


def _function_def(concrete: ConcreteFunction) -> FunctionDef:
    listing = _listing(concrete.graph)
    arguments = [op for op in listing.operations if op.type == "Placeholder"]
    results = [Definition(x.op.name.lower()) for x in listing.results]
    signature = Definition(f"__inference_{concrete.name}", [Definition(op.name) for op in arguments], results)
    return FunctionDef(signature, [op.node_def for op in listing.operations if op.type != "Placeholder"])


def _function_type(concrete: ConcreteFunction) -> inspect.Signature:
    """The signature of a concrete function, whose annotations are the specs of arguments and results."""
    args, kwargs = concrete.structured_input_signature
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    spec_names = [str(getattr(spec, "name", None) or "") for spec in args]
    names = [name if name.isidentifier() else f"arg{k}" for k, name in enumerate(spec_names)]
    parameters = [inspect.Parameter(name, kind, annotation=spec) for name, spec in zip(names, args)]
    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=spec) for name, spec in kwargs.items()]
    return inspect.Signature(parameters + more, return_annotation=concrete.structured_outputs)


def install() -> None:
    """Let graphs and concrete functions have TensorFlow's methods."""
    for name, method in {
        "get_operations": lambda graph: list(_listing(graph).operations),
        "get_operation_by_name": _operation,
        "get_tensor_by_name": _tensor,
        "as_graph_def": _graph_def,
    }.items():
        setattr(Graph, name, method)
    for name, value in {
        "inputs": lambda c: [op.outputs[0] for op in _listing(c.graph).operations if op.type == "Placeholder"],
        "outputs": lambda c: list(_listing(c.graph).results),
        "function_def": _function_def,
        "function_type": _function_type,
        "inference_fn": lambda c: c,
    }.items():
        setattr(ConcreteFunction, name, property(value))


@tf_export("autograph.to_code")
def to_code(entity: Any, recursive: bool = True, experimental_optional_features: object = None) -> str:
    """``tf.autograph.to_code``: the function as it runs while it is traced; ``recorder`` sees what it reads, and takes
    its statements.  Raises ArgumentError where there is no source."""
    function = inspect.unwrap(getattr(entity, "python_function", entity))
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    source = find(code, function) if code is not None else None
    if code is None or not isinstance(source, Source):
        raise ArgumentError("autograph.to_code", f"there is no source of {entity!r}; define it in a file.")
    node = instrument(source.node, frozenset(code.co_freevars), source.owner, _RECORDER)
    return ast.unparse(ast.fix_missing_locations(_Readable().visit(node))) + "\n"


@tf_export("autograph.to_graph")
def to_graph(entity: Callable[..., Any], recursive: bool = True, experimental_optional_features: object = None) -> Any:
    """``tf.autograph.to_graph``: the function, whose conditions and loops may depend on tensors."""
    return hf.function(inspect.unwrap(getattr(entity, "python_function", entity)))


_RECORDER = "<recorder>"


class _Readable(ast.NodeTransformer):
    """Writes what stands for the recorder, and names of its own that no program has, as names."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.copy_location(ast.Name("recorder", ast.Load()), node) if node.value == _RECORDER else node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.copy_location(ast.Name(node.id.replace(".", "_"), node.ctx), node)
