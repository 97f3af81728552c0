"""Products of every kind and size."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.suite.case import Case


def _turned(l: Any, x: Any) -> Any:
    return l.transposed(x, (1, 0))


def _product(m: int, k: int, n: int, dtype: str = "float32", batch: int = 0, transposed: str = "") -> Case:
    """x @ y of one pair of matrices or a batch of them; a factor whose letter is in ``transposed`` lies so."""
    left = (k, m) if "x" in transposed else (m, k)
    right = (n, k) if "y" in transposed else (k, n)
    lead = (batch,) if batch else ()

    def program(l: Any, x: Any, y: Any) -> Any:
        return l.matmul(_turned(l, x) if "x" in transposed else x, _turned(l, y) if "y" in transposed else y)

    def arguments(d: Any) -> list[Any]:
        if dtype.startswith("int"):
            return [d.integers(-100, 100, *lead, *shape, dtype=dtype) for shape in (left, right)]
        if dtype == "bfloat16":
            import ml_dtypes

            return [d.floats(*lead, *shape).astype(ml_dtypes.bfloat16) for shape in (left, right)]
        return [d.floats(*lead, *shape, dtype=dtype) for shape in (left, right)]

    return Case(program, arguments, 3e-2 if dtype in ("bfloat16", "float16") else 1e-4)


def _plain(*shapes: tuple[int, ...], turned: bool = False) -> Case:
    def program(l: Any, x: Any, y: Any) -> Any:
        return l.matmul(y, x) if turned else l.matmul(x, y)

    return Case(program, lambda d: [d.floats(*shape) for shape in shapes])


def _einsum(equation: str, *shapes: tuple[int, ...]) -> Case:
    return Case(lambda l, *given: l.einsum(equation, *given), lambda d: [d.floats(*shape) for shape in shapes])


def _distances(l: Any, x: Any, y: Any) -> Any:
    return l.sum(x * x, axis=1)[:, None] - 2 * l.matmul(x, _turned(l, y)) + l.sum(y * y, axis=1)[None]


def _norms(l: Any, x: Any) -> Any:
    d = x[:, None] - x[None]
    return l.sqrt(l.sum(d * d, axis=-1) + 1e-6)


def _least_squares(l: Any, x: Any, w: Any, y: Any) -> Any:
    for _ in range(10):
        w = w - 0.0001 * l.matmul(_turned(l, x), l.matmul(x, w) - y)
    return w


def _covariance(l: Any, x: Any) -> Any:
    y = x - l.sum(x, axis=0)[None] / 1000.0
    return l.matmul(_turned(l, y), y) / 999.0


def _gram(l: Any, x: Any) -> Any:
    return l.matmul(l.transposed(x, (0, 2, 1) if len(x.shape) == 3 else (1, 0)), x)


def _similarity(l: Any, z: Any) -> Any:
    z = z / l.sqrt(l.sum(z * z, axis=1))[:, None]
    return l.exp(l.matmul(z, _turned(l, z)) * 10.0 - 10.0)


def _of_one_query(l: Any, q: Any, k: Any, v: Any) -> Any:
    scores = l.einsum("bhd,bhkd->bhk", q, k) * 0.125
    return l.einsum("bhk,bhkd->bhd", l.softmax(scores), v)


def _small(name: str, count: int, n: int, sides: int = 0) -> Case:
    """A function of linear algebra of many positive definite matrices, and right-hand sides where it has any."""

    def arguments(d: Any) -> list[Any]:
        x = d.floats(count, n, n)
        a = x @ x.swapaxes(1, 2) + np.eye(n, dtype=np.float32)
        return [a, d.floats(count, n, sides)] if sides else [a]

    return Case(lambda l, *given: getattr(l, name)(*given), arguments, 1e-3)


CASES = {
    **{f"matmul {n}": _product(n, n, n) for n in (64, 128, 256, 512, 1024, 2048)},
    "matmul 511": _product(511, 511, 511),
    "matmul 513": _product(513, 513, 513),
    **{f"matmul {n}": _product(n, n, n) for n in (63, 65, 127, 129)},
    "matmul 127x333x65": _product(127, 333, 65),
    **{f"matmul 512x512x{n}": _product(512, 512, n) for n in (10, 100)},
    **{f"matmul {m}x1024x4096": _product(m, 1024, 4096) for m in (2, 16)},
    "matmul 100000x32x32": _product(100000, 32, 32),
    "matmul 10000x64x64": _product(10000, 64, 64),
    "matmul 64x10000x64": _product(64, 10000, 64),
    "matmul 64x64x10000": _product(64, 64, 10000),
    "matmul x.T y 512": _product(512, 512, 512, transposed="x"),
    "matmul x y.T 512": _product(512, 512, 512, transposed="y"),
    "matmul x.T y.T 512": _product(512, 512, 512, transposed="xy"),
    "matmul f64 512": _product(512, 512, 512, "float64"),
    "matmul f64 1024": _product(1024, 1024, 1024, "float64"),
    "100000 points turned": Case(
        lambda l, x, turn, origin: l.matmul(x, turn) + origin,
        lambda d: [d.floats(100_000, 3), d.floats(3, 3), d.floats(3)],
    ),
    "strided matmul 512": Case(
        lambda l, x, y: l.matmul(x[:, ::2], y), lambda d: [d.floats(512, 1024), d.floats(512, 512)]
    ),
    **{f"single matmul {n}x{n}": _product(n, n, n) for n in (4, 8, 16, 32)},
    "10000 of 3x3": _product(3, 3, 3, batch=10000),
    "10000 of 4x4": _product(4, 4, 4, batch=10000),
    "10000 of 8x8": _product(8, 8, 8, batch=10000),
    "1000 of 16x16": _product(16, 16, 16, batch=1000),
    "1000 of 32x32": _product(32, 32, 32, batch=1000),
    "64 of 128x128": _product(128, 128, 128, batch=64),
    "broadcast batch": _plain((128, 128), (32, 128, 128)),
    "matrix-vector 512": _plain((512, 512), (512,)),
    "matrix-vector 4096": _plain((4096, 4096), (4096,)),
    "vector-matrix 512": _plain((512, 512), (512,), turned=True),
    "vector-matrix 4096": _plain((4096, 4096), (4096,), turned=True),
    "vector times transposed 1000": Case(
        lambda l, x, w: l.matmul(x, _turned(l, w)), lambda d: [d.floats(1, 1000), d.floats(1000, 1000)]
    ),
    "outer 2048": Case(lambda l, x, y: x[:, None] * y[None], lambda d: [d.floats(2048), d.floats(2048)]),
    "einsum attention scores": _einsum("bqhd,bkhd->bhqk", (8, 256, 8, 64), (8, 256, 8, 64)),
    "einsum attention values": _einsum("bhqk,bkhd->bqhd", (8, 8, 256, 256), (8, 256, 8, 64)),
    "einsum abc,bd->adc": _einsum("abc,bd->adc", (64, 64, 100), (64, 64)),
    "bfloat16 512": _product(512, 512, 512, "bfloat16"),
    "bfloat16 1024": _product(1024, 1024, 1024, "bfloat16"),
    "float16 512": _product(512, 512, 512, "float16"),
    "int8 512": _product(512, 512, 512, "int8"),
    "int8 500": _product(500, 500, 500, "int8"),
    "int8 x.T y 512": _product(512, 512, 512, "int8", transposed="x"),
    "int8 x y.T 512": _product(512, 512, 512, "int8", transposed="y"),
    "int8 60x784x128": _product(60, 784, 128, "int8"),
    "int8 1024": _product(1024, 1024, 1024, "int8"),
    "int32 256": _product(256, 256, 256, "int32"),
    "distances 1000x1000x64": Case(_distances, lambda d: [d.floats(1000, 64), d.floats(1000, 64)]),
    "distances 2000x2000x3": Case(_distances, lambda d: [d.floats(2000, 3), d.floats(2000, 3)]),
    "distances without a product": Case(_norms, lambda d: [d.floats(500, 16)]),
    "gradient x.T g, 10 columns": _product(784, 64, 10, transposed="x"),
    "gradient x.T g, 10000 rows": _product(128, 10000, 10, transposed="x"),
    "layer with residual 256x512": Case(
        lambda l, x, v, b: x + l.relu(l.matmul(x, v) + b),
        lambda d: [d.floats(256, 512), d.weights(512, 512), d.floats(512)],
    ),
    "least squares, 10 steps": Case(_least_squares, lambda d: [d.floats(4096, 64), d.floats(64), d.floats(4096)], 1e-3),
    "covariance of 500": Case(_covariance, lambda d: [d.floats(1000, 500)], 1e-3),
    "x.T x, 2000x512": Case(_gram, lambda d: [d.floats(2000, 512)]),
    "x.T x, 64 of 128x64": Case(_gram, lambda d: [d.floats(64, 128, 64)]),
    "similarity of 1000 rows": Case(_similarity, lambda d: [d.floats(1000, 300)], 1e-3),
    "solve 10000 of 4x4": _small("solve", 10000, 4, 1),
    "solve 10000 of 3x3, 3 sides": _small("solve", 10000, 3, 3),
    "solve 1000 of 8x8": _small("solve", 1000, 8, 1),
    "solve one 6x6": _small("solve", 1, 6, 1),
    "determinants 10000 of 3x3": _small("det", 10000, 3),
    "determinants 1001 of 5x5": _small("det", 1001, 5),
    "inverses 10000 of 4x4": _small("inv", 10000, 4),
    "inverses 100 of 12x12": _small("inv", 100, 12),
    "cholesky 10000 of 2x2": _small("cholesky", 10000, 2),
    "cholesky 1000 of 6x6": _small("cholesky", 1000, 6),
    "attention of one query": Case(
        _of_one_query, lambda d: [d.floats(8, 8, 64), d.floats(8, 8, 1024, 64), d.floats(8, 8, 1024, 64)]
    ),
}
