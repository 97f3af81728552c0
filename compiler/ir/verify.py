"""The rules of the IR, as a table, and the verifier that holds a graph against them.

A broken rule is a defect of whoever made the graph, never of the user; the error names the pass, the node's text and
the user's line that the node came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hybridflow.compiler.ir.attributes import attrs_key, same_attrs
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Graph, Literal, Node, Role
from hybridflow.compiler.ir.text import node_text, value_names
from hybridflow.compiler.ir.types import Dim
from hybridflow.errors import VerifyError

Fault = tuple[Node, str]  # the node, and what is wrong with it, as the end of a sentence that begins with its name


class Rule(NamedTuple):
    """``faults(graph)`` yields each node that breaks the rule, and how."""

    name: str
    meaning: str
    faults: Callable[[Graph], Iterator[Fault]]


def _parameters(graph: Graph) -> Iterator[Fault]:
    for node in graph.inputs:
        if not node.is_parameter:
            yield node, "is an input of the graph but no parameter"
    for node in graph.nodes:
        if node.is_parameter:
            yield node, "is a parameter but no input of the graph"


def _definitions(graph: Graph) -> Iterator[Fault]:
    seen: set[Node] = set()
    for node in (*graph.inputs, *graph.nodes):
        if node in seen:
            yield node, "is defined twice"
        seen.add(node)


def _order(graph: Graph) -> Iterator[Fault]:
    known = set(graph.inputs)
    for node in graph.nodes:
        for i, source in enumerate(node.inputs):
            if source not in known:
                yield node, f"reads a value as input {i} that no node above it defines ({source!r})"
        known.add(node)


def _results(graph: Graph) -> Iterator[Fault]:
    known = {*graph.inputs, *graph.nodes}
    for node in graph.results:
        if node not in known:
            yield node, "is a result of the graph but not one of its nodes"


def _updates(graph: Graph) -> Iterator[Fault]:
    for i, value in graph.updates.items():
        if not 0 <= i < len(graph.inputs):
            yield value, f"updates input {i}, but the graph has {len(graph.inputs)} inputs"
            continue
        target = graph.inputs[i]
        if target.attrs["role"] is not Role.STATE:
            yield value, f"updates input {i}, whose role is {target.attrs['role'].value}, not state"
        if target.type != value.type:
            yield value, f"has type {value.type} but updates input {i} of type {target.type}"


def _arity(graph: Graph) -> Iterator[Fault]:
    for node in graph.nodes:
        if node.op.arity is not None and node.op.arity != len(node.inputs):
            yield node, f"has {len(node.inputs)} inputs but {node.op.name} takes {node.op.arity}"


def _types(graph: Graph) -> Iterator[Fault]:
    for node in graph.nodes:
        try:
            expected = node.op.infer(*[n.type for n in node.inputs], **node.attrs)
        except Exception as error:  # whatever the rule of an op makes of nonsense
            yield node, f"does not fit its inputs: {error}"
            continue
        if expected != node.type:
            yield node, f"has type {node.type} but {node.op.name} infers {expected}"


def _symbols(graph: Graph) -> Iterator[Fault]:
    known = {extent for node in graph.inputs for extent in node.type.shape}
    for node in graph.nodes:
        for extent in node.type.shape:
            if isinstance(extent, Dim) and extent not in known:
                yield node, f"has the symbolic extent {extent}, which no input of the graph has"


def _attributes(graph: Graph) -> Iterator[Fault]:
    for node in graph.nodes:
        try:
            attrs_key(node.attrs)
        except TypeError as error:
            yield node, f"has an attribute that cannot be hashed and printed: {error}"


def _canonical(graph: Graph) -> Iterator[Fault]:
    for node in graph.nodes:
        if node.op.canon is None:
            continue
        try:
            canonical = node.op.canon(tuple([n.type for n in node.inputs]), dict(node.attrs))
        except Exception as error:  # whatever the rule of an op makes of nonsense
            yield node, f"has attributes that {node.op.name} does not accept: {error}"
            continue
        if not same_attrs(canonical, node.attrs):
            yield node, f"has attributes that are not canonical, which would be {canonical}"


def _constants(graph: Graph) -> Iterator[Fault]:
    for node in graph.nodes:
        for value in node.attrs.values():
            if isinstance(value, Literal) and len(value.data) > MAX_LITERAL_BYTES:
                yield (
                    node,
                    f"holds a constant of {len(value.data)} bytes; more than {MAX_LITERAL_BYTES} are an argument",
                )


STRUCTURE = (
    Rule("parameters", "inputs are parameters, and parameters are inputs", _parameters),
    Rule("definitions", "each node stands in the graph once", _definitions),
    Rule("order", "each node stands after its inputs", _order),
    Rule("results", "outputs and updates are values of the graph", _results),
    Rule("updates", "an update gives a state input a value of the same type", _updates),
)
"""What holds a graph together.  Quick: it looks at no op."""

MEANING = (
    Rule("arity", "each node has as many inputs as its op takes", _arity),
    Rule("attributes", "attributes are hashable values of the few allowed types", _attributes),
    Rule("canonical", "attributes are as the op's canon leaves them", _canonical),
    Rule("types", "each node has the type that its op infers", _types),
    Rule("symbols", "each symbolic extent is an extent of some input", _symbols),
    Rule("constants", f"a constant has at most {MAX_LITERAL_BYTES} bytes", _constants),
)
"""What makes each node a use of its op.  Asks every op again."""

RULES = STRUCTURE + MEANING


def verify(graph: Graph, stage: str = "", rules: tuple[Rule, ...] = RULES) -> None:
    """Raise VerifyError at the first broken rule; ``stage`` says what ran before, as in ``after pass 'cse'``.

    Rules are checked in order: a later one may rely on the earlier ones.
    """
    for rule in rules:
        for node, fault in rule.faults(graph):
            names = value_names(graph)
            raise VerifyError(
                "verify",
                f"{stage + ': ' if stage else ''}{names.get(node, 'a value')} {fault}.\n"
                f"  in: {node_text(node, names)}\n"
                f"  rule: {rule.name}: {rule.meaning}",
                node.where or "",
            )
