"""What of a file runs here, and how."""

from __future__ import annotations

import collections
import dataclasses
import os
from typing import Any

from hybridflow.errors import OnnxError
from hybridflow.onnx import operators
from hybridflow.onnx.graph import File, Node
from hybridflow.onnx.library import dtype_of, onnx, schema_version
from hybridflow.onnx.reading import nodes_of_function, read


@dataclasses.dataclass
class Report:
    """What ``hf.onnx.check`` says of a file: counts of operators by how they run.

    Args:
        path: the file.
        opsets: the opset of each domain.
        direct: how many nodes run by a function of the table, by operator.
        by_definition: how many run by the function that defines the operator.
        missing: nodes that do not run, and why.
        inputs: the inputs as text.
        outputs: the outputs as text.
        weights: how many numbers its constants are.
        notes: what one should know.

    >>> hf.onnx.Report("a.onnx", {"": 21}, {"Relu": 1}, {}, [], ["x: f32[?]"], ["y"], 0, []).runs
    True
    """

    path: str
    opsets: dict[str, int]
    direct: dict[str, int]
    by_definition: dict[str, int]
    missing: list[str]
    inputs: list[str]
    outputs: list[str]
    weights: int
    notes: list[str]

    @property
    def runs(self) -> bool:
        """Whether all nodes can be run."""
        return not self.missing

    def __str__(self) -> str:
        opsets = ", ".join(f"{domain or 'ai.onnx'} {version}" for domain, version in sorted(self.opsets.items()))
        lines = [f"{self.path}: opset {opsets}; {self.weights:,} numbers of weights"]
        lines += [f"  input   {text}" for text in self.inputs]
        lines += [f"  output  {text}" for text in self.outputs]
        for title, counts in (("runs", self.direct), ("runs by its definition", self.by_definition)):
            if counts:
                lines.append(f"  {title}: " + ", ".join(f"{op} {count}" for op, count in counts.items()))
        lines += [f"  does not run: {text}" for text in self.missing]
        lines += [f"  note: {text}" for text in self.notes]
        return "\n".join(lines)


def check(path: str | os.PathLike[str]) -> Report:
    """Check which nodes of an ONNX file run: by functions here, by the operators' definitions, or not at all.

    Args:
        path: the file.

    Returns:
        A ``Report``, which prints as text; ``runs`` says whether all nodes do.

    Raises:
        OnnxError: for what is no ONNX file, and is damaged or too large.
        ImportError: without the package ``onnx``.

    >>> hf.onnx.check("no such file.onnx")    # doctest: +ELLIPSIS
    Traceback (most recent call last):
    hybridflow.errors.OnnxError: [onnx] no such file.onnx cannot be read: ...
    """
    file = read(os.fspath(path))
    direct: collections.Counter[str] = collections.Counter()
    defined: collections.Counter[str] = collections.Counter()
    missing: list[str] = []
    for node in file.graph.all_nodes():
        _judge(file, node, direct, defined, missing, 0)
    notes = []
    if not any(node.op == "BatchNormalization" for node in file.graph.all_nodes()) and direct["Conv"]:
        notes.append("there is no BatchNormalization: exporters fold it into the weights of Conv.")
    weights = sum(array.size for array in file.graph.constants.values())
    inputs = [_text(port, missing) for port in file.graph.inputs]
    outputs = [_text(port, missing) for port in file.graph.outputs]
    return Report(
        file.path,
        file.opsets,
        dict(direct.most_common()),
        dict(defined.most_common()),
        missing,
        inputs,
        outputs,
        weights,
        notes,
    )


def _judge(file: File, node: Node, direct: Any, defined: Any, missing: list[str], depth: int) -> None:
    local = file.functions.get((node.domain, node.op))
    if local is not None:
        direct[f"{node.domain}.{node.op}"] += 1
        if depth < 8:
            for inner in nodes_of_function(file.path, local, {}, node.name or node.op):
                _judge(file, inner, direct, defined, missing, depth + 1)
        return
    version = schema_version(node.domain, node.op, node.opset)
    if version is None and node.domain == operators.MICROSOFT:
        version = 1
    name = f"{node.domain}.{node.op}" if node.domain else node.op
    row = None if version is None else operators.find(node.domain, node.op, version)
    if row is not None:
        unknown = node.attributes.keys() - row.attributes
        if unknown:
            missing.append(f"{node}: the attribute {min(unknown)!r} is not supported")
        else:
            direct[name] += 1
    elif version is not None and _has_definition(node):
        defined[name] += 1
    else:
        missing.append(f"{node} of opset {node.opset}")


def _has_definition(node: Node) -> bool:
    try:
        schema = onnx().defs.get_schema(node.op, node.opset, node.domain)
    except onnx().defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _text(port: Any, missing: list[str]) -> str:
    if not port.element:
        return port.name
    try:
        dtype = str(dtype_of(port.element))
    except OnnxError as error:
        missing.append(f"{port.name}: {error.message}")
        return str(port.name)
    shape = "" if port.shape is None else "[" + ",".join("?" if n is None else str(n) for n in port.shape) + "]"
    return f"{port.name}: {dtype}{shape}"
