"""Files of ONNX, read: limits first, then the package's own checks, then plain data."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from hybridflow.core.file_kinds import kind_of
from hybridflow.errors import OnnxError
from hybridflow.onnx.graph import File, Function, Graph, Node, Port
from hybridflow.onnx.library import onnx

MOST_BYTES = 2**31  # of the file itself: protobuf takes no larger messages
MOST_NODES = 1_000_000
MOST_ELEMENTS = 2**33  # of one tensor
DEEPEST = 32  # graphs within graphs


def read(path: str) -> File:
    """The model of a file.  Raises OnnxError for all that is wrong with it."""
    library = onnx()
    model = parsed(path)
    _within_limits(path, model)
    try:
        with _with_shapes(model.graph):
            library.checker.check_model(model if not _is_external(model) else os.fspath(path))
    except (library.checker.ValidationError, ValueError, RuntimeError, UnicodeDecodeError) as error:
        raise OnnxError("onnx", f"{path} is not valid: {str(error).strip()}") from None
    if _is_external(model):
        try:
            library.external_data_helper.load_external_data_for_model(model, os.path.dirname(os.path.abspath(path)))
        except (library.checker.ValidationError, ValueError, OSError) as error:
            raise OnnxError("onnx", f"{path}: its data in other files cannot be read: {error}") from None
    opsets = _opsets(path, model.opset_import)
    functions = {}
    for proto in model.functions:
        versions = {**opsets, **_opsets(path, proto.opset_import)}
        functions[proto.domain, proto.name] = Function(tuple(proto.input), tuple(proto.output), proto, versions)
    graph = graph_of(path, model.graph, opsets)
    return File(path, graph, opsets, functions, f"{model.producer_name} {model.producer_version}".strip(), 0)


def parsed(path: str) -> Any:
    """The message of a file, as the package has it."""
    library = onnx()
    try:
        size = os.path.getsize(path)
        if size > MOST_BYTES:
            raise OnnxError(
                "onnx",
                f"{path} has {size} bytes. Expected at most {MOST_BYTES}; larger models keep data in files beside.",
            )
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise OnnxError("onnx", f"{path} cannot be read: {error.strerror or error}") from None
    model = library.ModelProto()
    try:
        model.ParseFromString(data)
    except Exception as error:  # protobuf's DecodeError, whose module depends on how it was built
        kind = kind_of(path)
        why = f"no ONNX file. It is {kind}." if kind else f"no ONNX file, or is cut off: {error}"
        raise OnnxError("onnx", f"{path} is {why}") from None
    if not model.HasField("graph"):
        raise OnnxError("onnx", f"{path} is no ONNX file: it {'has no graph' if data else 'is empty'}.")
    return model


@contextlib.contextmanager
def _with_shapes(graph: Any) -> Iterator[None]:
    """Results whose number of axes nobody knows have some while the package checks, which asks for one."""
    bare = [port.type.tensor_type for port in graph.output if port.type.HasField("tensor_type")]
    bare = [kind for kind in bare if not kind.HasField("shape")]
    for kind in bare:
        kind.shape.SetInParent()
    try:
        yield
    finally:
        for kind in bare:
            kind.ClearField("shape")


def _opsets(path: str, imports: Iterable[Any]) -> dict[str, int]:
    versions = {}
    for entry in imports:
        domain = "" if entry.domain == "ai.onnx" else entry.domain
        if not 1 <= entry.version <= 10_000:
            raise OnnxError("onnx", f"{path} asks for opset {entry.version} of {domain or 'ai.onnx'}.")
        versions[domain] = entry.version
    return versions


def _within_limits(path: str, model: Any) -> None:
    """Raises OnnxError before anything is allocated for what is too large."""
    nodes = 0
    waiting = [(model.graph, 0)]
    waiting += [(function, 0) for function in model.functions]
    while waiting:
        graph, depth = waiting.pop()
        if depth > DEEPEST:
            raise OnnxError("onnx", f"{path} has graphs within graphs, more than {DEEPEST} deep.")
        nodes += len(graph.node)
        if nodes > MOST_NODES:
            raise OnnxError("onnx", f"{path} has more than {MOST_NODES} nodes.")
        for tensor in getattr(graph, "initializer", ()):
            _check_tensor(path, tensor)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("t"):
                    _check_tensor(path, attribute.t)
                if attribute.HasField("g"):
                    waiting.append((attribute.g, depth + 1))
                waiting += [(inner, depth + 1) for inner in attribute.graphs]


def _check_tensor(path: str, tensor: Any) -> None:
    dims = list(tensor.dims)
    if any(n < 0 for n in dims) or math.prod(dims) > MOST_ELEMENTS or len(dims) > 64:
        raise OnnxError("onnx", f"{path}: the tensor {tensor.name!r} has the shape {dims}.")


def _is_external(model: object) -> bool:
    helper = onnx().external_data_helper
    return any(helper.uses_external_data(t) for t in helper._get_all_tensors(model))


# ---- messages as plain data


def graph_of(path: str, proto: Any, opsets: dict[str, int]) -> Graph:
    """A graph of a message."""
    constants = {tensor.name: array_of(path, tensor) for tensor in proto.initializer}
    for sparse in proto.sparse_initializer:
        constants[sparse.values.name] = _dense(path, sparse)
    inputs = [_port(value) for value in proto.input if value.name not in constants]
    outputs = [_port(value) for value in proto.output]
    nodes = [node_of(path, node, opsets, {}) for node in proto.node]
    return Graph(proto.name, inputs, outputs, constants, nodes)


def nodes_of_function(path: str, function: Function, attributes: dict[str, Any], instance: str) -> list[Node]:
    """The nodes of a function for a call with these attributes, as messages."""
    proto = function.proto
    known = {default.name: default for default in proto.attribute_proto} | attributes
    prefix = f"{instance}/" if instance else ""
    return [node_of(path, node, function.opsets, known, prefix) for node in proto.node]


def node_of(path: str, proto: Any, opsets: dict[str, int], known: dict[str, Any], prefix: str = "") -> Node:
    """A node of a message; ``known`` are the attributes of the function around it, as messages."""
    domain = "" if proto.domain == "ai.onnx" else proto.domain
    attributes = {}
    for attribute in proto.attribute:
        message = attribute
        if attribute.ref_attr_name:
            if attribute.ref_attr_name not in known:
                continue  # which the call did not give, and which has no default
            message = known[attribute.ref_attr_name]
        attributes[attribute.name] = _attribute(path, message, opsets, known)
    if known:  # bodies that depend on types are made from the message
        proto = _without_references(proto, known)
    opset = opsets.get(domain, 1)
    name = prefix + (proto.name or proto.op_type) if prefix else proto.name
    return Node(proto.op_type, domain, opset, name, tuple(proto.input), tuple(proto.output), attributes, proto)


def _without_references(proto: Any, known: dict[str, Any]) -> Any:
    copy = type(proto)()
    copy.CopyFrom(proto)
    del copy.attribute[:]
    for attribute in proto.attribute:
        if not attribute.ref_attr_name:
            copy.attribute.add().CopyFrom(attribute)
        elif attribute.ref_attr_name in known:
            entry = copy.attribute.add()
            entry.CopyFrom(known[attribute.ref_attr_name])
            entry.name = attribute.name
    return copy


def _attribute(path: str, message: Any, opsets: dict[str, int], known: dict[str, Any]) -> Any:
    kinds = onnx().AttributeProto
    kind = message.type
    if kind == kinds.FLOAT:
        return message.f
    if kind == kinds.INT:
        return message.i
    if kind == kinds.STRING:
        return _text(message.s)
    if kind == kinds.TENSOR:
        return array_of(path, message.t)
    if kind == kinds.GRAPH:
        return _inner(path, message.g, opsets, known)
    if kind == kinds.FLOATS:
        return list(message.floats)
    if kind == kinds.INTS:
        return list(message.ints)
    if kind == kinds.STRINGS:
        return [_text(s) for s in message.strings]
    if kind == kinds.SPARSE_TENSOR:
        return _dense(path, message.sparse_tensor)
    if kind == kinds.TENSORS:
        return [array_of(path, t) for t in message.tensors]
    if kind == kinds.TYPE_PROTO:
        return message.tp
    raise OnnxError("onnx", f"{path}: the attribute {message.name!r} has the kind {kind}, which is not known here.")


def _inner(path: str, proto: Any, opsets: dict[str, int], known: dict[str, Any]) -> Graph:
    graph = graph_of(path, proto, opsets)
    if known:
        graph.nodes = [node_of(path, node, opsets, known) for node in proto.node]
    return graph


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _port(value: Any) -> Port:
    kind = value.type
    if not kind.HasField("tensor_type"):
        return Port(value.name)
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return Port(value.name, tensor.elem_type)
    shape: list[int | str | None] = []
    for dim in tensor.shape.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            shape.append(dim.dim_value)
        else:
            shape.append(dim.dim_param or None)
    return Port(value.name, tensor.elem_type, tuple(shape))


def array_of(path: str, tensor: Any) -> np.ndarray:
    """The values of a tensor of the file."""
    _check_tensor(path, tensor)
    try:
        array: np.ndarray = onnx().numpy_helper.to_array(tensor)
        if array.dtype.kind == "O":  # strings; arrays of objects are those of open extents
            words = [each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in array.flat]
            array = np.array(words, str).reshape(array.shape)
    except Exception as error:
        raise OnnxError("onnx", f"{path}: the tensor {tensor.name!r} cannot be read: {error}") from None
    return array


def _dense(path: str, sparse: Any) -> np.ndarray:
    values, indices = array_of(path, sparse.values), array_of(path, sparse.indices)
    dims = list(sparse.dims)
    if any(n < 0 for n in dims) or math.prod(dims) > MOST_ELEMENTS:
        raise OnnxError("onnx", f"{path}: the tensor {sparse.values.name!r} has the shape {dims}.")
    dense = np.zeros(dims, values.dtype)
    try:
        if indices.ndim == 2:
            dense[tuple(indices.T)] = values
        else:
            dense.reshape(-1)[indices] = values
    except IndexError:
        raise OnnxError(
            "onnx", f"{path}: the sparse tensor {sparse.values.name!r} has indices outside of it."
        ) from None
    return dense
