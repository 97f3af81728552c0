"""Everyday programs over axes of any size: bodies, and the shapes of their arguments, where "n" and "m" are open.

They are what people write with slices, joins, reshapes, reductions and extents as numbers; the bodies run eagerly too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf


class Everyday(NamedTuple):
    """``body`` of arrays of ``shapes``; float32 unless ``dtypes`` say otherwise."""

    body: Callable[..., Any]
    shapes: tuple[tuple[int | str, ...], ...]
    dtypes: tuple[str, ...] = ()
    differentiable: bool = True


def gradient_of(loss: Callable[..., Any]) -> Callable[..., Any]:
    def gradient(*xs: Any) -> Any:
        with hf.GradientTape() as tape:
            tape.watch(xs)
            y = loss(*xs)
        return [g for g in tape.gradient(y, xs) if g is not None]

    return gradient


def with_gradient(name: str, sizes: dict[str, int], seed: int) -> Callable[[], Any]:
    """The gradients of a program's float results, which are summed behind a sine, at random values, as a call."""
    program, rng = EVERYDAY[name], np.random.default_rng(seed)
    dtypes = program.dtypes or ("float32",) * len(program.shapes)
    shapes = [[sizes[e] if isinstance(e, str) else e for e in shape] for shape in program.shapes]
    xs = [hf.asarray((3 * rng.random(shape)).astype(dtype)) for shape, dtype in zip(shapes, dtypes)]

    def loss(*xs: Any) -> Any:
        found = program.body(*xs)
        parts = found if isinstance(found, (list, tuple)) else [found]
        return [hf.sum(hf.sin(y)) for y in parts if hf.isdtype(y.dtype, "real floating")]

    return lambda: gradient_of(loss)(*xs)


def cross_entropy(labels: Any, logits: Any) -> Any:
    chosen = hf.one_hot(labels, 5) * hf.nn.log_softmax(logits)
    return -hf.sum(chosen) / logits.shape[0]


def three_layers(x: Any, a: Any, b: Any, c: Any) -> Any:
    h = hf.nn.relu(x @ a)
    h = hf.tanh(h @ b)
    return hf.mean((h @ c) ** 2)


def normalised(x: Any) -> Any:
    centred = x - hf.mean(x, axis=0)
    return centred / hf.sqrt(hf.mean(centred * centred, axis=0) + 1e-3)


def by_size(x: Any) -> Any:
    if x.shape[0] > 4:
        return x[:4] * 2
    return x + 1


def windows(x: Any) -> Any:
    return hf.sum(hf.stack([x[:-2], x[1:-1], x[2:]], axis=1), axis=1) / 3


def attention(q: Any, k: Any, v: Any) -> Any:
    scores = q @ k.T / 3.0
    rows = hf.arange(q.shape[0])[:, None] >= hf.arange(k.shape[0])[None, :]
    return hf.nn.softmax(hf.where(rows, scores, -1e9)) @ v


def _pairs(x: Any) -> Any:
    difference = x[:, None] - x[None, :]
    return hf.sum(difference * difference)


N, NM, ROW = ("n",), ("n", "m"), ("n", 3)

EVERYDAY: dict[str, Everyday] = {
    "sums of two": Everyday(lambda x, y: x + y, (N, N)),
    "a sum and a product of all": Everyday(lambda x: (hf.sum(x), hf.prod(x)), (N,)),
    "slice from the second on": Everyday(lambda x: x[1:] * 2, (N,)),
    "all but the last": Everyday(lambda x: x[:-1] + 1, (ROW,)),
    "differences": Everyday(lambda x: x[1:] - x[:-1], (N,)),
    "every second": Everyday(lambda x: x[::2], (N,)),
    "every third, from the second": Everyday(lambda x: x[1::3] * 2, (N,)),
    "the last three": Everyday(lambda x: hf.exp(x[-3:]), (N,)),
    "the first five": Everyday(lambda x: x[:5] * 2, (ROW,)),
    "the middle": Everyday(lambda x: x[2:-2], (N,)),
    "backwards": Everyday(lambda x: x[::-1] * 3, (N,)),
    "backwards in twos": Everyday(lambda x: x[::-2], (N,)),
    "backwards from the end": Everyday(lambda x: x[-2::-1], (N,)),
    "first and last": Everyday(lambda x: x[0] * x[-1], (ROW,)),
    "the sixth": Everyday(lambda x: x[5], (N,)),
    "up to five before the end": Everyday(lambda x: x[:, : x.shape[1] - 5], ((2, "n"),)),
    "from the middle on": Everyday(lambda x: x[x.shape[0] // 2 :], (N,)),
    "halves": Everyday(lambda x: x[: x.shape[0] // 2] - x[-(x.shape[0] // 2) :], (N,)),
    "columns by a slice": Everyday(lambda x: x[:, 1:] * x[:, :-1], (NM,)),
    "concat with itself": Everyday(lambda x: hf.concat([x, x * 2], 0), (N,)),
    "concat of two": Everyday(lambda x, y: hf.concat([x, y], 0) + 1, (ROW, ("m", 3))),
    "concat of parts": Everyday(lambda x: hf.concat([x[1:], x[:1]], 0), (N,)),
    "concat, flattened": Everyday(lambda x, y: hf.concat([x, y], None), (ROW, ("m",))),
    "stack": Everyday(lambda x, y: hf.stack([x, y, x * y]), (N, N)),
    "pad": Everyday(lambda x: hf.pad(x, ((1, 2), (0, 1))), (NM,)),
    "pad at the edge": Everyday(lambda x: hf.pad(x, ((2, 2),), mode="edge"), (N,)),
    "pad by reflection": Everyday(lambda x: hf.pad(x, ((1, 1),), mode="reflect"), (N,)),
    "split in two": Everyday(lambda x: [a * 2 for a in hf.split(x, 2)], (N,)),
    "split by sizes": Everyday(lambda x: hf.split(x, [1, -1]), (N,)),
    "tile": Everyday(lambda x: hf.tile(x, (2, 3)), (NM,)),
    "repeat": Everyday(lambda x: hf.repeat(x, 3, axis=0), (ROW,)),
    "repeat, flattened": Everyday(lambda x: hf.repeat(x, 2), (NM,)),
    "roll": Everyday(lambda x: hf.roll(x, 1, 0), (N,)),
    "roll back by two": Everyday(lambda x: hf.roll(x, -2, 0) - x, (N,)),
    "roll of all": Everyday(lambda x: hf.roll(x, 3), (NM,)),
    "flatten": Everyday(lambda x: hf.reshape(x, (-1,)) * 2, (NM,)),
    "reshape to rows": Everyday(lambda x: hf.reshape(x, (x.shape[0], -1)), (("n", 2, 3),)),
    "reshape to pairs": Everyday(lambda x: hf.sum(hf.reshape(x, (-1, 2)), axis=1), (N,)),
    "reshape to six": Everyday(lambda x: hf.reshape(x, (6,)), (N,)),
    "reshape there and back": Everyday(lambda x: hf.reshape(hf.exp(hf.reshape(x, (-1,))), x.shape), (NM,)),
    "divided by its length": Everyday(lambda x: x / x.shape[0], (N,)),
    "three times its length": Everyday(lambda x: hf.zeros((x.shape[0] * 3, 2)) + 1, (N,)),
    "plus its extent": Everyday(lambda x: x + (x.shape[0] * 2 + 1), (N,)),
    "root of its extent": Everyday(lambda x: x / hf.sqrt(hf.constant(1.0) * x.shape[0]), (N,)),
    "zeros of its rows": Everyday(lambda x: hf.zeros((x.shape[0], 3)), (N,)),
    "counted": Everyday(lambda x: hf.arange(x.shape[0]) * 2, (N,)),
    "counted to twice": Everyday(lambda x: hf.arange(1, 2 * x.shape[0] + 1), (N,)),
    "positions": Everyday(lambda x: x * hf.arange(x.shape[0], dtype="float32"), (N,)),
    "spaced evenly": Everyday(lambda x: x + hf.linspace(0.0, 1.0, x.shape[0]), (N,)),
    "identity": Everyday(lambda x: x + hf.eye(x.shape[0]), (("n", "n"),)),
    "lower triangle": Everyday(lambda x: hf.tril(x) @ x, (("n", "n"),)),
    "diagonal": Everyday(lambda x: hf.diagonal(x, 1), (("n", "n"),)),
    "matrix product": Everyday(lambda x, y: x @ y, ((3, "n"), ("n", 4))),
    "Gram": Everyday(lambda x: x.T @ x, (ROW,)),
    "batch times matrix": Everyday(lambda x, w: x @ w, (("n", "m", 3), (3, 4))),
    "dot": Everyday(lambda x, y: hf.vecdot(x, y), (N, N)),
    "outer": Everyday(lambda x, y: hf.outer(x, y), (N, ("m",))),
    "einsum": Everyday(lambda x, y: hf.einsum("bij,bjk->bik", x, y), (("n", 2, "m"), ("n", "m", 3))),
    "mean": Everyday(lambda x: hf.mean(x, axis=0), (ROW,)),
    "mean of all": Everyday(lambda x: hf.mean(x), (NM,)),
    "variance": Everyday(lambda x: hf.var(x, axis=0, correction=1), (ROW,)),
    "greatest": Everyday(lambda x: (hf.max(x, axis=0), hf.argmax(x, axis=0)), (ROW,)),
    "sums along each axis": Everyday(lambda x: (hf.sum(x, axis=0), hf.sum(x, axis=1)), (NM,)),
    "sum of a slice": Everyday(lambda x: hf.sum(x[1:], axis=0), (("n", "m"),)),
    "greatest of a slice": Everyday(lambda x: hf.max(x[1:], axis=0), (ROW,)),
    "product of all but the last": Everyday(lambda x: hf.prod(x[:-1]), (N,)),
    "softmax": Everyday(lambda x: hf.nn.softmax(x), (NM,)),
    "softmax over rows": Everyday(lambda x: hf.nn.softmax(x, axis=0), (NM,)),
    "cumulative": Everyday(lambda x: hf.cumulative_sum(x, axis=0), (ROW,)),
    "sorted": Everyday(lambda x: hf.sort(x), (N,)),
    "three largest": Everyday(lambda x: hf.top_k(x, 3), (N,)),
    "where": Everyday(lambda x: hf.where(x > 0, x, 0.0), (N,)),
    "one hot": Everyday(lambda i: hf.one_hot(i, 4), (N,), ("int64",)),
    "gathered": Everyday(lambda x, i: hf.take(x, i, axis=0), (ROW, ("m",)), ("float32", "int64")),
    "looked up by pairs": Everyday(lambda x, i, j: x[i, j], (NM, ("k",), ("k",)), ("float32", "int64", "int64")),
    "normalised": Everyday(normalised, (ROW,)),
    "windows of three": Everyday(windows, (N,)),
    "attention": Everyday(attention, (ROW, ("m", 3), ("m", 2))),
    "by its size": Everyday(by_size, (N,)),
    "by equal sizes": Everyday(lambda x, y: x + y if x.shape[0] == y.shape[0] else hf.concat([x, y], 0), (N, ("m",))),
    "broadcast of three": Everyday(lambda x, y: x * y + 1, (("n", 1), (1, "m"))),
    "rows and columns": Everyday(lambda x, y: x[:, None] + y[None, :], (N, ("m",))),
    "pairwise": Everyday(_pairs, (ROW,)),
    "outer sum": Everyday(lambda x: hf.sum(x[:, None] * x[None, :], axis=1), (N,)),
    "cross entropy": Everyday(cross_entropy, (N, ("n", 5)), ("int64", "float32")),
    "three layers": Everyday(three_layers, (ROW, (3, 8), (8, 8), (8, 2))),
    "its length": Everyday(lambda x: x * len(x), (N,)),
    "a loop over rows": Everyday(lambda x: sum([x[i] * i for i in range(min(x.shape[0], 3))], hf.zeros(3)), (ROW,)),
    "a sum over all rows": Everyday(lambda x: sum([x[i] for i in range(x.shape[0])], hf.zeros(3)), (ROW,)),
    "its size": Everyday(lambda x: hf.sum(x) / x.size, (NM,)),
    "extent in a text": Everyday(lambda x: x + len(f"{x.shape[0]}"), (N,)),
    "texts compared": Everyday(lambda x: x * (2 if f"{x.shape[0]}" + "!" == "17!" else 3), (N,)),
    "odd or even": Everyday(lambda x: x[: x.shape[0] - x.shape[0] % 2], (N,)),
}
