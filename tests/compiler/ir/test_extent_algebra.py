"""The algebra of extents, against whole numbers: every law is tried at values of the symbols."""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

import hybridflow as hf
from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.core.llvm_module import LLVMModule
from hybridflow.compiler.ir import dtypes as dt, extents
from hybridflow.compiler.ir.extents import LEAST, Dim, Extent, value_at
from hybridflow.compiler.ir.graph import Graph, Node, parameter
from hybridflow.compiler.ir.polynomial import limited_effort, never_negative, terms_of
from hybridflow.compiler.ir.text import parse, to_text
from hybridflow.compiler.ir.types import TensorType, product
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import SymbolicExtentError
from hybridflow.runtime.machine import host_target, machine_code

NAMES = ("n", "m", "k")
Evaluate = Callable[[dict[str, int]], int]
Pair = tuple[Extent, Evaluate]  # an extent, and what it should be


def _number(value: int) -> Pair:
    return value, lambda sizes: value


def _symbol(name: str) -> Pair:
    return Dim(name), lambda sizes: sizes[name]


def _binary(op: str, a: Pair, b: Pair) -> Pair:
    (x, f), (y, g) = a, b
    if op == "+":
        return x + y, lambda s: f(s) + g(s)
    if op == "-":
        return x - y, lambda s: f(s) - g(s)
    return x * y, lambda s: f(s) * g(s)


def _divided(op: str, a: Pair, divisor: Pair) -> Pair:
    (x, f), (y, g) = a, divisor
    try:
        _ = x // y
    except SymbolicExtentError:  # what is divided by a symbol may be negative
        assume(False)
    return (x // y, lambda s: f(s) // g(s)) if op == "//" else (x % y, lambda s: f(s) % g(s))


LEAVES = st.one_of(st.integers(-7, 9).map(_number), st.sampled_from(NAMES).map(_symbol))
DIVISORS = st.one_of(
    st.integers(1, 9).map(_number),
    st.sampled_from(NAMES).map(_symbol),
    st.sampled_from(NAMES).map(lambda n: (Dim(n) + 1, lambda s: s[n] + 1)),
)
PAIRS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(_binary, st.sampled_from("+-*"), inner, inner),
        st.builds(_divided, st.sampled_from(["//", "%"]), inner, DIVISORS),
    ),
    max_leaves=7,
)
SIZES = st.fixed_dictionaries({name: st.integers(LEAST, 40) for name in NAMES})


@given(PAIRS, st.lists(SIZES, min_size=1, max_size=4))
@settings(max_examples=600, deadline=None)
def test_an_extent_is_the_number_that_its_expression_is(pair: Pair, points: list[dict[str, int]]) -> None:
    extent, expected = pair
    for sizes in points:
        assert value_at(extent, sizes) == expected(sizes)
        known = {name: sizes[name] for name in NAMES}
        assert extents.substituted(extent, known) == expected(sizes)
    assert isinstance(extent, int) == (not extents.symbols(extent))


@given(PAIRS, PAIRS)
@settings(max_examples=300, deadline=None)
def test_sums_and_products_have_one_form(a: Pair, b: Pair) -> None:
    x, y = a[0], b[0]
    for one, other in (
        (x + y, y + x),
        (x * y, y * x),
        (x - y, -1 * (y - x)),
        ((x + y) - y, x),
        ((x + y) * 3, 3 * y + 3 * x),
    ):
        assert one == other and hash(one) == hash(other) and str(one) == str(other)
    assert x - x == 0 and isinstance(x - x, int)


@given(PAIRS, PAIRS, SIZES)
@settings(max_examples=600, deadline=None)
def test_what_is_said_of_extents_holds(a: Pair, b: Pair, sizes: dict[str, int]) -> None:
    x, y = a[0], b[0]
    p, q = a[1](sizes), b[1](sizes)
    assert extents.compare(x, y) in (None, p >= q)
    assert extents.equal(x, y) in (None, p == q)
    if extents.never_negative(x) and extents.never_negative(y):
        assert value_at(extents.larger(x, y), sizes) >= max(p, q)
        assert extents.larger(x, 0) == extents.larger(0, x) == x
        room = value_at(extents.aligned(x, 64), sizes)
        assert room >= p and room % 64 == 0
        if all(factor >= 0 for _, factor in terms_of(x)):
            assert room < p + p // 4 + 64
        for least in (1, p, p + 1):
            assert value_at(extents.at_least(x, least), sizes) == (p >= least)


def test_what_lies_between_nothing_and_one_below_is_divided_where_somebody_says_which() -> None:
    n, m = Dim("n"), Dim("m")
    few = (6 // (n + 1)) // (n + 1)  # 0 or 1, for all that is seen of it
    for value in (m - few, m + few - 1):
        with pytest.raises(SymbolicExtentError, match="depends on its symbols"):
            _ = value // m

    @hf.function(reduce_retracing=True)
    def divided(x: hf.Tensor, y: hf.Tensor) -> list[Any]:
        n, m = x.shape[0], y.shape[0]
        few = n // 3
        return [(m - few) // m, (m + few - 1) // m, (few - m) // m, (-few) // m]

    for n, m in ((2, 5), (3, 5), (7, 4), (4, 2), (2, 2), (30, 3), (2, 7), (5, 7)):
        few = n // 3
        found = [int(v) for v in divided(np.ones(n, np.float32), np.ones(m, np.float32))]
        assert found == [(m - few) // m, (m + few - 1) // m, (few - m) // m, -few // m]


ODD = st.one_of(st.sampled_from([*NAMES, "f32", "inf", "True", "a b", "n//2", "", '"', "x*y"]))


@given(PAIRS, ODD)
@settings(max_examples=300, deadline=None)
def test_the_text_of_a_graph_says_its_extents(pair: Pair, name: str) -> None:
    try:
        extent = extents.substituted(pair[0], {"n": Dim(name), "m": Dim("m"), "k": Dim("k")})
    except SymbolicExtentError:  # with n and m one symbol, what is divided is not seen to be positive any more
        assume(False)
    x = parameter(TensorType((extent * extent + 2,), dt.float32), "x")
    graph = Graph("g", (x,), (), (x,))
    text = to_text(graph)
    assert parse(text, TABLE).inputs[0].type == x.type, text
    b = TABLE["slice"]
    node = Node(b, (x,), {"start": (extent,), "stop": (7, extent - 1), "step": (-1, 2)}, x.type)
    again = parse(to_text(Graph("g", (x,), (node,), (node,))), TABLE).nodes[0]
    assert again.attrs == node.attrs, to_text(Graph("g", (x,), (node,), (node,)))


def test_how_extents_print() -> None:
    n, m = Dim("n"), Dim("m")
    shown = {
        n: "n",
        2 * n + 1: "2*n+1",
        n // 2: "n//2",
        n - 1: "n-1",
        3 - n: "-n+3",
        m * n * n - m + 4: "m*n*n-m+4",
        (n + 1) // 2 * 2: "2*((n+1)//2)",
        n // m: "n//m",
        n // 2 // 3: "n//6",
        (4 * n + 6) // 4: "n+1",
        n % 2: "n-2*(n//2)",
        (n - 1) // 2: "(n+1)//2-1",
        5 // n: "5//n",
        (n * m + 3 * m) // (n + 3): "m",
    }
    for extent, text in shown.items():
        assert str(extent) == text
    assert str(TensorType((2 * n + 1, n // 2), dt.float32)) == "f32[2*n+1,n//2]"


def test_what_is_known_of_extents() -> None:
    n, m = Dim("n"), Dim("m")
    assert extents.compare(n, 2) is True and extents.compare(1, n) is False and extents.compare(n, 3) is None
    assert extents.equal(2 * n, 0) is False and extents.equal(n, m) is None and extents.equal(n, n + m) is False
    assert extents.compare(n // 2, 1) is True and extents.compare(n - 2, n // 2) is None
    assert extents.compare(n, n // 2 + 1) is True and extents.compare(n * m, n + m) is True
    assert extents.compare((n + 7) // 8 * 8, n) is True


def test_an_answer_that_was_kept_counts_as_effort() -> None:
    """What takes too long does so in any process, whatever was asked there before."""
    n, m = Dim("kept_n"), Dim("kept_m")
    extent = (n * m + 3) // 2 - n
    assert never_negative(extent) and never_negative(extent)
    for _ in range(2):
        with limited_effort(40):
            assert never_negative(extent)
        with pytest.raises(SymbolicExtentError, match="too long"), limited_effort(40):
            for _ in range(40):
                never_negative(extent)


def test_extents_are_what_pickle_and_division_make_of_them() -> None:
    n = Dim("n")
    for extent in (n, 2 * n // 3 + 1, n // (n + 1)):
        assert pickle.loads(pickle.dumps(extent)) == extent
    for zero in (lambda: n // 0, lambda: n % 0):
        with pytest.raises(ZeroDivisionError):
            zero()
    for wrong in (lambda: n + "x", lambda: n // None):  # type: ignore[operator]
        with pytest.raises(TypeError):
            wrong()
    for unknown in (lambda: n + 1.5, lambda: int(n), lambda: n > 3, lambda: n / 2, lambda: range(n)):
        with pytest.raises(SymbolicExtentError):
            unknown()
    assert n >= 2 and not n < 2 and n > 1.5 and bool(n) and n != 0 and n > 1 and n <= n * n


@given(PAIRS)
@settings(max_examples=60, deadline=None)
def test_code_computes_what_the_algebra_does(pair: Pair) -> None:
    extent = pair[0]
    target = host_target.target()
    module, e = LLVMModule(target), Emitter(target, 1)
    code = KernelBuilder(e, NAMES)
    e.line(f"ret i64 {code.extent(extent)}")
    module.function(e, "f", "ptr %dims", result="i64")
    loaded = machine_code.load_object(machine_code.compile_object(module.render(), target), "f")
    f = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(loaded.addresses["f"])
    for values in ((2, 2, 2), (2, 3, 5), (17, 64, 9)):
        dims = np.array(values, np.int64)
        assert f(dims.ctypes.data) == value_at(extent, dict(zip(NAMES, values)))


def test_a_shape_of_extents_has_their_product_for_its_size() -> None:
    n: Any = Dim("n")
    assert product((n + 1, 2, n - 1)) == 2 * n * n - 2


@pytest.mark.parametrize(
    "a, b",
    [
        (lambda n: n // 2, lambda n: n - (n + 1) // 2),
        (lambda n: (n + 2) // 3, lambda n: n - (2 * n) // 3),
        (lambda n: (n + 1) // 2 + n // 2, lambda n: n),
        (lambda n: n // 2, lambda n: n - n // 2),
        (lambda n: n // 3, lambda n: n - (2 * n) // 3),
        (lambda n: 3 * (n // 2), lambda n: 3 * n - 3 * ((n + 1) // 2)),
        (lambda n: 6 * (n // 2) + 1, lambda n: 6 * n - 6 * ((n + 1) // 2) + 1),
        (lambda n: 3 * (n // 2), lambda n: 3 * n - 3 * (n // 2)),
    ],
)
def test_extents_are_equal_where_neither_is_above_the_other(a: Callable[[Any], Any], b: Callable[[Any], Any]) -> None:
    n = Dim("n")
    answers = {a(k) == b(k) for k in range(LEAST, 40)}
    assert extents.equal(a(n), b(n)) is (True if answers == {True} else None)


def test_what_all_terms_have_in_common_is_no_reason_to_know_less() -> None:
    n, m = Dim("n"), Dim("m")
    half, other = n // 2, n - (n + 1) // 2
    assert extents.equal(m * half, m * other) is True and extents.equal(6 * m * half - m, 6 * m * other - m) is True
    assert extents.equal(3 * half + 1, 3 * other) is False and extents.compare(3 * half + 1, 3 * other) is True
    assert extents.compare(3 * half, 3 * other + 1) is False and extents.compare(3 * half - 1, 3 * other - 2) is True
    assert extents.equal(m * half, n * half) is None
    # 2 and more for symbols: 4*(n//2) is at least 4, of which 3 are taken, and n may be odd
    assert extents.compare(4 * half, 3) is True and extents.compare(4 * half, 2 * n - 1) is None


def test_one_symbol_is_replaced() -> None:
    n, m = Dim("n"), Dim("m")
    assert extents.replaced(n * m + n // 2, "n", 4) == 4 * m + 2
    assert extents.replaced(n * m + n // 2, "m", n + 1) == n * n + n + n // 2
    assert extents.replaced(n, "m", 3) == n and extents.replaced(5, "m", 3) == 5


def test_parts_whose_lengths_are_written_in_two_ways_are_added() -> None:
    @hf.function(input_signature=[hf.TensorSpec((None,), "float32")])
    def halves(x: hf.Tensor) -> hf.Tensor:
        n = x.shape[0]
        return x[: n // 2] + x[(n + 1) // 2 :]

    for n in (0, 1, 2, 5, 6, 7, 12):
        x = np.arange(n, dtype="float32")
        assert np.array_equal(halves(hf.asarray(x)), x[: n // 2] + x[(n + 1) // 2 :])
