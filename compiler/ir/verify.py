"""The rules of the IR, as a table, and the verifier that holds a graph against them.

A broken rule is a defect of whoever made the graph, never of the user; the error names the pass, the node's text and
the user's line that the node came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from hybridflow.compiler.ir.attributes import attrs_key, same_attrs
from hybridflow.compiler.ir.extents import affine, symbols
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Effect, Graph, Literal, Node, Role, graphs_in
from hybridflow.compiler.ir.results import TupleType, is_token, parts_of, types_agree
from hybridflow.compiler.ir.text import node_text, value_names
from hybridflow.errors import VerifyError
from hybridflow.quick_dataclasses import dataclass


@dataclass(frozen=True)
class Scope:
    """Where a graph stands: the symbols of the whole program, and whether it is part of another graph."""

    symbols: frozenset[str]
    inside: bool = False


Fault = tuple[Node, str]  # the node, and what is wrong with it, as the end of a sentence that begins with its name


class Rule(NamedTuple):
    """``faults(graph, scope)`` yields each node that breaks the rule, and how."""

    name: str
    meaning: str
    faults: Callable[[Graph, Scope], Iterator[Fault]]


def _parameters(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for node in graph.inputs:
        if not node.is_parameter:
            yield node, "is an input of the graph but no parameter"
    for node in graph.nodes:
        if node.is_parameter:
            yield node, "is a parameter but no input of the graph"


def _definitions(graph: Graph, scope: Scope) -> Iterator[Fault]:
    seen: set[Node] = set()
    for node in (*graph.inputs, *graph.nodes):
        if node in seen:
            yield node, "is defined twice"
        seen.add(node)


def _order(graph: Graph, scope: Scope) -> Iterator[Fault]:
    known = set(graph.inputs)
    for node in graph.nodes:
        for i, source in enumerate(node.inputs):
            if source not in known:
                yield node, f"reads a value as input {i} that no node above it defines ({source!r})"
        known.add(node)


def _results(graph: Graph, scope: Scope) -> Iterator[Fault]:
    known = {*graph.inputs, *graph.nodes}
    for node in graph.results:
        if node not in known:
            yield node, "is a result of the graph but not one of its nodes"


def _updates(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for i, value in graph.updates.items():
        if not 0 <= i < len(graph.inputs):
            yield value, f"updates input {i}, but the graph has {len(graph.inputs)} inputs"
            continue
        target = graph.inputs[i]
        if target.attrs["role"] is Role.CAPTURE:
            yield value, f"updates input {i}, whose role is {target.attrs['role'].value}, which never changes"
        if not types_agree(target.type, value.type):
            yield value, f"has type {value.type} but updates input {i} of type {target.type}"


def _arity(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for node in graph.nodes:
        if node.op.arity is not None and node.op.arity != len(node.inputs):
            yield node, f"has {len(node.inputs)} inputs but {node.op.name} takes {node.op.arity}"


def _types(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for node in graph.nodes:
        try:
            expected = node.op.infer(*[n.type for n in node.inputs], **node.attrs)
        except Exception as error:  # whatever the rule of an op makes of nonsense
            yield node, f"does not fit its inputs: {error}"
            continue
        if not types_agree(expected, node.type):
            yield node, f"has type {node.type} but {node.op.name} infers {expected}"


def _several(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for node in graph.inputs:
        if isinstance(node.type, TupleType):
            yield node, f"is an input of type {node.type}; an input is one value"
    for node in graph.nodes:
        for source in node.inputs:
            if isinstance(source.type, TupleType) and node.op.name != "project":
                yield node, f"reads a value of type {source.type}; its results are read through project"
    for node in graph.results:
        if isinstance(node.type, TupleType):
            yield node, f"is a result of the graph, of type {node.type}; a result is one value"


def _tokens(graph: Graph, scope: Scope) -> Iterator[Fault]:
    """One chain: each token comes from one place and goes to one, so that effects have one order."""
    begun = [n for n in graph.inputs if is_token(n.type)]
    for node in begun:
        if not scope.inside:
            yield node, "is a token, which nobody can pass to a program"
    for node in graph.nodes:
        if not node.inputs and is_token(node.type):
            begun.append(node)
            if scope.inside:
                yield node, "begins a new order of effects inside of a sub-graph, whose token comes in as an input"
    for node in begun[1:]:
        yield node, "begins a second order of effects"
    readers: dict[Node, int] = {}
    for node in graph.nodes:
        tokens = [n for n in node.inputs if is_token(n.type)]
        if tokens and node.op.effect is not Effect.ORDERED:
            yield node, "reads a token, but has no effect to be put in order"
        if len(tokens) > 1:
            yield node, "reads two tokens"
        for source in tokens:
            readers[source] = readers.get(source, 0) + 1
            if readers[source] > 1:
                yield node, "reads a token that another effect has taken already"
    returned = [n for n in graph.outputs if is_token(n.type)]
    for node in returned:
        if not scope.inside:
            yield node, "is a token, which no program returns"
        if node in readers:
            yield node, "is a token that is returned, although an effect has taken it"
    if scope.inside and len(returned) != len(begun):
        yield (returned or begun)[0], "is a token; a sub-graph returns as many as it takes"


def _symbols_of_inputs(graph: Graph) -> frozenset[str]:
    """The symbols that can be read from the extents of the inputs."""
    extents = [extent for node in graph.inputs for part in parts_of(node.type) for extent in part.shape]
    return frozenset(source[0] for source in map(affine, extents) if source is not None)


def _symbols(graph: Graph, scope: Scope) -> Iterator[Fault]:
    known = scope.symbols | _symbols_of_inputs(graph)
    for node in (*graph.inputs, *graph.nodes):
        for part in parts_of(node.type):
            for extent in part.shape:
                for name in symbols(extent):
                    if name not in known:
                        yield node, f"has the extent {extent}, but no input of the graph says what {name} is"


def _closed(graph: Graph, scope: Scope) -> Iterator[Fault]:
    """Symbols are those of the whole program: a sub-graph brings none of its own."""
    for node in graph.inputs:
        for extent in node.type.shape:
            for name in symbols(extent):
                if scope.inside and name not in scope.symbols:
                    yield node, f"has the extent {extent}, but no input of the program says what {name} is"


def _conditions(graph: Graph, scope: Scope) -> Iterator[Fault]:
    """Calls of the whole program fulfil them, so they are of its arguments' extents."""
    told = _symbols_of_inputs(graph)
    for extent in graph.conditions:
        for node in (*graph.inputs, *graph.nodes)[:1]:
            if scope.inside:
                yield node, f"is in a sub-graph that assumes {extent} >= 0, which nobody checks"
            elif not told.issuperset(symbols(extent)):
                yield node, f"is in a graph that assumes {extent} >= 0, but no input says what that is"


def _attributes(graph: Graph, scope: Scope) -> Iterator[Fault]:
    for node in graph.nodes:
        try:
            attrs_key(node.attrs)
        except TypeError as error:
            yield node, f"has an attribute that cannot be hashed and printed: {error}"


def _canonical(graph: Graph, scope: Scope) -> Iterator[Fault]:
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


def _constants(graph: Graph, scope: Scope) -> Iterator[Fault]:
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
    Rule("several", "only project reads a value with several results", _several),
    Rule("tokens", "effects are in one order, and a token is taken once", _tokens),
    Rule("updates", "an update gives an input that may change a value of the same type", _updates),
)
"""What holds a graph together.  Quick: it looks at no op."""

MEANING = (
    Rule("arity", "each node has as many inputs as its op takes", _arity),
    Rule("attributes", "attributes are hashable values of the few allowed types", _attributes),
    Rule("canonical", "attributes are as the op's canon leaves them", _canonical),
    Rule("types", "each node has the type that its op infers", _types),
    Rule("symbols", "each symbol can be read from the extents of the inputs", _symbols),
    Rule("closed", "the symbols of sub-graphs are those of the program", _closed),
    Rule("conditions", "conditions are those of the program's arguments", _conditions),
    Rule("constants", f"a constant has at most {MAX_LITERAL_BYTES} bytes", _constants),
)
"""What makes each node a use of its op.  Asks every op again."""

RULES = STRUCTURE + MEANING


def verify(graph: Graph, stage: str = "", rules: tuple[Rule, ...] = RULES) -> None:
    """Raise VerifyError at the first broken rule; ``stage`` says what ran before, as in ``after pass 'cse'``.

    Rules are checked in order: a later one may rely on the earlier ones.
    """
    _verify(graph, stage, rules, Scope(_symbols_of_inputs(graph)))


def _verify(graph: Graph, stage: str, rules: tuple[Rule, ...], scope: Scope) -> None:
    for node in graph.nodes:
        symbols = {node.attrs["symbol"]} if node.op.name == "sized" else ()
        for k, inner in enumerate(graphs_in(node.attrs)):
            place = f"{stage + ', ' if stage else ''}in graph {k} of {node.op.name}"
            _verify(inner, place, rules, Scope(scope.symbols.union(symbols), inside=True))
    for rule in rules:
        for node, fault in rule.faults(graph, scope):
            names = value_names(graph)
            raise VerifyError(
                "verify",
                f"{stage + ': ' if stage else ''}{names.get(node, 'a value')} {fault}.\n"
                f"  in: {node_text(node, names)}\n"
                f"  rule: {rule.name}: {rule.meaning}",
                node.where or "",
            )
