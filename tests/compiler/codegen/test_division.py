"""Floor division and remainder as compiled: exact for any two floats, and Python's for integers."""

from __future__ import annotations

import numpy as np
import pytest

from hybridflow.compiler.codegen.core.emitter import Emitter
from hybridflow.compiler.codegen.core.llvm_values import Val
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.program import Check
from tests.support.jit_helper import compile_loop, runnable_targets

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
TARGETS = runnable_targets()


def compiled(name: str, x: np.ndarray, y: np.ndarray, target: str, width: int) -> np.ndarray:
    def build(e: Emitter, a: Val, b: Val) -> Val:
        e.where, e.status, e.on_check = None, "%out", _no_check
        return TABLE[name].scalar(e, a, b)

    return compile_loop(build, [x.dtype, y.dtype], width, TARGETS[target])(x, y)


def _no_check(check: Check) -> int:
    return 1


def same(got: np.ndarray, want: np.ndarray) -> bool:
    bits = np.dtype(f"u{got.itemsize}")
    return bool(np.all((got.view(bits) == want.view(bits)) | (np.isnan(got) & np.isnan(want))))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [dt.float32, dt.float64], ids=str)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_floats_of_any_bits(name: str, dtype: np.dtype, target: str) -> None:
    rng = np.random.default_rng(0)
    bits = f"u{dtype.itemsize}"
    x, y = (rng.integers(0, 2 ** (8 * dtype.itemsize), 20_000, bits).view(dtype) for _ in range(2))
    # Random bits are mostly far apart; a third are near multiples, a third of similar size.
    y[::3] = x[::3] / rng.integers(1, 1000, y[::3].size).astype(dtype)
    y[1::3] = x[1::3] * rng.uniform(-2, 2, y[1::3].size).astype(dtype)
    reference = np.floor_divide if name == "floor_divide" else np.remainder
    for width in (1, 4):
        assert same(compiled(name, x, y, target, width), reference(x, y))


def test_the_largest_quotients() -> None:
    for dtype in (dt.float32, dt.float64):
        info = np.finfo(dtype)
        x = np.array([info.max, -info.max, info.max, info.smallest_subnormal, info.tiny], dtype)
        y = np.array([info.smallest_subnormal, 3 * info.smallest_subnormal, 7.0, info.max, -info.max], dtype)
        for name, reference in (("floor_divide", np.floor_divide), ("remainder", np.remainder)):
            assert same(compiled(name, x, y, next(iter(TARGETS)), 4), reference(x, y))


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_integers_round_down(dtype: np.dtype) -> None:
    info = np.iinfo(dtype)
    edges = np.array(sorted({info.min, info.min + 1, *range(-4 if info.min else 0, 5), info.max - 1, info.max}), dtype)
    x, y = (grid.ravel() for grid in np.meshgrid(edges, edges[edges != 0]))
    for target in TARGETS:
        quotient, remainder = (compiled(name, x, y, target, 4) for name in ("floor_divide", "remainder"))
        for a, b, q, r in zip(x.tolist(), y.tolist(), quotient.tolist(), remainder.tolist()):
            assert r == a % b
            assert q == np.array(a // b).astype(dtype)  # wraps for the least integer over -1


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
@pytest.mark.sample(4)
def test_integers_by_a_known_number_round_down(name: str, dtype: np.dtype) -> None:
    info = np.iinfo(dtype)
    rng = np.random.default_rng(0)
    edges = [info.min, info.min + 1, *range(-9 if info.min else 0, 10), info.max - 1, info.max]
    x = np.array([*edges, *rng.integers(info.min, info.max, 500, dtype, endpoint=True).tolist()], dtype)
    python = {"floor_divide": lambda a, b: a // b, "remainder": lambda a, b: a % b}[name]
    for divisor in (1, 2, 3, 7, 64, 100, 127, 255, 641, info.max - 1, info.max):
        if divisor > info.max:
            continue

        def build(e: Emitter, a: Val, divisor: int = int(divisor)) -> Val:
            e.where, e.status, e.on_check = None, None, None  # a check would have no place
            return TABLE[name].scalar(e, a, e.const(divisor, a.dtype))

        want = [python(a, int(divisor)) for a in x.tolist()]
        for target in TARGETS.values():
            for width in (1, 4):
                assert compile_loop(build, [dtype], width, target)(x).tolist() == want, divisor
