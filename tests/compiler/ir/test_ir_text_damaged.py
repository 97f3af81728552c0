"""Damaged text: the parser says where it is wrong, or reads a graph that the verifier judges; nothing else happens."""

from __future__ import annotations

import random

import pytest

from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.verify import verify
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import ParseError, VerifyError
from tests.compiler.ir.test_control import PROGRAMS, graph_of

TEXTS = [to_text(graph_of(name)) for name in PROGRAMS]
PIECES = [
    *("%0", "%1", "%99", "(", ")", "{", "}", "[", "]", ",", "=", ":", "@", "+", "-", "*", "//", '"', "#", "\n", "\\"),
    *(
        "graph",
        "token",
        "return",
        "update %0 = %0",
        "True",
        "nan",
        "inf",
        "f32[]",
        "f32[n]",
        "i64[2,3]",
        "f32[2] [1, 2]",
    ),
    *("0x", "0x00", "-1", "1e999", "9" * 30, "9" * 5000, "-", "n//0", "(n+1)//2", "n*n", "\ud7ff", "\x00", "²", "٣"),
]


def damaged(text: str, r: random.Random) -> str:
    for _ in range(r.choice((1, 1, 2, 5))):
        at = r.randrange(len(text) + 1)
        how = r.randrange(5)
        if how == 0:
            text = text[:at]
        elif how == 1:
            text = text[:at] + text[at + r.randrange(1, 12) :]
        elif how == 2:
            text = text[:at] + r.choice(PIECES) + text[at:]
        elif how == 3:
            other = r.randrange(len(text) + 1)
            text = text[:at] + text[other : other + r.randrange(80)] + text[at:]
        else:
            lines = text.split("\n")
            i, j = r.randrange(len(lines)), r.randrange(len(lines))
            lines[i], lines[j] = lines[j], lines[i]
            text = "\n".join(lines)
    return text


@pytest.mark.parametrize("seed", range(40))
def test_damaged_text(seed):
    r = random.Random(seed)
    for _ in range(50):
        text = damaged(r.choice(TEXTS), r)
        try:
            graph = parse(text, TABLE)
            verify(graph)
        except ParseError as error:
            assert "line " in str(error) and ", column " in str(error)
        except VerifyError:
            pass
        else:
            assert to_text(parse(to_text(graph), TABLE)) == to_text(graph)


@pytest.mark.parametrize("opened", ["(", "graph g() {\n%0: f32[] = call() {body=", "("])
def test_endless_nesting(opened):
    head = "" if opened.startswith("graph") else "graph g() {\n  %0: f32[] = constant() {value="
    with pytest.raises(ParseError, match="line "):
        parse(head + opened * 5000, TABLE)


def test_a_sub_graph_reads_nothing_from_outside():
    text = 'graph g(%0: f32[] "x") {\n  %1: (f32[],) = call(%0) {body=graph h() {\n    return %0\n  }}\n  return\n}\n'
    with pytest.raises(
        ParseError, match=r"line 3, column 12: %0 is not defined above in this graph; a sub-graph reads"
    ):
        parse(text, TABLE)


def test_values_that_need_each_other():
    text = "graph g() {\n  %0: f32[] = sin(%1)\n  %1: f32[] = sin(%0)\n  return %0\n}\n"
    with pytest.raises(ParseError, match=r"line 2, column 19: %1 is not defined above"):
        parse(text, TABLE)
