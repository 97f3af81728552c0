"""The text form: what prints parses back to the same graph, and what does not parse says where."""

from __future__ import annotations

import math
import re
import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.attributes import key
from hybridflow.compiler.ir.graph import Graph, Literal, Node, Role, parameter
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import ParseError
from tests.support.random_programs import traced

EXAMPLE = """graph step(%0: f32[2,n] "x", %1: f32[3] "w" state, %2: f32[3] "c" capture) {
  %3: f32[2,3] = broadcast(%1) {axes=(1,), shape=(2, 3)}  # /home/ann/my code/train.py:3
  %4: f32[3] = add(%1, %2)
  return %3, %0
  update %1 = %4
}
"""


def assert_same_graph(a: Graph, b: Graph, locations: bool = True) -> None:
    """Structure by structure, apart from the text."""
    assert (a.name, len(a.inputs), len(a.nodes)) == (b.name, len(b.inputs), len(b.nodes))
    pairs = dict(zip((*a.inputs, *a.nodes), (*b.inputs, *b.nodes)))
    for x, y in pairs.items():
        assert x.op is y.op and x.type == y.type
        assert [pairs[n] for n in x.inputs] == list(y.inputs)
        assert x.attrs.keys() == y.attrs.keys()
        for name in x.attrs:
            if name != "role":
                assert key(x.attrs[name]) == key(y.attrs[name])
        if x.is_parameter:
            assert x.attrs["role"] is y.attrs["role"]
        assert y.where == (x.where if locations else None)
    assert [pairs[n] for n in a.outputs] == list(b.outputs)
    assert {i: pairs[n] for i, n in a.updates.items()} == b.updates


def test_example_reads_as_it_is_written():
    graph = parse(EXAMPLE, TABLE)
    assert to_text(graph) == EXAMPLE
    assert graph.nodes[0].where == "/home/ann/my code/train.py:3" and graph.nodes[1].where is None
    assert graph.inputs[0].shape == (2, Dim("n")) and graph.inputs[2].attrs["role"] is Role.CAPTURE
    assert graph.updates == {1: graph.nodes[1]}


@pytest.mark.parametrize("seed", range(30))
def test_random_programs_come_back(seed):
    found = traced(seed)
    if found is None:
        pytest.skip("this program raises while it is traced")
    graph = found[0]
    for locations in (True, False):
        text = to_text(graph, locations)
        again = parse(text, TABLE)
        assert_same_graph(graph, again, locations)
        assert to_text(again, locations) == text


def of_one_node(**attrs) -> Graph:
    type = TensorType((), dt.float32)
    x = parameter(type, "x")
    return Graph("g", (x,), (Node(TABLE["exp"], (x,), attrs, type),), (x,))


def any_float_bits() -> st.SearchStrategy[float]:
    return st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", struct.pack("<Q", bits))[0])


SCALARS = st.one_of(
    st.integers(),
    st.floats(),
    any_float_bits(),
    st.booleans(),
    st.none(),
    st.text(),
    st.sampled_from(dt.REAL),
    st.text(min_size=1).map(Dim),
    st.sampled_from(["n", "inf", "f32", "True", "batch_1"]).map(Dim),
)


def literals() -> st.SearchStrategy[Literal]:
    def of(dtype, shape, data):
        size = int(np.prod(shape)) * dtype.itemsize
        if dtype == dt.bool_:
            data = bytes(byte & 1 for byte in data)
        return Literal(TensorType(shape, dtype), (data * (size // max(len(data), 1) + 1))[:size])

    shapes = st.lists(st.integers(0, 5), max_size=3).map(tuple)
    return st.builds(of, st.sampled_from(dt.REAL), shapes, st.binary(min_size=1, max_size=40))


@settings(deadline=None)
@given(st.recursive(st.one_of(SCALARS, literals()), lambda v: st.lists(v, max_size=4).map(tuple)), st.text())
def test_any_attribute_and_name_comes_back(value, name):
    graph = of_one_node(v=value)
    graph = Graph(name, graph.inputs, graph.nodes, graph.outputs)
    assert_same_graph(graph, parse(to_text(graph), TABLE))


@pytest.mark.parametrize(
    "value, text",
    [
        (-0.0, "-0.0"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (1, "1"),
        (1.0, "1.0"),
        (True, "True"),
        ((), "()"),
        ((1,), "(1,)"),
        (Dim("n"), "n"),
        (Dim("f32"), '@"f32"'),
        (dt.bfloat16, "bf16"),
        ("a\nb", r'"a\nb"'),
        (Literal.of(np.float32(0.1)), "f32[] 0.1"),
        (Literal.of(np.array([1, -0.0, np.inf], np.float16)), "f16[3] [1.0, -0.0, inf]"),
        (Literal.of(np.array([0.5], ml_dtypes.bfloat16)), "bf16[1] [0.5]"),
        (Literal.of(np.array([[True, False]])), "bool[1,2] [True, False]"),
        (Literal.of(np.array([2**64 - 1], np.uint64)), "u64[1] [18446744073709551615]"),
        (Literal.of(np.zeros((0, 3), np.int8)), "i8[0,3] []"),
        (Literal.of(np.array(0x7FC00001, np.uint32).view(np.float32)), "f32[] 0x0100c07f"),
        (Literal.of(np.arange(20, dtype=np.uint8)), "u8[20] 0x" + bytes(range(20)).hex()),
    ],
    ids=str,
)
def test_values_are_readable(value, text):
    assert f"{{v={text}}}" in to_text(of_one_node(v=value))


def test_parameters_keep_their_lines():
    x = parameter(TensorType((Dim("n"),), dt.float32), "x", where="user.py:7")
    y = parameter(TensorType((), dt.bool_), "y", Role.STATE)
    graph = Graph("Model.<lambda>", (x, y), (), (y, x))
    head = 'graph "Model.<lambda>"(\n  %0: f32[n] "x"  # user.py:7\n  %1: bool[] "y" state\n) {\n'
    assert to_text(graph).startswith(head)
    assert_same_graph(graph, parse(to_text(graph), TABLE))


def test_conditions():
    n, m = Dim("n"), Dim("m")
    x = parameter(TensorType((n, m), dt.float32), "x")
    conditions = (n - 10, n * m * -1 + 100, (n + 1) // 3 - m)
    graph = Graph("g", (x,), (), (x,), conditions=conditions)
    assert "  assume n-10 >= 0\n  assume -m*n+100 >= 0\n  assume -m+(n+1)//3 >= 0\n" in to_text(graph)
    assert parse(to_text(graph), TABLE).conditions == conditions


def test_no_inputs_no_outputs():
    graph = Graph("empty", (), (), ())
    assert to_text(graph) == "graph empty() {\n  return\n}\n"
    assert_same_graph(graph, parse(to_text(graph), TABLE))


@pytest.mark.parametrize(
    "before, after, message, under",
    [
        ("broadcast", "brodcast", "line 2: there is no op 'brodcast'; did you mean 'broadcast'?", "brodcast"),
        ("add(%1, %2)", "add(%1, %9)", "line 3: %9 is not defined above", "%9)"),
        ("%4: f32[3]", "%3: f32[3]", "line 3: %3 is defined twice", "%3: f32[3]"),
        ("update %1", "update %4", "line 5: %4 is no input", "%4 ="),
        ("= %4\n", "= %4\n update %1 = %4\n", "line 6: %1 is updated twice", "%1 = %4\n}"),
        ("axes=(1,)", "axes=(1", "line 2: expected ',', found '='", "=(2, 3)"),
        ("axes=(1,)", "axes=1, axes=2", "line 2: attribute 'axes' is given twice", "axes=2"),
        ("axes=(1,)", "axes=f32[2] [1.0]", "line 2: f32[2] holds 2 elements, found 1", "f32[2] ["),
        ("axes=(1,)", "axes=f32[1] 0x00", "line 2: expected 4 bytes, found 1", "0x00"),
        ("axes=(1,)", "axes=u8[] -1", "line 2: not a constant of type u8[]", "u8[]"),
        ("axes=(1,)", "axes=f32[n] [1.0]", "line 2: a constant needs a static shape", "f32[n] ["),
        ("f32[2,n]", "g32[2,n]", "line 1: 'g32' is no dtype", "g32"),
        ("state", "stat", "line 1: 'stat' is no role; there are argument, capture, state", "stat,"),
        ("return", "retrun", "line 4: expected 'return', found 'retrun'", "retrun"),
        ("}\n", "", "expected '}', found the end", None),
        ("graph step", "graph step $", "line 1: expected '(', found '$'", "$"),
    ],
)
def test_errors_show_the_place(before, after, message, under):
    position = EXAMPLE.rindex(before) if before == "}\n" else EXAMPLE.index(before)
    text = EXAMPLE[:position] + after + EXAMPLE[position + len(before) :]
    with pytest.raises(ParseError) as caught:
        parse(text, TABLE)
    said = str(caught.value)
    place, shown, caret = said.split("\n")[:3]
    column = re.search(r", column (\d+): ", place)
    assert column is not None and int(column[1]) == caret.index("^") - 1  # two spaces stand before the line
    assert message in said.replace(column[0], ": ")
    if under is not None:
        assert shown[caret.index("^") :].startswith(under.split("\n")[0])
