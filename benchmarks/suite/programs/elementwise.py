"""Fused elementwise work, reductions, scans, stencils, and programs so small that the call is what counts."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case, leaves, mapped

MILLION = 1 << 20


def _weighed(l: Any, x: Any, y: Any, z: Any) -> Any:
    return l.sum(x + y * z)


def _chain(l: Any, x: Any) -> Any:
    for _ in range(10):
        x = l.tanh(x) * 1.01 + 0.1
    return x


def _options(l: Any, price: Any, strike: Any, years: Any) -> Any:
    """Black and Scholes: calls and puts at a rate of 2% and a volatility of 30%."""

    def normal(x: Any) -> Any:
        return 0.5 + 0.5 * l.erf(x * 0.7071067811865476)

    root = 0.3 * l.sqrt(years)
    first = (l.log(price / strike) + 0.065 * years) / root
    discounted = strike * l.exp(-0.02 * years)
    call = price * normal(first) - discounted * normal(first - root)
    return [call, call - price + discounted]


def _mandelbrot(l: Any, x: Any, y: Any) -> Any:
    def turn(a: Any, b: Any, n: Any) -> Any:
        inside = a * a + b * b < 4.0
        return l.where(inside, a * a - b * b + x, a), l.where(inside, 2.0 * a * b + y, b), n + l.cast(inside, "float32")

    return l.repeated(50, turn, (x * 0.0, y * 0.0, x * 0.0))[2]


def _saturating(l: Any, a: Any, b: Any) -> Any:
    return l.cast(l.minimum(l.cast(a, "int16") + l.cast(b, "int16"), 255), "uint8")


def _brighter(l: Any, x: Any) -> Any:
    return l.cast(l.clip(l.cast(x, "float32") * 1.2 + 10.0, 0.0, 255.0), "uint8")


def _heat(l: Any, x: Any) -> Any:
    inner = x[1:-1, 1:-1]
    return inner + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4.0 * inner)


def _blur(l: Any, x: Any) -> Any:
    rows = 0.25 * x[:-2] + 0.5 * x[1:-1] + 0.25 * x[2:]
    return 0.25 * rows[:, :-2] + 0.5 * rows[:, 1:-1] + 0.25 * rows[:, 2:]


def _life(l: Any, x: Any) -> Any:
    around = sum(l.roll(l.roll(x, i, axis=0), j, axis=1) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    return l.cast((around == 3) | ((x == 1) & (around == 2)), "uint8")


def _bodies(l: Any, x: Any) -> Any:
    d = x[:, None] - x[None]
    r = l.sum(d * d, axis=-1) + 0.01
    return l.sum(d / (r * l.sqrt(r))[..., None], axis=1)


def _pairs(l: Any, x: Any) -> Any:
    """A loss of ranking: over all pairs of a row."""
    return l.sum(l.exp(-abs(x[:, :, None] - x[:, None, :])))


def _spread(l: Any, x: Any, mean: Any, weight: Any) -> Any:
    d = x - mean
    return l.sum(d * d * weight)


def _overlaps(l: Any, a: Any, b: Any) -> Any:
    """Of boxes, given by a corner and sides."""
    low = l.maximum(a[:, None, :2], b[None, :, :2])
    high = l.minimum(a[:, None, :2] + a[:, None, 2:], b[None, :, :2] + b[None, :, 2:])
    sides = l.clip(high - low, 0.0, 1e9)
    shared = sides[..., 0] * sides[..., 1]
    return shared / ((a[:, 2] * a[:, 3])[:, None] + (b[:, 2] * b[:, 3])[None] - shared)


def _lorenz(l: Any, state: Any) -> Any:
    for _ in range(8):
        x, y, z = state[:, 0], state[:, 1], state[:, 2]
        state = state + 0.005 * l.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 2.5 * z], axis=1)
    return state


def _contrast(l: Any, x: Any, factor: Any) -> Any:
    """Of images of bytes, each colour's around its mean."""
    x = l.cast(x, "float32")
    mean = l.sum(l.sum(x, axis=1), axis=1)[:, None, None] / (x.shape[1] * x.shape[2])
    return l.cast(l.maximum(l.minimum((x - mean) * factor + mean, 255.0), 0.0), "uint8")


def _laid_over(l: Any, a: Any, b: Any) -> Any:
    """Pictures of bytes whose fourth value is how much is covered."""
    a, b = l.cast(a, "float32"), l.cast(b, "float32")
    cover = a[..., 3:] / 255.0
    return l.cast(a * cover + b * (1.0 - cover), "uint8")


def _standardised(l: Any, x: Any) -> Any:
    centred = x - l.sum(x, axis=0) / x.shape[0]
    return centred / l.sqrt(l.sum(centred * centred, axis=0) / x.shape[0])


def _tails(l: Any, x: Any) -> Any:
    """Kurtosis."""
    d = x - l.sum(x, axis=0) / x.shape[0]
    return l.sum(d**4, axis=0) / l.sum(d**2, axis=0) ** 2 * x.shape[0]


def _bits(l: Any, x: Any, places: Any) -> Any:
    return l.cast((x[:, None] >> places) & 1, "bool")


def _energies(l: Any, s: Any) -> Any:
    """Of states that are six numbers each."""
    away = s[:, 0] ** 2 + s[:, 1] ** 2 + s[:, 2] ** 2
    return 0.5 * (s[:, 3] ** 2 + s[:, 4] ** 2 + s[:, 5] ** 2) - 1.0 / l.sqrt(away + 0.1)


def _settled(l: Any, tree: Any) -> Any:
    return mapped(lambda x: x * 0.9 + 0.1, tree)


def _summed(l: Any, tree: Any) -> Any:
    return sum(leaves(tree))


def _tree(d: Any) -> Any:
    return [
        {
            "layers": [{"w": d.floats(16, 16), "b": d.floats(16), "more": (d.floats(8), d.floats(4))}] * 12,
            "s": [d.floats(3)] * 2,
        }
    ]


CASES = {
    "sum(x + y*z) 1M": Case(_weighed, lambda d: [d.positive(MILLION) for _ in range(3)]),
    "sum(x + y*z) 16M": Case(_weighed, lambda d: [d.positive(16 * MILLION) for _ in range(3)]),
    "30-op chain 1M": Case(_chain, lambda d: [d.floats(MILLION)]),
    "exp 8M": Case(lambda l, x: l.exp(x), lambda d: [d.floats(8 * MILLION)]),
    "tanh-gelu 1M": Case(lambda l, x: l.gelu(x), lambda d: [d.floats(MILLION)]),
    "tanh-gelu 16M": Case(lambda l, x: l.gelu(x), lambda d: [d.floats(16 * MILLION)]),
    "Black-Scholes 1M": Case(
        _options, lambda d: [d.positive(MILLION) * 50 + 50 for _ in range(2)] + [d.positive(MILLION) + 0.1]
    ),
    "Mandelbrot 512": Case(_mandelbrot, lambda d: [d.positive(512, 512) * 3 - 2, d.positive(512, 512) * 2 - 1], 0.05),
    "saturating uint8 add": Case(
        _saturating, lambda d: [d.integers(0, 256, 1000, 1000, dtype="uint8") for _ in range(2)]
    ),
    "brighter uint8 image": Case(_brighter, lambda d: [d.integers(0, 256, 1000, 1000, dtype="uint8")], 0.01),
    "contrast of uint8 images": Case(
        _contrast, lambda d: [d.integers(0, 256, 32, 128, 128, 3, dtype="uint8"), d.positive(32, 1, 1, 1) + 0.5], 0.01
    ),
    "pictures laid over others": Case(
        _laid_over, lambda d: [d.integers(0, 256, 512, 512, 4, dtype="uint8") for _ in range(2)], 0.01
    ),
    "bits of bytes": Case(
        _bits, lambda d: [d.integers(0, 256, 200_000, dtype="uint8"), d.integers(0, 8, 8, dtype="uint8")]
    ),
    "bias and relu, 10 columns": Case(lambda l, x, b: l.relu(x + b), lambda d: [d.floats(20_000, 10), d.floats(10)]),
    "bias and relu, 63 columns": Case(lambda l, x, b: l.relu(x + b), lambda d: [d.floats(3000, 63), d.floats(63)]),
    "standardised 3 columns": Case(_standardised, lambda d: [d.floats(100_000, 3)], 1e-3),
    "standardised 10 columns": Case(_standardised, lambda d: [d.floats(100_000, 10)], 1e-3),
    "kurtosis": Case(_tails, lambda d: [d.floats(300_000)], 1e-3),
    "energies of states": Case(_energies, lambda d: [d.floats(100_000, 6)], 1e-3),
    "entropy float64": Case(
        lambda l, x: -l.sum(x * l.log(x)), lambda d: [d.floats(300_000, dtype="float64") ** 2 + 1e-3], 1e-4
    ),
    "heat stencil 1024": Case(_heat, lambda d: [d.floats(1026, 1026)]),
    "blur 1024": Case(_blur, lambda d: [d.floats(1026, 1026)]),
    "game of life 1024": Case(_life, lambda d: [d.integers(0, 2, 1024, 1024, dtype="uint8")]),
    "n-body 512": Case(_bodies, lambda d: [d.floats(512, 3)], 2e-3),
    "pairs of rows 128x64": Case(_pairs, lambda d: [d.floats(128, 64)], 1e-3),
    "spread around columns": Case(_spread, lambda d: [d.floats(1000, 500), d.floats(500), d.positive(1000, 1)], 1e-3),
    "overlaps of boxes": Case(_overlaps, lambda d: [d.positive(300, 4), d.positive(2000, 4)], 1e-3),
    "Lorenz 10000": Case(_lorenz, lambda d: [d.floats(10_000, 3)], 1e-3),
    "sum float64 1M": Case(lambda l, x: l.sum(x), lambda d: [d.floats(MILLION, dtype="float64")]),
    "column sums 8192x1024": Case(lambda l, x: l.sum(x, axis=0), lambda d: [d.floats(8192, 1024)], 1e-3),
    "row sums 8192x1024": Case(lambda l, x: l.sum(x, axis=1), lambda d: [d.floats(8192, 1024)], 1e-3),
    "column sums 100000x3": Case(lambda l, x: l.sum(x, axis=0), lambda d: [d.floats(100_000, 3)], 1e-3),
    "any of rows": Case(lambda l, x: l.any(x, axis=1), lambda d: [d.integers(0, 1000, 1000, 1000) == 0]),
    "all of columns": Case(lambda l, x: l.all(x, axis=0), lambda d: [d.integers(0, 1000, 1000, 1000) != 0]),
    "largest of rows 1000x1000": Case(lambda l, x: l.max(x, axis=1), lambda d: [d.floats(1000, 1000)]),
    "logsumexp of rows": Case(lambda l, x: l.logsumexp(x, axis=1), lambda d: [d.floats(4096, 1024)]),
    "logsumexp, middle axis": Case(lambda l, x: l.logsumexp(x, axis=1), lambda d: [d.floats(64, 128, 64)]),
    "logsumexp, middle axis, 7 columns": Case(lambda l, x: l.logsumexp(x, axis=1), lambda d: [d.floats(256, 50, 7)]),
    "running sum 1M": Case(lambda l, x: l.cumsum(x, axis=0), lambda d: [d.positive(MILLION)], 1e-3),
    "running sum of rows": Case(lambda l, x: l.cumsum(x, axis=1), lambda d: [d.floats(1000, 1000)], 1e-3),
    "running sum of columns": Case(lambda l, x: l.cumsum(x, axis=0), lambda d: [d.floats(1000, 1000)], 1e-3),
    "x + 1, 16": Case(lambda l, x: x + 1, lambda d: [d.floats(16)]),
    "tiny chain, 16": Case(_chain, lambda d: [d.floats(16)]),
    "tiny network, 1": Case(
        lambda l, x, v, w: l.softmax(l.matmul(l.tanh(l.matmul(x, v)), w)),
        lambda d: [d.floats(1, 4), d.floats(4, 8), d.floats(8, 2)],
    ),
    "dict of 10 arrays": Case(_summed, lambda d: [{f"name{k}": d.floats(64) for k in range(10)}]),
    "list of 20 arrays": Case(_summed, lambda d: [[d.floats(64) for _ in range(20)]]),
    "tree of 50 arrays": Case(_settled, _tree),
}
