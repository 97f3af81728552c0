"""Orders are a contract: digests of results that may never change.

Whoever stores a result, or compares two machines, relies on its last bit.  ``data/golden/bits.txt`` has a digest for
the result of every case here, eager or compiled, on every machine; a difference means that some program would give
other bits than it gave before.  ``--update-golden`` adds the digests of new cases: a line that changes is a defect.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.runtime.machine import host_target
from tests.support.jit_helper import runnable_targets
from tests.support.paths import DATA

pytestmark = pytest.mark.usual_level

FILE = DATA / "golden" / "bits.txt"
RUNNABLE = runnable_targets()


def mixed(size: int, seed: int) -> np.ndarray:
    """Hashes of 0, 1, ...: numbers that depend on no library's generator."""
    x = np.arange(1, size + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(
        seed * 0x632BE59BD9B4E019 % 2**64
    )
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 1) -> np.ndarray:
    """Integers of all bits, or floats of both signs and many sizes, so that every order of a sum has its own bits."""
    found = mixed(int(np.prod(shape)), seed).reshape(shape)
    if "float" not in dtype:
        return found.astype(np.dtype(dtype))
    exponents = (found >> np.uint64(55)).astype(np.int64) % 16 - 8
    fractions = (found & np.uint64(2**40 - 1)).astype(np.float64) / 2**39 - 1
    narrow = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    return (
        np.ldexp(fractions, exponents).astype(np.float32 if dtype in ("bfloat16", "float16") else dtype).astype(narrow)
    )


def positions(shape: tuple[int, ...], below: int, seed: int = 2) -> np.ndarray:
    return (mixed(int(np.prod(shape)), seed) % np.uint64(below)).astype(np.int64).reshape(shape)


CASES: dict[str, tuple[Callable[..., Any], list[np.ndarray]]] = {}


def case(name: str, function: Callable[..., Any], *inputs: np.ndarray) -> None:
    assert name not in CASES, name
    CASES[name] = function, list(inputs)


FOLDED = [
    ((1,), 0), ((63,), 0), ((65,), 0), ((4097,), 0), ((300_000,), 0), ((7, 130), 1), ((130, 7), 0), ((4200, 3), 0),
    ((5, 67, 3), (0, 2)), ((70, 2, 5, 13), (0, 2, 3)), ((33, 1, 65), (0, 1, 2)), ((0, 3), 0),
]  # fmt: skip
for shape, axis in FOLDED:
    label = f"{'x'.join(map(str, shape))} over {axis}".replace(" ", "")
    for dtype in ("float32", "float64", "bfloat16", "float16", "int8"):
        case(f"sum.{dtype}.{label}", lambda x, axis=axis: hf.sum(x, axis=axis), numbers(shape, dtype))
    case(f"prod.{label}", lambda x, axis=axis: hf.prod(x * 1.5, axis=axis), numbers(shape))
    case(f"mean.{label}", lambda x, axis=axis: hf.mean(x, axis=axis), numbers(shape))
    if shape[0]:
        case(f"max.{label}", lambda x, axis=axis: hf.max(x, axis=axis), numbers(shape))
        case(f"variance.{label}", lambda x, axis=axis: hf.var(x, axis=axis), numbers(shape))
        case(f"logsumexp.{label}", lambda x, axis=axis: hf.logsumexp(x, axis=axis), numbers(shape))

PRODUCTS = [
    ((3, 4), (4, 5)), ((1, 300), (300, 17)), ((70, 300), (300, 1)), ((61, 257), (257, 33)), ((40, 700), (700, 20)),
    ((2, 9, 65), (2, 65, 7)), ((5, 0), (0, 3)), ((130, 5000), (5000,)), ((5000,), (5000,)), ((513,), (513, 9)),
]  # fmt: skip
for left, right in PRODUCTS:
    label = "@".join("x".join(map(str, s)) for s in (left, right))
    for dtype in ("float32", "float64", "bfloat16", "float16", "int8"):
        case(f"matmul.{dtype}.{label}", lambda x, y: x @ y, numbers(left, dtype), numbers(right, dtype, 3))
    for dtype, wide in (("bfloat16", "float32"), ("int8", "int32"), ("float32", "float64")):
        case(
            f"matmul.{dtype}.{wide}.{label}",
            lambda x, y, wide=wide: hf.matmul(x, y, sum_dtype=wide),
            numbers(left, dtype),
            numbers(right, dtype, 3),
        )
case("matmul.transposed", lambda x, y: x.T @ y.T, numbers((300, 20)), numbers((30, 300), seed=3))
case("matmul.column.transposed", lambda x, y: x.T @ y, numbers((300, 20)), numbers((300,), seed=3))
tiny = np.ldexp(numbers((9, 70)).astype(np.float64), -66).astype(np.float32).astype(ml_dtypes.bfloat16)
case("matmul.bfloat16.denormal", lambda x: hf.matmul(x, x.T, sum_dtype="float32"), tiny)

CONVOLUTIONS = [
    ((2, 7, 8, 3), (3, 3, 3, 5), 1), ((1, 9, 9, 40), (3, 3, 40, 17), 2), ((2, 6, 5, 6), (3, 2, 1, 6), 1),
    ((2, 40, 12), (5, 4, 9), 1), ((1, 3, 4, 5, 2), (2, 2, 2, 2, 3), 1),
]  # fmt: skip
for images, filters, step in CONVOLUTIONS:
    label = "*".join("x".join(map(str, s)) for s in (images, filters))
    for dtype in ("float32", "float64", "bfloat16", "float16"):
        case(
            f"convolution.{dtype}.{label}",
            lambda x, f, step=step: hf.nn.convolution(x, f, step, "SAME"),
            numbers(images, dtype),
            numbers(filters, dtype, 3),
        )

for shape, axis in [((1,), 0), ((64,), 0), ((65,), 0), ((9000,), 0), ((3, 4097), 1), ((4200, 5), 0), ((2, 130, 20), 1)]:
    label = f"{'x'.join(map(str, shape))} along {axis}".replace(" ", "")
    for dtype in ("float32", "float64", "bfloat16", "int8"):
        case(f"cumulative_sum.{dtype}.{label}", lambda x, axis=axis: hf.cumulative_sum(x, axis), numbers(shape, dtype))


def gradient(function: Callable[..., Any]) -> Callable[..., Any]:
    def result(x: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        return tape.gradient(y, x)

    return result


case("prod.gradient", gradient(lambda x: hf.prod(1 + x / 5000, axis=1)), numbers((3, 5000)))
case("scan.gradient", gradient(lambda x: hf.sum(hf.cumulative_sum(x) ** 2)), numbers((5000,)))
case("take.gradient", gradient(lambda x: hf.sum(hf.take(x, positions((3000,), 40)) ** 2)), numbers((40,)))

for dtype in ("float32", "bfloat16", "int32"):
    for shape, count, axis in [((50,), 4000, 0), ((40, 33), 700, 0), ((3, 20), 500, 1)]:
        updates = (*shape[:axis], count, *shape[axis + 1 :])
        case(
            f"scatter_add.{dtype}.{'x'.join(map(str, shape))}.{axis}",
            lambda x, i, u, axis=axis: hf.scatter_add(x, i, u, axis=axis),
            numbers(shape, dtype),
            positions((count,), shape[axis]),
            numbers(updates, dtype, 3),
        )

for dtype in ("float32", "float64", "int32", "uint8", "bfloat16"):
    for shape, axis in [((10_000,), 0), ((30, 70), 1), ((300, 4), 0)]:
        x = np.where(positions(shape, 5) == 0, np.zeros((), numbers((1,), dtype).dtype), numbers(shape, dtype))
        case(f"sort.{dtype}.{'x'.join(map(str, shape))}", lambda x, axis=axis: hf.sort(x, axis=axis), x)
        case(
            f"argsort.{dtype}.{'x'.join(map(str, shape))}",
            lambda x, axis=axis: hf.argsort(x, axis=axis, descending=True),
            x,
        )

case("softmax", lambda x: hf.nn.softmax(x, axis=-1), numbers((20, 300)))
case("softmax.bfloat16", lambda x: hf.nn.softmax(x, axis=-1), numbers((20, 300), "bfloat16"))
case("softmax.over.0", lambda x: hf.nn.softmax(x, axis=0), numbers((300, 20)))
case(
    "normed",
    lambda x: (x - hf.mean(x, -1, keepdims=True)) / hf.sqrt(hf.var(x, -1, keepdims=True) + 1e-5),
    numbers((9, 500)),
)
case("chain", lambda x: hf.sum(hf.tanh(x) * hf.exp(-x * x) + hf.sin(x * 100), axis=1), numbers((9, 5000)))
case("powers", lambda x: hf.log1p(hf.abs(x)) ** 0.37 / (1 + hf.cos(x) ** 2), numbers((4000,)))
case("layer", lambda x, w: hf.nn.relu(x @ w + 1) @ w.T, numbers((33, 129)), numbers((129, 40), seed=3))


for dtype in ("float32", "float64"):
    matrices = numbers((21, 5, 5), dtype)
    case(f"linalg.solve.{dtype}", hf.linalg.solve, matrices, numbers((21, 5, 2), dtype, 3))
    case(f"linalg.inv.{dtype}", hf.linalg.inv, matrices)
    case(f"linalg.det.{dtype}", hf.linalg.det, matrices)
    dominant = np.tril(numbers((21, 5, 5), dtype)) + 1000 * np.eye(5, dtype=dtype)
    case(f"linalg.cholesky.{dtype}", hf.linalg.cholesky, dominant)


def drawn(draw: Callable[[Any], Any]) -> Callable[[], Any]:
    def result() -> Any:
        return draw(hf.random.Generator(7))

    return result


case("random.uniform", drawn(lambda g: g.uniform((1001,))))
case("random.normal", drawn(lambda g: g.normal((1001,))))

# NumPy's exp has another last bit where a machine has AVX-512: numbers of few digits are the same everywhere.
LADDER = np.exp(np.linspace(-4, 11, 501))
ROUNDED = np.round(LADDER, 6)
draws, SEED = hf.random, np.array([1, 2])
case("stateless.bits", lambda seed: draws.stateless_randint((7, 67), seed, 0, 2**16), SEED)
case("stateless.normal", lambda seed: draws.stateless_normal((501,), seed, dtype="float64"), SEED)
case("stateless.truncated", lambda seed: draws.stateless_truncated_normal((501,), seed), SEED)
case("stateless.laplace", lambda seed: draws.stateless_laplace((501,), seed), SEED)
case("stateless.gamma", lambda seed, a: draws.stateless_gamma((501,), seed, a), SEED, LADDER.astype(np.float32))
case("stateless.gamma_wide", lambda seed, a: draws.stateless_gamma((501,), seed, a, dtype="float64"), SEED, ROUNDED)
case("stateless.poisson", lambda seed, lam: draws.stateless_poisson((501,), seed, lam), SEED, LADDER)
case("stateless.binomial", lambda seed, n: draws.stateless_binomial((501,), seed, n, 0.3), SEED, np.floor(LADDER))
case("stateless.wide", lambda seed: draws.stateless_randint((501,), seed, 0, 2**40), SEED)
case("stateless.classes", lambda seed, x: draws.stateless_categorical(x, seed, 101), SEED, numbers((4, 40), "float64"))
case("stateless.choice", lambda seed: draws.stateless_choice(99, seed, 50, False, np.arange(99)), SEED)

for shape in ((16,), (3, 60), (2, 1000), (1009,), (4096,)):
    label = "x".join(map(str, shape))
    for dtype in ("float32", "float64"):
        case(
            f"fft.{dtype}.{label}",
            lambda x, y: hf.fft.fft(hf.complex(x, y)),
            numbers(shape, dtype),
            numbers(shape, dtype, 3),
        )
        case(f"fft.real.{dtype}.{label}", lambda x: hf.fft.irfft(hf.abs(hf.fft.rfft(x))), numbers(shape, dtype))


def digest(result: np.ndarray) -> str:
    """NaNs count as equal: neither IEEE 754 nor LLVM fixes their signs and payloads."""
    if dt.is_float(result.dtype):
        result = np.where(np.isnan(result), np.zeros((), result.dtype), result).astype(result.dtype)
    head = f"{result.dtype} {result.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(result).tobytes()).hexdigest()[:24]


def committed() -> dict[str, str]:
    lines = FILE.read_text().splitlines() if FILE.exists() else []
    return dict(line.rsplit(" ", 1) for line in lines)


KINDS = sorted({name.partition(".")[0] for name in CASES})


@pytest.mark.parametrize("kind", KINDS)
def test_no_bit_has_changed(kind: str, request: pytest.FixtureRequest) -> None:
    known = committed()
    for name in (name for name in CASES if name.partition(".")[0] == kind):
        function, arrays = CASES[name]
        inputs = [hf.constant(x) for x in arrays]
        eager = digest(function(*inputs).numpy())
        for target in RUNNABLE.values() if kind != "random" else ():  # a generator's state is made outside of functions
            with host_target.use(target):
                assert digest(hf.function(function)(*inputs).numpy()) == eager, (name, target.cpu)
        if request.config.getoption("--update-golden"):
            known.setdefault(name, eager)
        assert known.get(name) == eager, f"{name}: other bits than those in {FILE.name}"
    if request.config.getoption("--update-golden"):
        FILE.write_text("".join(f"{name} {value}\n" for name, value in sorted(known.items())))


SOME = [name for name in CASES if not name.startswith("random")][::12]  # of all kinds


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 1])
def test_bits_are_the_same_at_each_level_of_code_generation(level: int) -> None:
    known = committed()
    with flags.OPT(str(level)):
        for name in SOME:
            function, arrays = CASES[name]
            inputs = [hf.constant(x) for x in arrays]
            for target in RUNNABLE.values():
                with host_target.use(target):
                    assert digest(hf.function(function)(*inputs).numpy()) == known[name], (name, target.cpu)


def test_every_digest_has_a_case() -> None:
    assert set(committed()) == set(CASES)


def test_a_digest_sees_the_last_bit() -> None:
    x = numbers((1000,))
    y = x.copy()
    y[500] = np.nextafter(y[500], np.float32(np.inf))
    assert len({digest(v) for v in (x, y, x.reshape(10, 100), x.view(np.int32))}) == 4
