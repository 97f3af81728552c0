"""Each rule of the IR, broken once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import MAX_LITERAL_BYTES, Graph, Literal, Node, Role, parameter
from hybridflow.compiler.ir.results import TOKEN, TupleType
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ir.verify import RULES, verify
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import VerifyError

F3 = TensorType((3,), dt.float32)
X = parameter(F3, "x", where="user.py:1")
W = parameter(F3, "w", Role.STATE)


def node(op: str, *inputs: Node, type: TensorType = F3, **attrs) -> Node:
    return Node(TABLE[op], inputs, attrs, type, "user.py:9")


def graph(*nodes: Node, inputs=(X, W), outputs=None, updates=None) -> Graph:
    return Graph("g", inputs, nodes, nodes[-1:] if outputs is None else outputs, updates or {})


def constant(array: np.ndarray) -> Node:
    literal = Literal.of(array)
    return node("constant", type=literal.type, value=literal)


EXP = node("exp", X)
SIN = node("sin", EXP)
BIG = constant(np.zeros(MAX_LITERAL_BYTES + 1, np.int8))
SYMBOLIC = TensorType((Dim("n"),), dt.float32)
ONE = constant(np.float32(1))
SUM = node("sum", X, type=TensorType((), dt.float32), axes=(0,))


def pair(*inputs: Node, **attrs) -> Node:
    return node("call", *inputs, type=TupleType((F3, F3)), body=graph(inputs=(X,), outputs=(X, X)), **attrs)


PAIR = pair(X)
TOKENS = graph(inputs=(T := parameter(TOKEN, "t"), X), outputs=(T, X))


def taking(token: Node, body: Graph = TOKENS) -> Node:
    return node("call", token, X, type=TupleType((TOKEN, F3)), body=body)


BROKEN = {
    "several": [
        (
            graph(PAIR, node("exp", PAIR)),
            "reads a value of type (f32[3], f32[3]); its results are read through project",
        ),
        (graph(PAIR), "is a result of the graph, of type (f32[3], f32[3])"),
        (graph(inputs=(P := parameter(TupleType((F3,)), "p"),), outputs=()), "is an input of type (f32[3],)"),
    ],
    "tokens": [
        (TOKENS, "%0 is a token, which nobody can pass to a program"),
        (graph(T, node("exp", T), inputs=(X,), outputs=()), "reads a token, but has no effect to be put in order"),
    ],
    "closed": [
        (
            graph(node("call", body=Graph("inner", (S := parameter(SYMBOLIC, "s"),), (), (S,)), type=TupleType(()))),
            "in graph 0 of call: %0 has the extent n, but no input of the program says what n is",
        )
    ],
    "parameters": [
        (graph(EXP, W, inputs=(X,)), "%2 is a parameter but no input of the graph"),
        (graph(inputs=(EXP,), outputs=()), "%0 is an input of the graph but no parameter"),
    ],
    "definitions": [(graph(EXP, EXP), "is defined twice"), (graph(inputs=(X, X)), "is defined twice")],
    "order": [
        (graph(SIN, EXP), "%2 reads a value as input 0 that no node above it defines (<exp f32[3]>)"),
        (graph(SIN), "no node above it defines"),
    ],
    "results": [
        (graph(EXP, outputs=(SIN,)), "is a result of the graph but not one of its nodes"),
        (graph(EXP, updates={1: SIN}), "is a result of the graph but not one of its nodes"),
    ],
    "updates": [
        (
            graph(EXP, inputs=(parameter(F3, "c", Role.CAPTURE), X), updates={0: EXP}),
            "%2 updates input 0, whose role is capture, which never changes",
        ),
        (graph(EXP, updates={7: EXP}), "updates input 7, but the graph has 2 inputs"),
        (graph(SUM, updates={1: SUM}), "has type f32[] but updates input 1 of type f32[3]"),
    ],
    "arity": [(graph(node("add", X)), "has 1 inputs but add takes 2")],
    "attributes": [
        (graph(node("reverse", X, axes=[0])), "[0] of type list may not be an attribute"),
        (graph(node("reverse", X, axes=(np.int64(0),))), "of type int64 may not be an attribute"),
    ],
    "canonical": [
        (graph(node("reverse", X, axes=(-1,))), "attributes that are not canonical, which would be {'axes': (0,)}"),
        (graph(node("reverse", X, axes=(3,))), "has attributes that reverse does not accept"),
    ],
    "types": [
        (graph(node("exp", X, type=TensorType((4,), dt.float32))), "%2 has type f32[4] but exp infers f32[3]"),
        (graph(node("exp", X, type=F3.with_dtype(dt.float64))), "%2 has type f64[3] but exp infers f32[3]"),
        (graph(node("logical_not", X)), "does not fit its inputs: [logical_not]"),
        (graph(node("exp", X, unknown=1)), "does not fit its inputs"),
    ],
    "symbols": [
        (
            graph(ONE, node("broadcast", ONE, type=SYMBOLIC, shape=SYMBOLIC.shape, axes=())),
            "has the extent n, but no input of the graph says what n is",
        )
    ],
    "conditions": [
        (replace(graph(EXP), conditions=(Dim("n") - 3,)), "assumes n-3 >= 0, but no input says what that is"),
        (
            graph(
                node("call", X, type=TupleType((F3,)), body=replace(graph(inputs=(X,), outputs=(X,)), conditions=(1,)))
            ),
            "%0 is in a sub-graph that assumes 1 >= 0, which nobody checks",
        ),
    ],
    "constants": [(graph(BIG), "holds a constant of 4097 bytes; more than 4096 are an argument")],
}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)
def test_each_rule_is_enforced(rule):
    for broken, message in BROKEN[rule.name]:
        with pytest.raises(VerifyError) as caught:
            verify(broken, "after pass 'x'", rules=(rule,))
        said = str(caught.value)
        assert message in said and said.startswith("[verify] after pass 'x'")
        assert f"rule: {rule.name}: {rule.meaning}" in said
        with pytest.raises(VerifyError):
            verify(broken)


def test_the_error_names_the_node_and_the_users_line():
    with pytest.raises(VerifyError, match=r"in: %2: f32\[4\] = exp\(%0\)\n.*\(user\.py:9\)$"):
        verify(graph(node("exp", X, type=TensorType((4,), dt.float32))))


def test_correct_graphs_pass():
    update = node("add", W, SIN)
    verify(graph(EXP, SIN, update, outputs=(SIN, SIN, X), updates={1: update}))
    verify(graph(inputs=(), outputs=()))
    verify(graph(constant(np.zeros(MAX_LITERAL_BYTES, np.int8))))
