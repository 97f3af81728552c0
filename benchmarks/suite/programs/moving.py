"""Moving data: views that become memory, images, joining, and looking up."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case


def _bilinear(l: Any, image: Any, y: Any, x: Any) -> Any:
    y0, x0 = l.floor(y), l.floor(x)
    fy, fx = y - y0, x - x0
    i, j = l.cast(y0, "int32"), l.cast(x0, "int32")
    top = image[i, j] * (1 - fx) + image[i, j + 1] * fx
    bottom = image[i + 1, j] * (1 - fx) + image[i + 1, j + 1] * fx
    return top * (1 - fy) + bottom * fy


def _normalised(l: Any, x: Any, mean: Any, scale: Any) -> Any:
    return l.dense(l.transposed((l.cast(x, "float32") / 255.0 - mean) * scale, (0, 3, 1, 2)))


def _augmented(l: Any, images: Any, flipped: Any) -> Any:
    """Some of the images flipped, the middle of each cut out."""
    images = l.where(flipped[:, None, None, None], l.flip(images, axis=2), images)
    return l.cast(images[:, 4:60, 4:60], "float32") / 127.5 - 1.0


def _framed(l: Any, x: Any, window: Any) -> Any:
    """The energy of each of the frames of a signal, which overlap."""
    frames = x[l.arange(498)[:, None] * 160 + l.arange(400)] * window
    return l.sum(frames * frames, axis=1)


def _anti_diagonals(l: Any, x: Any) -> Any:
    places = l.arange(1000)
    return x[places[:, None] + places]


def _images(d: Any) -> Any:
    return d.integers(0, 256, 32, 64, 64, 3, dtype="uint8")


def _matrix(d: Any) -> list[Any]:
    return [d.floats(1000, 1000)]


def _pair(d: Any) -> list[Any]:
    return [d.floats(1000, 1000) for _ in range(2)]


def _turned(axes: tuple[int, ...], *shape: int) -> Case:
    return Case(lambda l, x: l.dense(l.transposed(x, axes)), lambda d: [d.floats(*shape)])


CASES = {
    "flip uint8 images": Case(lambda l, x: l.dense(l.flip(x, axis=2)), lambda d: [_images(d)]),
    "flip rows": Case(lambda l, x: l.dense(l.flip(x, axis=1)), _matrix),
    "flip a vector": Case(lambda l, x: l.dense(l.flip(x, axis=0)), lambda d: [d.floats(1_000_000)]),
    "images to NCHW": Case(_normalised, lambda d: [_images(d), d.positive(3), d.positive(3) + 1]),
    "images normalised": Case(
        lambda l, x, mean, scale: (l.cast(x, "float32") - mean) / scale,
        lambda d: [_images(d), d.positive(3), d.positive(3) + 1],
    ),
    "images flipped and cut": Case(_augmented, lambda d: [_images(d), d.integers(0, 2, 32, dtype="bool")]),
    "quarter turn of an image": Case(
        lambda l, x: l.dense(l.flip(l.transposed(x, (1, 0)), axis=0)),
        lambda d: [d.integers(0, 256, 1024, 768, dtype="uint8")],
    ),
    "images to NHWC": _turned((0, 2, 3, 1), 32, 3, 64, 64),
    "transpose 1000": _turned((1, 0), 1000, 1000),
    "transpose 2048 and add": Case(lambda l, x: x + l.transposed(x, (1, 0)), lambda d: [d.floats(2048, 2048)]),
    "heads to the front": _turned((0, 2, 1, 3), 8, 256, 8, 64),
    "axes reversed": _turned((2, 1, 0), 100, 100, 100),
    "roll rows": Case(lambda l, x: l.roll(x, 5, axis=1), _matrix),
    "roll columns": Case(lambda l, x: l.roll(x, 5, axis=0), _matrix),
    "concat columns": Case(lambda l, x, y: l.concat([x, y], axis=1), _pair),
    "concat rows": Case(lambda l, x, y: l.concat([x, y], axis=0), _pair),
    "stack columns": Case(lambda l, x, y: l.stack([x, y], axis=-1), _pair),
    "pad images": Case(lambda l, x: l.pad(x, ((0, 0), (2, 2), (2, 2), (0, 0))), lambda d: [d.floats(32, 64, 64, 3)]),
    "pad uint8 images": Case(lambda l, x: l.pad(x, ((0, 0), (4, 4), (4, 4), (0, 0))), lambda d: [_images(d)]),
    "concat 31 columns of bytes": Case(
        lambda l, x: l.concat([x, x], axis=1), lambda d: [d.integers(0, 256, 6000, 31, dtype="uint8")]
    ),
    "pad a matrix": Case(lambda l, x: l.pad(x, ((1, 1), (1, 1))), _matrix),
    "tile": Case(lambda l, x: l.tile(x, (2, 3)), _matrix),
    "repeat": Case(lambda l, x: l.repeat(x, 3, axis=1), _matrix),
    "every second": Case(lambda l, x: l.dense(x[:, ::2]), _matrix),
    "transposed and strided add": Case(lambda l, x, y: x[:, ::2] + l.transposed(y[:500], (1, 0)), _pair),
    "bilinear": Case(
        _bilinear, lambda d: [d.floats(1000, 1000), d.positive(100_000) * 998, d.positive(100_000) * 998], 1e-3
    ),
    "table rows": Case(
        lambda l, t, i: l.take(t, i, axis=0), lambda d: [d.floats(200_000, 64), d.integers(0, 200_000, 20_000)]
    ),
    "few table rows": Case(
        lambda l, t, i: l.take(t, i, axis=0), lambda d: [d.floats(20_000, 64), d.integers(0, 20_000, 4096)]
    ),
    "take along rows": Case(
        lambda l, x, i: l.take_along_axis(x, i, axis=1), lambda d: [*_matrix(d), d.integers(0, 1000, 1000, 1000)]
    ),
    "frames of a signal": Case(_framed, lambda d: [d.floats(80_000), d.positive(400)]),
    "matrix of anti-diagonals": Case(_anti_diagonals, lambda d: [d.floats(2000)]),
    "embedding gradient": Case(
        lambda l, t, i, g: l.added(l.zeros_like(t), i, g),
        lambda d: [d.floats(50_000, 64), d.integers(0, 50_000, 20_000), d.floats(20_000, 64)],
    ),
    "rows added to 64 sums": Case(
        lambda l, x, i, g: l.added(x, i, g),
        lambda d: [d.floats(64, 16), d.integers(0, 64, 100_000), d.floats(100_000, 16)],
    ),
    "scatter into a vector": Case(
        lambda l, x, i, g: l.added(x, i, g),
        lambda d: [d.floats(10_000), d.integers(0, 10_000, 100_000), d.floats(100_000)],
        1e-3,
    ),
    "histogram": Case(lambda l, x: l.counts(x, 256), lambda d: [d.integers(0, 256, 1_000_000)]),
}
