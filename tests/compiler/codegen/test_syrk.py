"""Products of a matrix and its own transpose: half of them is computed, the rest lies opposite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler import target as targets
from hybridflow.compiler.codegen import module_builder
from hybridflow.compiler.codegen.core.kernel_builder import KernelBuilder
from hybridflow.compiler.codegen.products import product_schedule, syrk
from hybridflow.compiler.codegen.products.cache_blocking import choose_tile
from hybridflow.compiler.codegen.products.packed_formats import packed_format_of
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.extents import Dim
from hybridflow.runtime.machine import host_target
from tests.support.bits import same_bits
from tests.support.jit_helper import machine, product_targets, runnable_targets
from tests.support.special_helper import Kernel, emit_matmul, kernel_text
from tests.support.twins import ordered_product

pytestmark = pytest.mark.sample(4)  # long cases

PRODUCTS = product_targets()
RUNNABLE = runnable_targets()
BEST = list(RUNNABLE.values())[-1]
FOREIGN = [targets.AARCH64, targets.AVX512, targets.AVX512.with_(features="+amx-int8,+amx-bf16,+amx-tile")]


def matrix(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dt.is_float(np.dtype(dtype)):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


# ---- the kernel


class Half:
    """The kernel of x @ x.T that computes half of it; ``options`` as those of ``emit_matmul``."""

    def __init__(
        self, dtype: Any, batch: Any, n: Any, k: Any, target: Any = BEST, one_thread: bool = False, **options: Any
    ) -> None:
        self.options, self.result = options, np.dtype(options.get("sum_dtype") or dtype)

        def emit(module: Any, e: Any) -> Any:
            return emit_matmul(module, e, "k", np.dtype(dtype), batch, n, n, k, symmetric=True, **options)

        self.kernel = Kernel(emit, target, options.get("buffers", 3), options.get("dims", ()), one_thread)

    def __call__(self, x: np.ndarray, cuts: Any = (), **extents: int) -> np.ndarray:
        turned = np.ascontiguousarray(np.swapaxes(x, -1, -2))
        left = turned if self.options.get("transpose_a") else x
        right = x if self.options.get("transpose_b") else turned
        out = np.full((*x.shape[:-1], x.shape[-2]), 77, self.result)
        assert self.kernel(left, right, out, cuts=cuts, **extents) is None
        return out

    def agrees(self, x: np.ndarray, **extents: int) -> None:
        """As a whole, in single units, and in two pieces it has the bits of the stated order."""
        expected = ordered_product(x, np.swapaxes(x, -1, -2), self.result)
        units = self.kernel.units(**extents)
        for cuts in ((), range(1, units), (units // 2,)):
            assert same_bits(self(x, cuts, **extents), expected)


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize("at_home", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
def test_half_of_a_product_has_the_bits_of_the_whole(transpose: bool, at_home: bool, target: Any) -> None:
    """Of whole and partial tiles, several blocks of the depth, of rows and of columns, cut anywhere."""
    sizes = [(33, 40, "f4"), (64, 530, "f4"), (131, 257, "f4"), (70, 300, "f8"), (97, 40, "f2")]
    for cache in (target.l2, 1 << 15):
        for n, k, dtype in sizes:
            options = {"transpose_a": transpose, "transpose_b": not transpose, "at_home": at_home}
            made = Half(dtype, (2,), n, k, target.with_(l2=cache), **options)
            made.agrees(matrix(dtype, 2, n, k))


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.sample(2)
def test_half_of_a_product_of_symbolic_extents(dtype: str, transpose: bool) -> None:
    options = {"transpose_a": transpose, "transpose_b": transpose, "at_home": transpose}
    made = Half(dtype, (Dim("b"),), Dim("n"), Dim("k"), dims=("k", "b", "n"), **options)
    for n, k in [(1, 1), (2, 300), (5, 0), (0, 5), (16, 40), (17, 256), (97, 257), (300, 33), (1100, 3)]:
        made.agrees(matrix(dtype, 2, n, k), b=2, n=n, k=k)


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize(
    ("dtype", "sum_dtype"),
    [
        (dt.bfloat16, dt.bfloat16),
        (dt.bfloat16, dt.float32),
        (dt.int8, dt.int32),
        (dt.int16, dt.int16),
        (dt.int64, dt.int64),
        (dt.uint8, dt.uint8),
    ],
    ids=str,
)
def test_half_of_a_product_of_every_form(dtype: Any, sum_dtype: Any, target: Any) -> None:
    for n, k in ((70, 1100), (101, 67)):
        Half(dtype, (2,), n, k, target, sum_dtype=sum_dtype).agrees(matrix(dtype, 2, n, k))


@pytest.mark.parametrize("target", PRODUCTS.values(), ids=list(PRODUCTS))
@pytest.mark.parametrize("dtype, sum_dtype", [(dt.float32, None), (dt.bfloat16, dt.float32), (dt.int8, dt.int32)])
@pytest.mark.sample(2)
def test_half_of_a_product_whose_depth_is_cut(
    dtype: Any, sum_dtype: Any, target: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a host alone: blocks of sums are halves too.  The units of no target's tiles are enough for its workers."""
    monkeypatch.setattr(product_schedule, "FEW_UNITS", 64)
    x = matrix(dtype, 1, 40, 20_000)
    made = [Half(dtype, (1,), 40, 20_000, target, one, sum_dtype=sum_dtype) for one in (True, False)]
    assert [len(each.kernel.info.phases) for each in made] == [1, 2]
    for each in made:
        each.agrees(x)


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=list(RUNNABLE))
def test_nan_inf_and_zeros_lie_opposite(target: Any) -> None:
    x = matrix("f4", 1, 75, 290)
    x[0, 40, 3], x[0, 70, 280], x[0, 11, 5], x[0, 20], x[0, 21] = np.nan, np.inf, -np.inf, 0.0, -0.0
    Half("f4", (1,), 75, 290, target).agrees(x)


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=list(RUNNABLE))
def test_the_epilogue_sees_every_element_once_at_its_place(target: Any) -> None:
    """Some lie in a half tile, on either side of the diagonal; what is added in place would be added twice."""
    for n, k in ((100, 300), (45, 40)):
        x = matrix("f4", 2, n, k)
        bias, residual = matrix("f4", n), matrix("f4", 2, n, n)

        def emit(module: Any, e: Any, n: int = n, k: int = k) -> Any:
            def epilogue(e: Any, value: Any, batch: str, row: str, col: str, mask: Any) -> None:
                c = KernelBuilder(e)
                position = c.add(c.mul(c.add(c.mul(batch, n), row), n), col)
                value = e.add(value, e.load(c.at("%a2", col, 4), dt.float32, mask))
                value = e.add(value, e.load(c.at("%a3", position, 4), dt.float32, mask))
                e.store(value, c.at("%a3", position, 4), mask)

            options = {"buffers": 4, "epilogue": epilogue, "transpose_b": True, "symmetric": True}
            return emit_matmul(module, e, "k", dt.float32, (2,), n, n, k, **options)

        kernel, out = Kernel(emit, target, 4), residual.copy()
        kernel(x, x, bias, out, cuts=range(1, kernel.units()))
        plain = ordered_product(x, np.swapaxes(x, -1, -2), np.dtype("f4"))
        np.testing.assert_array_equal(out, plain + bias + residual)


def test_units_have_as_many_tiles_as_others() -> None:
    """A panel of columns goes with one that is as far from the other end, so that there are half as many units."""
    tile = choose_tile(BEST, packed_format_of(BEST, dt.float32, dt.float32), 320, 320)
    panels = (320 + tile.columns - 1) // tile.columns
    assert Half("f4", (3,), 320, 400).kernel.units() == 3 * ((panels + 1) // 2)


@pytest.mark.parametrize("target", FOREIGN, ids=lambda t: t.cpu + t.features[:9])
@pytest.mark.parametrize("dtype", [dt.float32, dt.bfloat16, dt.int8], ids=str)
def test_other_back_ends_accept_half_of_a_product(target: Any, dtype: Any) -> None:
    for extents, dims in (((50, 50, 300), ()), ((Dim("n"), Dim("n"), Dim("k")), ("n", "k"))):

        def emit(module: Any, e: Any, extents: Any = extents, dims: Any = dims) -> Any:
            return emit_matmul(module, e, "k", dtype, (2,), *extents, transpose_b=True, dims=dims, symmetric=True)

        module = llvm.parse_assembly(kernel_text(emit, target, 3)[0])
        of_target = machine(target)
        module.data_layout = str(of_target.target_data)
        module.verify()
        assert "entry" in of_target.emit_assembly(module)


# ---- programs


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each product that is compiled is symmetric, in turn.  Nothing comes from the disk."""
    answers: list[bool] = []

    def noted(*given: Any) -> bool:
        answers.append(syrk.is_symmetric(*given))
        return answers[-1]

    monkeypatch.setattr(module_builder, "is_symmetric", noted)
    monkeypatch.setattr(flags.VERIFY, "value", True)
    return answers


def turned(x: Any) -> Any:
    return hf.matrix_transpose(x)


def scaled(x: Any) -> Any:
    return x / hf.sqrt(hf.sum(x * x, axis=-1, keepdims=True))


def distances(x: Any, y: Any) -> Any:
    return hf.sum(x * x, axis=1)[:, None] - 2 * (x @ y.T) + hf.sum(y * y, axis=1)[None]


def covariance(x: Any, y: Any) -> Any:
    return (x - hf.mean(x, axis=0)).T @ (y - hf.mean(y, axis=0)) / (x.shape[0] - 1)


def above(x: Any, y: Any, a: Any) -> Any:
    i = hf.arange(a.shape[0])
    return hf.where(i[:, None] < i[None], x @ y.T, a)


def shares(x: Any) -> Any:
    """Rows that end with zeros, which a product may leave out."""
    i, j = (hf.arange(extent) for extent in x.shape)
    return hf.nn.softmax(hf.where(i[:, None] >= j[None], x, -np.inf), axis=1)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "x x.T": lambda x, y, a, b: x @ y.T,
    "x.T x": lambda x, y, a, b: x.T @ y,
    "einsum": lambda x, y, a, b: hf.einsum("ki,kj->ij", x, y),
    "tensordot": lambda x, y, a, b: hf.tensordot(x, y, axes=((1,), (1,))),
    "rows of two axes": lambda x, y, a, b: hf.einsum(
        "abk,cdk->abcd", hf.reshape(x, (-1, 3, x.shape[1])), hf.reshape(y, (-1, 3, x.shape[1]))
    ),
    "batch": lambda x, y, a, b: hf.stack([x, x + 1, x * 2]) @ turned(hf.stack([y, y + 1, y * 2])),
    "slices": lambda x, y, a, b: x[::2, ::-1] @ y[::2, ::-1].T,
    "a cheap factor": lambda x, y, a, b: (x * 2 + b[:, None]) @ (y * 2 + b[:, None]).T,
    "covariance": lambda x, y, a, b: covariance(x, y),
    "distances": lambda x, y, a, b: distances(x, y),
    "similarity": lambda x, y, a, b: scaled(x) @ scaled(y).T,
    "+ a": lambda x, y, a, b: x @ y.T + a,
    "a.T as well": lambda x, y, a, b: x @ y.T * a + a.T,
    "where": lambda x, y, a, b: above(x, y, a),
    "rows": lambda x, y, a, b: hf.tanh(x @ y.T + b[:, None]),
    "columns": lambda x, y, a, b: x @ y.T + b,
    "two results": lambda x, y, a, b: (x @ y.T, hf.exp(x @ y.T * 0.01) + a),
    "sum of rows": lambda x, y, a, b: hf.sum(x @ y.T, axis=1),
    "softmax": lambda x, y, a, b: hf.nn.softmax(x @ y.T + b, axis=1),
    "a part": lambda x, y, a, b: (x @ y.T)[1:, 2:],
    "turned": lambda x, y, a, b: (x @ y.T).T + a,
    "thinned": lambda x, y, a, b: shares(x) @ shares(y).T,
    "thinned columns": lambda x, y, a, b: shares(x).T @ shares(y),
    "times a": lambda x, y, a, b: (x @ y.T) @ a,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_the_bits_of_those_of_a_copy(name: str, found: list[bool]) -> None:
    """In float32 with edge cases among the numbers, and in float64."""
    program = PROGRAMS[name]
    for dtype, n, k in (("f4", 99, 301), ("f8", 66, 40)):
        x, a, b = matrix(dtype, n, k), matrix(dtype, n, n, seed=1), matrix(dtype, n, seed=2)
        x[n // 2, 1], x[-1, 2], x[3], x[4] = np.nan, np.inf, 0.0, -0.0
        del found[:]
        one = hf.function(lambda x, a, b: program(x, x, a, b))(*map(hf.asarray, (x, a, b)))
        assert found[0]
        del found[:]
        two = hf.function(lambda x, y, a, b: program(x, y, a, b))(*map(hf.asarray, (x, x.copy(), a, b)))
        assert not found[0]
        for mine, other in zip(hf.tree.leaves(one), hf.tree.leaves(two), strict=True):
            assert same_bits(mine.numpy(), other.numpy())


NOT_SYMMETRIC: dict[str, Callable[..., Any]] = {
    "x x": lambda x, y: x @ x,
    "two tensors": lambda x, y: x @ y.T,
    "other rows": lambda x, y: x[:32] @ x[32:].T,
    "other order": lambda x, y: x @ x[:, ::-1].T,
    "other rows in order": lambda x, y: x @ x[::-1].T,
    "fewer columns": lambda x, y: x @ x[:40].T,
    "one factor scaled": lambda x, y: (x * 2) @ x.T,
    "scaled otherwise": lambda x, y: (x * y) @ (x * y[::-1]).T,
    "other axes": lambda x, y: hf.einsum("abk,bak->ab", hf.reshape(x, (8, 8, 64)), hf.reshape(x, (8, 8, 64))),
    "other matrices": lambda x, y: hf.stack([x, y]) @ turned(hf.stack([y, x])),
}


@pytest.mark.parametrize("name", NOT_SYMMETRIC)
def test_others_are_computed_whole(name: str, found: list[bool]) -> None:
    program = NOT_SYMMETRIC[name]
    x, y = hf.asarray(matrix("f4", 64, 64)), hf.asarray(matrix("f4", 64, 64, seed=1))
    compiled = hf.function(program)(x, y).numpy()
    assert not any(found)
    np.testing.assert_array_equal(compiled, program(x, y).numpy())


def test_what_is_looked_up_is_one_factor_if_it_is_one_look(found: list[bool]) -> None:
    x, i = hf.asarray(matrix("f4", 200, 70)), hf.asarray(np.random.default_rng(0).integers(0, 200, 50))
    j = hf.asarray(i.numpy()[::-1].copy())

    def one(x: Any, i: Any, j: Any) -> Any:
        y = x[i]
        return y @ y.T

    def two(x: Any, i: Any, j: Any) -> Any:
        return x[i] @ x[j].T

    np.testing.assert_array_equal(hf.function(one)(x, i, j).numpy(), one(x, i, j).numpy())
    assert found[0]
    del found[:]
    np.testing.assert_array_equal(hf.function(two)(x, i, j).numpy(), two(x, i, j).numpy())
    assert not any(found)


def test_a_derivative() -> None:
    def loss(x: Any, y: Any) -> Any:
        return hf.sum(hf.exp(0.01 * (x @ y.T)) * (x @ y.T))

    x = matrix("f8", 45, 50)
    both = hf.grad(lambda x: loss(x, x))
    gradient = hf.function(both)(hf.asarray(x)).numpy()
    np.testing.assert_array_equal(gradient, both(hf.asarray(x)).numpy())
    step, direction = 1e-6, matrix("f8", 45, 50, seed=1)
    ends = [float(loss(*[hf.asarray(x + s * step * direction)] * 2).numpy()) for s in (1, -1)]
    assert np.isclose(np.sum(gradient * direction), (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_state_is_added_to_in_place() -> None:
    """The Gram matrix of a stream: each element of the sum is read before it is written, and once."""
    for n in (40, 101):
        total = hf.Variable(np.zeros((n, n), np.float32))

        @hf.function
        def add(x: Any, total: Any = total) -> None:
            total.assign(total * 0.5 + x.T @ x)

        expected = np.zeros((n, n), np.float32)
        for seed in range(3):
            x = matrix("f4", 70, n, seed=seed)
            add(hf.asarray(x))
            expected = expected * np.float32(0.5) + ordered_product(x.T, x, np.dtype("f4"))
        np.testing.assert_array_equal(total.numpy(), expected)


@pytest.mark.parametrize("name", ["x x.T", "x.T x", "batch", "distances", "softmax"])
def test_any_number_of_threads(name: str) -> None:
    x, a, b = matrix("f4", 303, 500), matrix("f4", 303, 303, seed=1), matrix("f4", 303, seed=2)
    program, found, before = PROGRAMS[name], [], hf.config.get_num_threads()
    compiled = hf.function(lambda x, a, b: program(x, x, a, b))
    try:
        for number in (1, 2, 7):
            hf.config.set_num_threads(number)
            found += [compiled(*map(hf.asarray, (x, a, b))).numpy().tobytes() for _ in range(3)]
    finally:
        hf.config.set_num_threads(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize("target", RUNNABLE.values(), ids=list(RUNNABLE))
def test_sizes_that_vary(target: Any) -> None:
    """Extents are symbols from the second size on."""
    with host_target.use(target):
        compiled = hf.function(lambda x: x.T @ x / 3.0)
        for k, n in ((40, 50), (41, 51), (300, 97), (1, 2), (0, 4), (5, 0), (7, 1)):
            x = matrix("f4", k, n)
            expected = ordered_product(x.T, x, np.dtype("f4")) / np.float32(3)
            np.testing.assert_array_equal(compiled(hf.asarray(x)).numpy(), expected)
