"""The elementary functions: stated error bounds, special values, the same bits at every width and on every target."""

import ctypes
import math
import platform
import shutil
import subprocess

import numpy as np
import pytest

from hybridflow.compiler import target as targets
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import elementary, elementary_trig
from tests.support.avx512_machine import is_emulated
from tests.support.bits import same_bits
from tests.support.jit_helper import assembly, loop_text, runnable_targets
from tests.support.ulp import BINARY, REFERENCE, Longer, compiled, measured, mpmath

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

F32, F64 = dt.float32, dt.float64
INF, NAN = math.inf, math.nan
UNARY = [name for name in REFERENCE if name not in BINARY]


def arguments(dtype: np.dtype, n: int, seed: int = 0) -> np.ndarray:
    """Random bits (every exponent), the ranges where the methods change, neighbours of 1, and the edges."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    part = n // 10
    spread = [rng.uniform(-s, s, part) for s in (0.6, 1.5, 4, 20, 110, 750)]
    near_one = 1 + rng.uniform(-1, 1, part) * 2.0 ** -rng.integers(1, info.nmant, part)
    near_quadrants = np.round(rng.uniform(-1e5, 1e5, part)) * (math.pi / 2)
    edges = [0.0, 1.0, 0.5, 2.0, INF, NAN, info.tiny, info.smallest_subnormal, info.max, info.tiny * 3, 1 - info.epsneg]
    changes = [
        0.55,
        86.0,
        np.nextafter(np.float32(86), 87),
        707.0,
        707.5,
        88.722839,
        88.73,
        103.97,
        104.0,
        709.782712893384,
        709.79,
        745.13,
        745.14,
        2.0**15,
        2.0**30,
        4.0,
    ]
    bits = rng.integers(0, 256, n * dtype.itemsize // 2, np.uint8).view(dtype)
    rest = np.concatenate([*spread, near_one, near_quadrants, edges, changes]).astype(dtype)
    return np.concatenate([bits, rest, -rest])


def operands(name: str, dtype: np.dtype, n: int) -> tuple[np.ndarray, ...]:
    x = arguments(dtype, n)
    if name not in BINARY:
        return (x,)
    return x, np.random.default_rng(1).permutation(arguments(dtype, n, seed=2))


def test_bounds_are_stated_for_every_function():
    assert set(elementary.__all__) == set(REFERENCE)
    assert set(elementary.ULP) == {(name, short) for name in elementary.__all__ for short in ("f32", "f64")}
    assert max(elementary.ULP.values()) <= 2.5


@pytest.mark.parametrize("name", REFERENCE)
def test_float32_error(name):
    x = operands(name, F32, 500_000)
    error = measured(name, compiled(name, F32)(*x), *x)
    at = int(np.argmax(error))
    assert error[at] <= elementary.ULP[name, "f32"], [a[at] for a in x]


@pytest.mark.skipif(np.finfo(Longer).nmant < 63, reason="no float wider than float64 to compare with")
@pytest.mark.parametrize("name", REFERENCE)
def test_float64_error(name):
    x = operands(name, F64, 1500 if name == "erf" else 60_000)
    error = measured(name, compiled(name, F64, width=8)(*x), *x)
    at = int(np.argmax(error))
    assert error[at] <= elementary.ULP[name, "f64"], [a[at] for a in x]


@pytest.mark.parametrize("name", REFERENCE)
def test_same_bits_at_every_width_and_on_every_target(name):
    for dtype in (F32, F64):
        x = operands(name, dtype, 2000)
        expected = compiled(name, dtype, width=1)(*x)
        for label, target in runnable_targets().items():
            for width in (1, 4, 16, 32):
                assert same_bits(compiled(name, dtype, width=width, target=target)(*x), expected), (dtype, label, width)
        assert same_bits(compiled(name, dtype, fastmath=True)(*x), expected)


SPECIAL = {
    "acos": [(1, 0.0), (1.5, NAN), (-1.5, NAN), (NAN, NAN), (INF, NAN)],
    "acosh": [(1, 0.0), (0.5, NAN), (-3, NAN), (-1e10, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "asin": [(-0.0, -0.0), (0.0, 0.0), (1.5, NAN), (INF, NAN), (NAN, NAN)],
    "asinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN)],
    "atan": [(-0.0, -0.0), (NAN, NAN)],
    "atanh": [(-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-2, NAN), (INF, NAN), (NAN, NAN)],
    "cbrt": [
        (0.0, 0.0),
        (-0.0, -0.0),
        (27, 3.0),
        (-8, -2.0),
        (INF, INF),
        (-INF, -INF),
        (NAN, NAN),
        (2.0**-126, 2.0**-42),
    ],
    "cos": [(0.0, 1.0), (-0.0, 1.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "cosh": [(-0.0, 1.0), (INF, INF), (-INF, INF), (NAN, NAN)],
    "erf": [(-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (9.0, 1.0)],
    "exp": [(-0.0, 1.0), (INF, INF), (-INF, 0.0), (NAN, NAN), (1e4, INF), (-1e4, 0.0)],
    "exp2": [
        (-0.0, 1.0),
        (10, 1024.0),
        (-149, 2.0**-149),
        (INF, INF),
        (-INF, 0.0),
        (NAN, NAN),
        (1e4, INF),
        (-1e4, 0.0),
    ],
    "expm1": [(-0.0, -0.0), (INF, INF), (-INF, -1.0), (NAN, NAN), (-1e4, -1.0), (1e4, INF)],
    "log": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (-1, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "log10": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (1000, 3.0), (-1, NAN), (INF, INF), (NAN, NAN)],
    "log1p": [(-0.0, -0.0), (0.0, 0.0), (-1, -INF), (-2, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "log2": [(0.0, -INF), (-0.0, -INF), (1, 0.0), (2.0**-126, -126.0), (2.0**-149, -149.0), (-1, NAN), (INF, INF)],
    "rsqrt": [(0.0, INF), (-0.0, -INF), (4, 0.5), (-1, NAN), (INF, 0.0), (NAN, NAN)],
    "sigmoid": [(0.0, 0.5), (-0.0, 0.5), (INF, 1.0), (-INF, 0.0), (NAN, NAN), (1e4, 1.0), (-1e4, 0.0)],
    "sin": [(0.0, 0.0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (NAN, NAN)],
    "sinh": [(-0.0, -0.0), (INF, INF), (-INF, -INF), (NAN, NAN), (1e4, INF)],
    "tan": [(-0.0, -0.0), (INF, NAN), (NAN, NAN)],
    "tanh": [(-0.0, -0.0), (0.0, 0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN), (30, 1.0)],
    "atan2": [
        *[(0.0, 1.0, 0.0), (-0.0, 1.0, -0.0), (0.0, 0.0, 0.0), (-0.0, 0.0, -0.0), (0.0, INF, 0.0), (1.0, INF, 0.0)],
        *[(-1.0, INF, -0.0), (NAN, 1.0, NAN), (1.0, NAN, NAN), (INF, NAN, NAN), (NAN, -INF, NAN)],
    ],
    "hypot": [(INF, NAN, INF), (NAN, -INF, INF), (NAN, 1.0, NAN), (0.0, -0.0, 0.0), (3.0, -4.0, 5.0), (-INF, 1.0, INF)],
    "logaddexp": [
        *[(INF, INF, INF), (-INF, -INF, -INF), (INF, -INF, INF), (-INF, 2.5, 2.5), (2.5, -INF, 2.5), (NAN, 1.0, NAN)],
        *[(1.0, NAN, NAN), (1e6, 0.0, 1e6), (INF, 3.0, INF)],
    ],
    "pow": [
        # C99, annex F.9.4.4, in its order
        *[(0.0, -3.0, INF), (-0.0, -3.0, -INF), (0.0, -2.0, INF), (-0.0, -2.5, INF), (-0.0, -INF, INF)],
        *[(0.0, 3.0, 0.0), (-0.0, 3.0, -0.0), (-0.0, 2.0, 0.0), (-0.0, 2.5, 0.0), (0.0, INF, 0.0)],
        *[(-1.0, INF, 1.0), (-1.0, -INF, 1.0), (1.0, NAN, 1.0), (1.0, INF, 1.0), (NAN, 0.0, 1.0), (INF, -0.0, 1.0)],
        *[(-2.0, 0.5, NAN), (-2.0, -1.5, NAN), (0.5, -INF, INF), (-0.5, -INF, INF), (2.0, -INF, 0.0)],
        *[(-2.0, -INF, 0.0), (0.5, INF, 0.0), (-0.5, INF, 0.0), (2.0, INF, INF), (-2.0, INF, INF)],
        *[(-INF, -3.0, -0.0), (-INF, -2.0, 0.0), (-INF, -2.5, 0.0), (-INF, 3.0, -INF), (-INF, 2.0, INF)],
        *[(-INF, 2.5, INF), (INF, -1.0, 0.0), (INF, 1.0, INF), (NAN, 1.0, NAN), (2.0, NAN, NAN), (NAN, NAN, NAN)],
        *[(-2.0, 3.0, -8.0), (-2.0, 2.0, 4.0), (-1.0, 1e30, 1.0), (-1.0, 16777215.0, -1.0), (2.0, -149.0, 2.0**-149)],
        *[(10.0, 1e6, INF), (10.0, -1e6, 0.0), (-10.0, 1000001.0, -INF), (-10.0, -1000001.0, -0.0)],
    ],
}


@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("dtype", [F32, F64], ids=dt.SHORT.get)
def test_special_values(name, dtype):
    *x, expected = (np.array(column, dtype) for column in zip(*SPECIAL[name]))
    got = compiled(name, dtype)(*x)
    wrong = [
        (row, g) for row, g, want in zip(SPECIAL[name], got, expected) if not same_bits(np.array(g), np.array(want))
    ]
    assert not wrong


def test_special_values_cover_every_function():
    assert set(SPECIAL) == set(REFERENCE)


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", [F32, F64], ids=dt.SHORT.get)
def test_huge_arguments_next_to_multiples_of_half_pi(name, dtype):
    """For each exponent the float m 2**e that comes closest to a multiple of pi/2 in proportion.

    The best m are the denominators of the continued fraction of 2**e / (pi/2).
    """
    info = np.finfo(dtype)
    hard = []
    with mpmath.workprec(2400):
        for exponent in range(-8, info.maxexp - info.nmant, 7 if dtype == F64 else 1):
            ratio = mpmath.mpf(2) ** exponent / (mpmath.pi / 2)
            m, before = 0, 1
            while True:
                m, before = int(mpmath.floor(ratio)) * m + before, m
                if m >= 2 ** (info.nmant + 1):
                    break
                ratio = 1 / (ratio - mpmath.floor(ratio))
            hard.append(math.ldexp(before, exponent))
        x = np.array(hard).astype(dtype)
        exact = [getattr(mpmath, name)(mpmath.mpf(float(v))) for v in x]
        got = compiled(name, dtype)(x)
        for value, g, want in zip(x, got, exact):
            unit = mpmath.mpf(2) ** (max(mpmath.frexp(want)[1] - 1, info.minexp) - info.nmant)
            error = abs(mpmath.mpf(float(g)) - want) / unit
            assert error <= elementary.ULP[name, dt.SHORT[dtype]], float(value)


def test_two_over_pi():
    with mpmath.workprec(1500):
        assert int(mpmath.floor(2 / mpmath.pi * mpmath.mpf(2) ** 1280)) == elementary_trig._TWO_OVER_PI


@pytest.mark.parametrize("target", targets.NAMED)
@pytest.mark.parametrize("name", REFERENCE)
def test_every_target_accepts_it(name, target, tmp_path):
    arity = 2 if name in BINARY else 1
    goal = targets.NAMED[target]
    for dtype in (F32, F64):
        text, _ = loop_text(lambda e, *x: getattr(elementary, name)(e, *x), [dtype] * arity, goal, goal.lanes(64))
        code = assembly(text, goal)
        assert "kernel" in code
        if goal.kind == "cuda" and target == "sm_90" and dtype == F64 and shutil.which("ptxas"):
            (tmp_path / "a.ptx").write_text(code)
            command = ["ptxas", f"-arch=sm_{goal.sm}", "-O1", "-o", str(tmp_path / "a.cubin"), str(tmp_path / "a.ptx")]
            subprocess.run(command, check=True, capture_output=True)


UNDERFLOW = {"x86_64": 0x10, "AMD64": 0x10, "aarch64": 0x08, "arm64": 0x08}  # FE_UNDERFLOW of C's fenv.h


@pytest.mark.skipif(platform.machine() not in UNDERFLOW, reason="unknown floating-point flags")
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", ["exp", "sigmoid", "logaddexp"])
def test_what_vanishes_does_not_underflow_on_the_way(name, dtype):
    """Underflow takes processors a hundred times as long, and a softmax behind a mask has it in every vector."""
    flag, flags = UNDERFLOW[platform.machine()], ctypes.CDLL(None)
    small = np.array([-1e3, -1e4, -1e9, -1e30, -INF, 0.0, 1.0, -20.0] * 8, dtype)
    given = (small, np.abs(small[::-1]).copy()) if name == "logaddexp" else (small,)
    for label, target in runnable_targets().items():
        for width in () if is_emulated(target) else (1, 16):
            function = compiled(name, dtype, width=width, target=target)
            flags.feclearexcept(flag)
            function(*given)
            assert not flags.fetestexcept(flag), (label, width)


def everywhere(dtype: np.dtype) -> np.ndarray:
    """Numbers of both signs and every exponent at which twice and half the number are normal ones."""
    info = np.finfo(dtype)
    exponents = np.arange(info.minexp + 2, info.maxexp - 1)
    mantissas = np.random.default_rng(2).uniform(1, 2, (4, exponents.size))
    x = np.ldexp(np.concatenate([np.ones((1, exponents.size)), mantissas]), exponents).ravel()
    return np.concatenate([x, -x, [0.0, -0.0, INF, -INF]]).astype(dtype)


@pytest.mark.skipif(platform.machine() not in UNDERFLOW, reason="unknown floating-point flags")
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", UNARY)
def test_nothing_underflows_on_the_way_to_a_normal_number(name, dtype):
    """Gradients of 1e-20 are no reason to take a hundred times as long."""
    flag, flags = UNDERFLOW[platform.machine()], ctypes.CDLL(None)
    x = everywhere(dtype)
    result = compiled(name, dtype)(x)
    x = x[(np.abs(result) >= np.finfo(dtype).tiny) | (np.abs(x) > 1e3) | (x == 0) | np.isnan(result)]
    for label, target in runnable_targets().items():
        if target.fma and not is_emulated(target):
            function = compiled(name, dtype, width=16, target=target)
            for part in np.split(x, range(16, x.size, 16)):
                flags.feclearexcept(flag)
                function(part)
                assert not flags.fetestexcept(flag), (label, part)
