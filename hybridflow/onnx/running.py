"""Graphs run: node after node, by the functions of the table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from hybridflow.array.shapes import permute_dims, reshape, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import suspended
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.operands import as_tensor, literal
from hybridflow.errors import OnnxError, OperandError, SymbolicExtentError, TraceError
from hybridflow.onnx import host_values, operators
from hybridflow.onnx.graph import File, Function, Graph, Node
from hybridflow.onnx.library import element_of, onnx, schema_version
from hybridflow.onnx.reading import nodes_of_function

MOST_ELEMENTS = 2**32  # of a result whose extents are numbers of the file
_DEEPEST = 64  # functions in functions


class ChannelsLast(NamedTuple):
    """A tensor whose channels, the second axis for ONNX, lie last: it is permuted back when somebody needs that.

    Convolutions and pooling take and make it, elementwise operators and joins hand it on.
    """

    tensor: Tensor

    @property
    def shape(self) -> tuple[Any, ...]:
        shape = self.tensor.shape
        return (shape[0], shape[-1], *shape[1:-1])

    @property
    def ndim(self) -> int:
        return self.tensor.ndim

    @property
    def dtype(self) -> Any:
        return self.tensor.dtype


def to_last(ndim: int) -> tuple[int, ...]:
    """The permutation that puts the second axis last."""
    return (0, *range(2, ndim), 1)


def to_second(ndim: int) -> tuple[int, ...]:
    """The permutation that puts the last axis second."""
    return (0, ndim - 1, *range(1, ndim - 1))


class Scope:
    """Values by name, and those of the graphs around."""

    __slots__ = ("constants", "outer", "values")

    def __init__(self, constants: dict[str, Any], outer: Scope | None = None) -> None:
        self.constants, self.outer = constants, outer
        self.values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            if name in scope.constants:
                return scope.constants[name]
            scope = scope.outer
        raise OnnxError("onnx", f"there is no value {name!r}.")


class Call:
    """One node that is run, as the functions of the table see it."""

    __slots__ = ("node", "run", "scope", "version")

    def __init__(self, run: Run, node: Node, scope: Scope, version: int) -> None:
        self.run, self.node, self.scope, self.version = run, node, scope, version

    @property
    def results(self) -> int:
        return len(self.node.outputs)

    def wants(self, place: int) -> bool:
        """Whether anybody reads a result."""
        return place < len(self.node.outputs) and bool(self.node.outputs[place])

    def fault(self, message: str) -> OnnxError:
        return OnnxError("onnx", f"{self.run.file.path}: {self.node}: {message}")

    def numbers(self, value: object) -> np.ndarray:
        """An operand as an array of numbers or extents.  A tensor's values are known when it is run eagerly."""
        if isinstance(value, np.ndarray):
            return value
        return np.asarray(self.run.tensor(value).numpy())

    def extents(self, value: object) -> list[Any]:
        """An operand as a list of Python's ints and of extents."""
        array = self.numbers(value).reshape(-1)
        return [n if isinstance(n, Dim) else int(n) for n in array]

    def check_size(self, shape: Sequence[Any]) -> None:
        """Raises OnnxError for a shape that no model means."""
        sizes = [n for n in shape if not isinstance(n, Dim)]
        if any(n < 0 for n in sizes) or math.prod(sizes) > MOST_ELEMENTS:
            raise self.fault(f"its result would have the shape {list(shape)}.")

    def tensor(self, value: object) -> Tensor:
        return self.run.tensor(value)

    def derive(
        self, value: object, key: object, function: Callable[[Any], Any], otherwise: Callable[[Any], Any]
    ) -> Tensor:
        """``function`` of the array that a constant is, computed once; ``otherwise`` of a tensor."""
        return self.run.derive(value, key, function, otherwise)

    def arranged(self, value: object, permutation: tuple[int, ...]) -> Tensor:
        """A weight with its axes in another order: a constant is copied once."""
        return self.derive(
            value,
            permutation,
            lambda array: np.ascontiguousarray(np.transpose(array, permutation)),
            lambda tensor: permute_dims(tensor, permutation),
        )

    def constant(self, value: np.ndarray, key: object, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """An array made of a constant, computed once: a constant too."""
        return self.run.constant(value, key, function)

    def graph(self, graph: Graph, *operands: object) -> list[Any]:
        """The results of a graph among the attributes, which sees the values around it."""
        return self.run.graph(graph, operands, self.scope)


class Run:
    """All that is the same for each call of a model."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._known: dict[int, np.ndarray] = {}  # constants of the file by their identity
        self._tensors: dict[tuple[int, Any], Tensor] = {}
        self._arrays: dict[tuple[int, Any], np.ndarray] = {}
        self._bodies: dict[Any, tuple[Function, list[Node]]] = {}
        self._depth = 0

    def know(self, array: np.ndarray) -> None:
        """Remember a constant: what is made of it is made once."""
        self._known[id(array)] = array

    def tensor(self, value: object) -> Tensor:
        """Any value as a tensor in ONNX's order of axes."""
        if isinstance(value, Tensor):
            return value
        if isinstance(value, ChannelsLast):
            return permute_dims(value.tensor, to_second(value.ndim))
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return _of_extents(value)
            return self.derive(value, None, lambda array: array, lambda tensor: tensor)
        if isinstance(value, Variable):
            return as_tensor(value, "onnx")
        raise OnnxError("onnx", f"a {type(value).__name__} is no tensor.")

    def derive(
        self, value: object, key: object, function: Callable[[Any], Any], otherwise: Callable[[Any], Any]
    ) -> Tensor:
        if not isinstance(value, np.ndarray) or value.dtype == object:
            result: Tensor = otherwise(self.tensor(value))
            return result
        if value.ndim == 0 or id(value) not in self._known:
            return _literal(function(value))
        place = id(value), key
        if place not in self._tensors:
            with suspended():
                self._tensors[place] = _literal(function(value))
        return self._tensors[place]

    def constant(self, value: np.ndarray, key: object, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        if id(value) not in self._known:
            return function(value)
        place = id(value), key
        if place not in self._arrays:
            array = self._arrays[place] = function(value)
            self.know(array)
        return self._arrays[place]

    # ---- graphs

    def graph(self, graph: Graph, operands: Sequence[Any], outer: Scope | None) -> list[Any]:
        """The results of a graph."""
        scope = Scope(graph.constants, outer)
        if len(operands) != len(graph.inputs):
            raise OnnxError(
                "onnx",
                f"{self.file.path}: the graph {graph.name!r} has {len(graph.inputs)} inputs, not {len(operands)}.",
            )
        for port, value in zip(graph.inputs, operands):
            scope.values[port.name] = value
        self.nodes(graph.nodes, scope)
        return [scope[port.name] for port in graph.outputs]

    def nodes(self, nodes: Sequence[Node], scope: Scope) -> None:
        """Run nodes, whose results come into the scope."""
        for node in nodes:
            operands = [scope[name] if name else None for name in node.inputs]
            results = self.node(node, operands, scope)
            for name, value in zip(node.outputs, results):
                if name:
                    scope.values[name] = value

    def node(self, node: Node, operands: list[Any], scope: Scope) -> Sequence[Any]:
        """The results of one node.  Raises OnnxError that names it."""
        try:
            return self._node(node, operands, scope)
        except (TraceError, SymbolicExtentError, OnnxError):
            raise
        except (
            OperandError,
            TypeError,
            ValueError,
            IndexError,
            KeyError,
            OverflowError,
            ZeroDivisionError,
            AttributeError,
        ) as error:
            message = getattr(error, "message", None) or f"{type(error).__name__}: {error}"
            raise OnnxError("onnx", f"{self.file.path}: {node}: {message}") from error

    def _node(self, node: Node, operands: list[Any], scope: Scope) -> Sequence[Any]:
        local = self.file.functions.get((node.domain, node.op))
        if local is not None:
            return self._function(node, local, operands, ("local", id(node)))
        version = schema_version(node.domain, node.op, node.opset)
        if version is None:
            version = 1 if node.domain == operators.MICROSOFT else None
        if version is None:
            raise self._unknown(node)
        while operands and operands[-1] is None:
            operands.pop()
        if not node.domain:
            value = host_values.computed(node.op, version, operands, node.attributes)
            if value is not None:
                return (value,)
        row = operators.find(node.domain, node.op, version)
        if row is None and node.domain == operators.MICROSOFT:
            raise self._unknown(node)
        if row is None:
            return self._from_definition(node, operands)
        result = self._applied(row, Call(self, node, scope, version), operands)
        return result if type(result) is tuple else (result,)

    def _applied(self, row: operators.Operator, call: Call, operands: list[Any]) -> Any:
        node = call.node
        unknown = node.attributes.keys() - row.attributes
        if unknown:
            raise call.fault(f"it has the attribute {min(unknown)!r}, which is not supported.")
        if row.elementwise and any(isinstance(value, ChannelsLast) for value in operands):
            laid = self._with_channels_last(operands)
            if laid is not None:
                result = row.function(call, *laid, **node.attributes)
                if type(result) is tuple:
                    return tuple(ChannelsLast(each) for each in result)
                return ChannelsLast(result)
        values = [
            value
            if value is None or isinstance(value, (list, Tensor)) or place in row.raw
            else (value if row.keeps_layout and isinstance(value, ChannelsLast) else self.tensor(value))
            for place, value in enumerate(operands)
        ]
        return row.function(call, *values, **node.attributes)

    def _with_channels_last(self, operands: list[Any]) -> list[Any] | None:
        """Operands of an elementwise operator, all with their channels last; None where their axes do not match."""
        ndim = max(value.ndim for value in operands if isinstance(value, ChannelsLast))
        result: list[Any] = []
        for value in operands:
            if value is None:
                result.append(None)
            elif isinstance(value, ChannelsLast):
                if value.ndim != ndim:
                    return None
                result.append(value.tensor)
            elif value.ndim == 0:
                result.append(self.tensor(value))
            elif value.ndim > ndim:
                return None
            else:
                result.append(self.last(value, ndim))
        return result

    def last(self, value: Any, ndim: int) -> Tensor:
        ahead = (1,) * (ndim - value.ndim)
        permutation = to_last(ndim)
        return self.derive(
            value,
            ("channels last", ndim),
            lambda array: np.ascontiguousarray(np.transpose(array.reshape(ahead + array.shape), permutation)),
            lambda tensor: permute_dims(reshape(tensor, (*ahead, *tensor.shape)) if ahead else tensor, permutation),
        )

    # ---- functions

    def _function(self, node: Node, function: Function, operands: list[Any], key: object) -> Sequence[Any]:
        if key not in self._bodies:
            attributes = {attribute.name: attribute for attribute in node.proto.attribute}
            body = nodes_of_function(self.file.path, function, self._defaults(node) | attributes, node.name or node.op)
            self._bodies[key] = function, body
        function, body = self._bodies[key]
        scope = Scope({})
        scope.values.update(itertools.zip_longest(function.inputs, operands[: len(function.inputs)]))
        self._depth += 1
        try:
            if self._depth > _DEEPEST:
                raise OnnxError("onnx", f"{self.file.path}: {node} calls itself, or functions nest too deeply.")
            self.nodes(body, scope)
        finally:
            self._depth -= 1
        wanted = zip(function.outputs, node.outputs)
        return [scope[name] if result else None for name, result in wanted]

    def _defaults(self, node: Node) -> dict[str, Any]:
        if (node.domain, node.op) in self.file.functions:
            return {}
        schema = onnx().defs.get_schema(node.op, node.opset, node.domain)
        return {name: a.default_value for name, a in schema.attributes.items() if a.default_value.type}

    def _from_definition(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """By the function that the operator is defined by."""
        schema = onnx().defs.get_schema(node.op, node.opset, node.domain)
        types = [_type_of(value) for value in operands]
        key = id(node), tuple(t.SerializeToString() for t in types) if schema.has_context_dependent_function else None
        if key in self._bodies:
            return self._function(node, self._bodies[key][0], operands, key)
        proto = onnx().FunctionProto()
        if schema.has_context_dependent_function:
            opset = _newest(schema.context_dependent_function_opset_versions, node.opset)
            if opset is not None:
                message = node.proto.SerializeToString()
                data = schema.get_context_dependent_function_with_opset_version(
                    opset, message, [t.SerializeToString() for t in types]
                )
                proto.ParseFromString(data)
        elif schema.has_function:
            opset = _newest(schema.function_opset_versions, node.opset)
            if opset is not None:
                proto.ParseFromString(schema.get_function_with_opset_version(opset))
        if not proto.node:
            raise self._unknown(node)
        opsets = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in proto.opset_import}
        function = Function(
            tuple(proto.input),
            tuple(proto.output),
            proto,
            {"": node.opset if not node.domain else self.file.opsets.get("", operators.LAST)} | opsets,
        )
        return self._function(node, function, operands, key)

    def _unknown(self, node: Node) -> OnnxError:
        return OnnxError(
            "onnx",
            f"{self.file.path}: {node} of opset {node.opset} is not supported. hf.onnx.check lists all such nodes.",
        )


def _newest(versions: Sequence[int], opset: int) -> int | None:
    fitting = [version for version in versions if version <= opset]
    return max(fitting, default=None)


def _type_of(value: np.ndarray) -> Any:
    """The type of a value, as a message."""
    proto = onnx().TypeProto()
    if value is None:
        return proto
    if isinstance(value, list):
        proto.sequence_type.elem_type.CopyFrom(_type_of(value[0] if value else np.zeros((), np.float32)))
        return proto
    dtype = dtypes.int64 if value.dtype == object else np.dtype(value.dtype)
    proto.tensor_type.elem_type = element_of(dtype)
    shape = proto.tensor_type.shape
    shape.SetInParent()
    for extent in value.shape:
        dim = shape.dim.add()
        if not isinstance(extent, Dim):
            dim.dim_value = int(extent)
    return proto


def _of_extents(array: np.ndarray) -> Tensor:
    parts = [as_tensor(n, "onnx") for n in array.flat]
    return reshape(stack(parts), array.shape) if array.ndim else parts[0]


def _literal(array: np.ndarray) -> Tensor:
    if array.dtype not in dtypes.DEF:
        raise OnnxError("onnx", f"tensors of {array.dtype} are not supported.")
    return literal(np.array(array, order="C"))
