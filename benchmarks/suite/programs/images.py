"""Images as they come from files: bytes of a few colours, and what is done with them before a network sees them."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case

SIZE = 480, 640


def _grey(l: Any, x: Any) -> Any:
    return 0.299 * x[..., 0] + 0.587 * x[..., 1] + 0.114 * x[..., 2]


def _grey_bytes(l: Any, x: Any) -> Any:
    return l.cast(_grey(l, l.cast(x, "float32")) + 0.5, "uint8")


def _grey_whole(l: Any, x: Any) -> Any:
    """In whole numbers."""
    x = l.cast(x, "int32")
    return l.cast((x[..., 0] * 77 + x[..., 1] * 150 + x[..., 2] * 29 + 128) >> 8, "uint8")


def _over(l: Any, front: Any, back: Any) -> Any:
    """Colours and opacity over colours, bytes."""
    alpha = l.cast(front[..., 3:], "float32") / 255.0
    mixed = l.cast(front[..., :3], "float32") * alpha + l.cast(back, "float32") * (1.0 - alpha)
    return l.cast(mixed + 0.5, "uint8")


def _over_floats(l: Any, front: Any, back: Any) -> Any:
    """The same of floats, with an opacity of the result."""
    alpha, below = front[..., 3:], back[..., 3:]
    total = alpha + below * (1.0 - alpha)
    colours = (front[..., :3] * alpha + back[..., :3] * below * (1.0 - alpha)) / total
    return l.concat([colours, total], axis=-1)


def _premultiplied(l: Any, front: Any, back: Any) -> Any:
    """Four channels of bytes over four, colours multiplied by opacity."""
    alpha = 255 - l.cast(front[..., 3:], "int32")
    return l.cast(l.cast(front, "int32") + (l.cast(back, "int32") * alpha + 127) // 255, "uint8")


def _cropped(l: Any, images: Any, top: Any, left: Any, flipped: Any) -> Any:
    """A window of each image, at a place of its own, and some of them flipped."""
    n, size = l.arange(images.shape[0]), 32
    rows = top[:, None] + l.arange(size)[None]
    columns = left[:, None] + l.arange(size)[None]
    found = images[n[:, None, None], rows[:, :, None], columns[:, None, :]]
    found = l.where(flipped[:, None, None, None], l.flip(found, axis=2), found)
    return l.cast(found, "float32") / 127.5 - 1.0


def _focal(l: Any, logits: Any, labels: Any) -> Any:
    """The classes along the second axis."""
    scores = logits - l.logsumexp(logits, 1)[:, None]
    chosen = l.take_along_axis(scores, labels[:, None], axis=1)
    return -l.mean((1.0 - l.exp(chosen)) ** 2 * chosen)


def _bytes(d: Any, channels: int, *size: int) -> Any:
    return d.integers(0, 256, *(size or SIZE), channels, dtype="uint8")


CASES = {
    "grey of floats": Case(_grey, lambda d: [d.positive(*SIZE, 3)]),
    "grey of doubles": Case(_grey, lambda d: [d.floats(*SIZE, 3, dtype="float64")]),
    "grey of bytes": Case(lambda l, x: _grey(l, l.cast(x, "float32")), lambda d: [_bytes(d, 3)]),
    "grey of bytes, rounded": Case(_grey_bytes, lambda d: [_bytes(d, 3)], 1e-2),
    "grey of four channels, rounded": Case(_grey_bytes, lambda d: [_bytes(d, 4)], 1e-2),
    "grey of bytes, whole numbers": Case(_grey_whole, lambda d: [_bytes(d, 3)]),
    "grey as a sum": Case(lambda l, x, w: l.sum(l.cast(x, "float32") * w, -1), lambda d: [_bytes(d, 3), d.positive(3)]),
    "grey as a product": Case(lambda l, x, w: l.matmul(x, w), lambda d: [d.positive(*SIZE, 3), d.positive(3)]),
    "planes as a product": Case(
        lambda l, x, w: l.matmul(l.transposed(x, (1, 0)), w), lambda d: [d.positive(3, 640 * 480), d.positive(3)]
    ),
    "middles of images, red and blue exchanged": Case(
        lambda l, x: l.dense(l.flip(x[:, 4:60, 4:60], axis=3)), lambda d: [_bytes(d, 3, 32, 64, 64)]
    ),
    "bytes over bytes": Case(_over, lambda d: [_bytes(d, 4), _bytes(d, 3)], 1e-2),
    "colours over colours": Case(_over_floats, lambda d: [d.positive(*SIZE, 4), d.positive(*SIZE, 4)]),
    "bytes over bytes, whole numbers": Case(_premultiplied, lambda d: [_bytes(d, 4) // 2, _bytes(d, 4) // 2]),
    "red and blue exchanged": Case(lambda l, x: l.dense(l.flip(x, axis=2)), lambda d: [_bytes(d, 3)]),
    "one of four channels": Case(lambda l, x: l.dense(x[..., 1]), lambda d: [_bytes(d, 4)]),
    "one of six floats": Case(lambda l, x: x[..., 1] + x[..., 4], lambda d: [d.positive(*SIZE, 6)]),
    "table of bytes": Case(
        lambda l, t, x: l.take(t, x, axis=0),
        lambda d: [d.integers(0, 256, 256, dtype="uint8"), d.integers(0, 256, 640 * 480, dtype="uint8")],
    ),
    "table of floats": Case(
        lambda l, t, x: l.take(t, x, axis=0),
        lambda d: [d.positive(256), d.integers(0, 256, 640 * 480, dtype="uint8")],
    ),
    "table of bytes, wide indices": Case(
        lambda l, t, x: l.take(t, x, axis=0),
        lambda d: [d.integers(0, 256, 256, dtype="uint8"), d.integers(0, 256, 640 * 480)],
    ),
    "windows of images": Case(
        _cropped,
        lambda d: [
            _bytes(d, 3, 128, 40, 40),
            d.integers(0, 9, 128),
            d.integers(0, 9, 128),
            d.integers(0, 2, 128, dtype="bool"),
        ],
    ),
    "focal loss of 21 maps": Case(_focal, lambda d: [d.floats(4, 21, 64, 64), d.integers(0, 21, 4, 64, 64)], 1e-3),
    "focal loss of 5 maps": Case(_focal, lambda d: [d.floats(8, 5, 64, 64), d.integers(0, 5, 8, 64, 64)], 1e-3),
}
