"""Architectures that people train, each as a function of its weights and a batch, at sizes that a test can afford.

A model reads its weights by name (``w("stem", 3, 3, 3, 8)``), which makes them when it is first run; whatever is not a
weight comes with the batch.  Extents of images and sequences are odd, or no multiples of a vector, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow import nn

Batch = tuple[Any, ...]
Loss = Callable[["Weights", Batch], Any]


class Weights:
    """Weights by name; those that are not there yet are drawn."""

    def __init__(self, values: dict[str, Any], rng: np.random.Generator | None = None) -> None:
        self.values, self._rng = values, rng

    def __call__(self, name: str, *shape: int, scale: float | None = None, start: float | None = None) -> Any:
        if name not in self.values:
            assert self._rng is not None, f"no weight {name}"
            if start is not None:
                made = np.full(shape, start) + 0.1 * self._rng.standard_normal(shape)
            else:
                fan = max(int(np.prod(shape[:-1])), 1)
                made = self._rng.standard_normal(shape) * (fan**-0.5 if scale is None else scale)
            self.values[name] = hf.asarray(made)
        return self.values[name]


class Architecture(NamedTuple):
    loss: Loss
    batch: Callable[[np.random.Generator, int], Batch]


ARCHITECTURES: dict[str, Architecture] = {}


def architecture(batch: Callable[[np.random.Generator, int], Batch]) -> Callable[[Loss], Loss]:
    """Add a loss, of batches that ``batch(rng, examples)`` draws in float64."""

    def add(loss: Loss) -> Loss:
        ARCHITECTURES[loss.__name__] = Architecture(loss, batch)
        return loss

    return add


# ---- batches


def images(size: int, channels: int = 3, classes: int = 5, layout: str = "NHWC") -> Any:
    def draw(rng: np.random.Generator, n: int) -> Batch:
        shape = (n, size, size, channels) if layout == "NHWC" else (n, channels, size, size)
        return rng.standard_normal(shape), rng.integers(0, classes, n)

    return draw


def tokens(length: int, vocabulary: int = 23, more: int = 1) -> Any:
    def draw(rng: np.random.Generator, n: int) -> Batch:
        return tuple(rng.integers(0, vocabulary, (n, length)) for _ in range(more))

    return draw


def rows(*widths: int) -> Any:
    return lambda rng, n: tuple(rng.standard_normal((n, width)) for width in widths)


# ---- parts


def dense(w: Weights, name: str, x: Any, width: int) -> Any:
    return x @ w(f"{name}.w", x.shape[-1], width) + w(f"{name}.b", width, scale=0.1)


def conv(w: Weights, name: str, x: Any, width: int, size: int = 3, step: int = 1, layout: str = "NHWC") -> Any:
    channels = x.shape[-1 if layout == "NHWC" else 1]
    return nn.conv2d(x, w(name, size, size, channels, width), step, "SAME", layout)


def batch_norm(w: Weights, name: str, x: Any, layout: str = "NHWC") -> Any:
    axes = (0, 1, 2) if layout == "NHWC" else (0, 2, 3)
    mean, variance = nn.moments(x, axes, keepdims=True)
    width = x.shape[-1 if layout == "NHWC" else 1]
    shape = (1, 1, 1, width) if layout == "NHWC" else (1, width, 1, 1)
    scale, offset = w(f"{name}.scale", width, start=1.0), w(f"{name}.offset", width, scale=0.1)
    return (x - mean) / hf.sqrt(variance + 1e-3) * hf.reshape(scale, shape) + hf.reshape(offset, shape)


def norm(w: Weights, name: str, x: Any) -> Any:
    return nn.layer_norm(x, w(f"{name}.scale", x.shape[-1], start=1.0), w(f"{name}.offset", x.shape[-1], scale=0.1))


def cross_entropy(logits: Any, labels: Any) -> Any:
    return -hf.mean(hf.take_along_axis(nn.log_softmax(logits), hf.expand_dims(labels, -1), axis=-1))


def classified(w: Weights, x: Any, labels: Any, layout: str = "NHWC", classes: int = 5) -> Any:
    """Mean of all places, and the loss of the classes."""
    return cross_entropy(dense(w, "head", hf.mean(x, axis=(1, 2) if layout == "NHWC" else (2, 3)), classes), labels)


def heads(x: Any, count: int) -> Any:
    """[n, t, d] -> [n, heads, t, d / heads]"""
    return hf.permute_dims(hf.reshape(x, (x.shape[0], x.shape[1], count, x.shape[2] // count)), (0, 2, 1, 3))


def joined(x: Any) -> Any:
    return hf.reshape(hf.permute_dims(x, (0, 2, 1, 3)), (x.shape[0], x.shape[2], x.shape[1] * x.shape[3]))


def attention(w: Weights, name: str, x: Any, memory: Any, count: int, mask: Any = None) -> Any:
    """By hand, with scores in memory."""
    width = x.shape[-1]
    q, k, v = (
        heads(dense(w, f"{name}.{part}", y, width), count) for part, y in (("q", x), ("k", memory), ("v", memory))
    )
    scores = q @ hf.permute_dims(k, (0, 1, 3, 2)) / (width // count) ** 0.5
    if mask is not None:
        scores = hf.where(mask, scores, -1e9)
    return dense(w, f"{name}.o", joined(nn.softmax(scores) @ v), width)


def mlp(w: Weights, name: str, x: Any, width: int, activation: Any = nn.gelu) -> Any:
    return dense(w, f"{name}.2", activation(dense(w, f"{name}.1", x, width)), x.shape[-1])


def causal(length: Any) -> Any:
    return hf.expand_dims(hf.arange(length), 1) >= hf.arange(length)


# ---- images


def _resnet(w: Weights, batch: Batch, layout: str) -> Any:
    x, labels = batch
    x = nn.relu(batch_norm(w, "stem.n", conv(w, "stem", x, 8, layout=layout), layout))
    for k, (width, step) in enumerate([(8, 1), (16, 2)]):
        short = (
            x if step == 1 else batch_norm(w, f"{k}.short.n", conv(w, f"{k}.short", x, width, 1, step, layout), layout)
        )
        y = nn.relu(batch_norm(w, f"{k}.n1", conv(w, f"{k}.c1", x, width, 3, step, layout), layout))
        x = nn.relu(batch_norm(w, f"{k}.n2", conv(w, f"{k}.c2", y, width, layout=layout), layout) + short)
    return classified(w, x, labels, layout)


@architecture(images(11))
def resnet(w: Weights, batch: Batch) -> Any:
    return _resnet(w, batch, "NHWC")


@architecture(images(11, layout="NCHW"))
def resnet_nchw(w: Weights, batch: Batch) -> Any:
    return _resnet(w, batch, "NCHW")


@architecture(images(11, layout="NCHW"))
def resnet_of_transposes(w: Weights, batch: Batch) -> Any:
    """NCHW between layers, NHWC within convolutions, as converted models have it."""
    x, labels = batch

    def convolved(name: str, x: Any, width: int) -> Any:
        return hf.permute_dims(conv(w, name, hf.permute_dims(x, (0, 2, 3, 1)), width), (0, 3, 1, 2))

    x = nn.relu(convolved("stem", x, 8))
    for k in range(2):
        x = nn.relu(batch_norm(w, f"{k}.n", convolved(f"{k}.c2", nn.relu(convolved(f"{k}.c1", x, 8)), 8), "NCHW") + x)
    return classified(w, x, labels, "NCHW")


@architecture(images(9))
def mobilenet(w: Weights, batch: Batch) -> Any:
    """Inverted residuals with depthwise convolutions."""
    x, labels = batch
    x = nn.relu6(conv(w, "stem", x, 8, 3, 2))
    for k in range(2):
        y = nn.relu6(batch_norm(w, f"{k}.n1", conv(w, f"{k}.up", x, 24, 1)))
        y = nn.relu6(nn.depthwise_conv2d(y, w(f"{k}.dw", 3, 3, 24, 1, scale=0.3), 1, "SAME"))
        x = x + conv(w, f"{k}.down", y, 8, 1)
    return classified(w, x, labels)


@architecture(images(9))
def efficientnet(w: Weights, batch: Batch) -> Any:
    """Squeeze and excitation, swish, and a depth that is dropped with a known mask."""
    x, labels = batch
    x = nn.silu(conv(w, "stem", x, 8, 3, 2))
    y = nn.silu(conv(w, "up", x, 16, 1))
    y = nn.silu(nn.depthwise_conv2d(y, w("dw", 5, 5, 16, 1, scale=0.2), 1, "SAME"))
    share = nn.sigmoid(dense(w, "se2", nn.silu(dense(w, "se1", hf.mean(y, axis=(1, 2)), 4)), 16))
    return classified(w, x + conv(w, "down", y * share[:, None, None, :], 8, 1), labels)


@architecture(lambda rng, n: (rng.standard_normal((n, 12, 12, 3)), rng.integers(0, 4, (n, 12, 12))))
def unet(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    kept = []
    for k, width in enumerate((6, 12)):
        x = nn.relu(conv(w, f"down{k}", x, width))
        kept.append(x)
        x = nn.max_pool2d(x, 2, 2, "VALID")
    x = nn.relu(conv(w, "middle", x, 12))
    for k, width in reversed(list(enumerate((6, 12)))):
        shape = (x.shape[0], x.shape[1] * 2, x.shape[2] * 2, width)
        up = nn.conv2d_transpose(x, w(f"up{k}", 2, 2, width, x.shape[-1], scale=0.3), shape, 2, "SAME")
        x = nn.relu(conv(w, f"join{k}", hf.concat([up, kept[k]], axis=-1), width))
    return cross_entropy(conv(w, "head", x, 4, 1), labels)


@architecture(lambda rng, n: (rng.standard_normal((n, 3, 16, 16)), rng.uniform(0, 1, (n, 2, 7, 4, 4))))
def yolo(w: Weights, batch: Batch) -> Any:
    """Boxes, objectness and classes of two anchors on a grid, NCHW, with an upsampled path."""
    x, target = batch
    x = nn.leaky_relu(conv(w, "c1", x, 8, 3, 2, "NCHW"), 0.1)
    fine = nn.leaky_relu(conv(w, "c2", x, 12, 3, 2, "NCHW"), 0.1)
    coarse = nn.leaky_relu(conv(w, "c3", fine, 12, 3, 2, "NCHW"), 0.1)
    up = hf.repeat(hf.repeat(coarse, 2, axis=2), 2, axis=3)
    out = conv(w, "head", hf.concat([fine, up], axis=1), 14, 1, layout="NCHW")
    out = hf.reshape(out, (out.shape[0], 2, 7, 4, 4))
    boxes = hf.square(nn.sigmoid(out[:, :, :4]) - target[:, :, :4])
    seen = target[:, :, 4:5] > 0.5
    return hf.mean(hf.where(seen, boxes, 0.0)) * 5 + nn.sigmoid_cross_entropy(target[:, :, 4:], out[:, :, 4:])


@architecture(images(12))
def densenet(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    for k in range(4):
        x = hf.concat([x, conv(w, f"{k}", nn.relu(batch_norm(w, f"{k}.n", x)), 4)], axis=-1)
    return classified(w, nn.avg_pool2d(x, 2, 2, "VALID"), labels)


@architecture(images(10))
def inception(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    towers = [conv(w, "1", x, 4, 1), conv(w, "3b", nn.relu(conv(w, "3a", x, 3, 1)), 5)]
    towers += [conv(w, "5b", nn.relu(conv(w, "5a", x, 2, 1)), 3, 5), conv(w, "p", nn.max_pool2d(x, 3, 1, "SAME"), 2, 1)]
    return classified(w, nn.relu(hf.concat(towers, axis=-1)), labels)


@architecture(images(9))
def convnext(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    x = conv(w, "stem", x, 8, 3, 2)
    for k in range(2):
        y = nn.depthwise_conv2d(x, w(f"{k}.dw", 7, 7, 8, 1, scale=0.15), 1, "SAME")
        x = x + mlp(w, f"{k}.mlp", norm(w, f"{k}.n", y), 32) * w(f"{k}.gamma", 8, start=0.5)
    return classified(w, x, labels)


@architecture(images(8, 4))
def shufflenet(w: Weights, batch: Batch) -> Any:
    """Convolutions of groups, whose channels are shuffled between them."""
    x, labels = batch
    for k in range(2):
        y = nn.convolution(x, w(f"{k}.g", 1, 1, x.shape[-1] // 2, 8), 1, "SAME", groups=2)
        y = hf.reshape(y, (*y.shape[:3], 2, 4))
        x = nn.relu(hf.reshape(hf.permute_dims(y, (0, 1, 2, 4, 3)), (*y.shape[:3], 8)))
    return classified(w, x, labels)


@architecture(images(12))
def vit(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    x = conv(w, "patches", x, 12, 4, 4)
    x = hf.reshape(x, (x.shape[0], 9, 12)) + w("positions", 9, 12, scale=0.1)
    x = hf.concat([hf.broadcast_to(w("class", 1, 1, 12), (x.shape[0], 1, 12)), x], axis=1)
    for k in range(2):
        y = norm(w, f"{k}.n1", x)
        x = x + attention(w, f"{k}", y, y, 3)
        x = x + mlp(w, f"{k}.mlp", norm(w, f"{k}.n2", x), 24)
    return cross_entropy(dense(w, "head", norm(w, "n", x)[:, 0], 5), labels)


@architecture(images(8, 6))
def swin(w: Weights, batch: Batch) -> Any:
    """Attention within windows of 4x4 that are shifted by half a window in the second block."""
    x, labels = batch
    for k, shift in enumerate((0, 2)):
        y = hf.roll(norm(w, f"{k}.n", x), (-shift, -shift), axis=(1, 2))
        y = hf.reshape(y, (y.shape[0], 2, 4, 2, 4, 6))
        y = hf.reshape(hf.permute_dims(y, (0, 1, 3, 2, 4, 5)), (y.shape[0] * 4, 16, 6))
        y = attention(w, f"{k}", y, y, 2)
        y = hf.permute_dims(hf.reshape(y, (x.shape[0], 2, 2, 4, 4, 6)), (0, 1, 3, 2, 4, 5))
        x = x + hf.roll(hf.reshape(y, (x.shape[0], 8, 8, 6)), (shift, shift), axis=(1, 2))
        x = x + mlp(w, f"{k}.mlp", x, 12)
    return classified(w, x, labels)


@architecture(images(8))
def mlp_mixer(w: Weights, batch: Batch) -> Any:
    x, labels = batch
    x = conv(w, "patches", x, 10, 2, 2)
    x = hf.reshape(x, (x.shape[0], 16, 10))
    for k in range(2):
        y = hf.permute_dims(norm(w, f"{k}.n1", x), (0, 2, 1))
        x = x + hf.permute_dims(mlp(w, f"{k}.t", y, 20), (0, 2, 1))
        x = x + mlp(w, f"{k}.c", norm(w, f"{k}.n2", x), 20)
    return cross_entropy(dense(w, "head", hf.mean(x, axis=1), 5), labels)


@architecture(lambda rng, n: (rng.standard_normal((n, 9, 9, 3)), rng.standard_normal((n, 9, 9, 3))))
def style_transfer(w: Weights, batch: Batch) -> Any:
    """Gram matrices of features of two pictures, and total variation."""
    grams = []
    for picture in batch:
        y = nn.relu(conv(w, "c2", nn.relu(conv(w, "c1", picture, 8)), 8, 3, 2))
        y = hf.reshape(y, (y.shape[0], 25, 8))
        grams.append(hf.permute_dims(y, (0, 2, 1)) @ y / 25)
    x = batch[0]
    variation = hf.mean(hf.abs(x[:, 1:] - x[:, :-1])) + hf.mean(hf.abs(x[:, :, 1:] - x[:, :, :-1]))
    return hf.mean(hf.square(grams[0] - grams[1])) + 0.1 * variation


@architecture(lambda rng, n: (rng.standard_normal((n, 6, 6, 2)), rng.standard_normal((n, 6, 6, 2))))
def siamese(w: Weights, batch: Batch) -> Any:
    """Two views of each picture, and a contrastive loss over all pairs."""
    found = []
    for picture in batch:
        y = nn.relu(conv(w, "c", picture, 8, 3, 2))
        found.append(nn.l2_normalize(dense(w, "d", hf.reshape(y, (y.shape[0], 72)), 6), axis=-1))
    logits = found[0] @ hf.matrix_transpose(found[1]) / 0.2
    labels = hf.arange(logits.shape[0])
    return (cross_entropy(logits, labels) + cross_entropy(hf.matrix_transpose(logits), labels)) / 2


# ---- language


@architecture(lambda rng, n: (rng.integers(0, 23, (n, 9)), rng.integers(4, 10, n), rng.integers(0, 23, (n, 9))))
def bert(w: Weights, batch: Batch) -> Any:
    """A mask of lengths, tied embeddings, and a loss of some places."""
    words, lengths, targets = batch
    table = w("words", 23, 12, scale=0.3)
    x = norm(w, "n0", hf.take(table, words, axis=0) + w("positions", 9, 12, scale=0.3))
    mask = (hf.arange(9) < hf.expand_dims(lengths, 1))[:, None, None, :]
    for k in range(2):
        x = norm(w, f"{k}.n1", x + attention(w, f"{k}", x, x, 3, mask))
        x = norm(w, f"{k}.n2", x + mlp(w, f"{k}.mlp", x, 20))
    losses = -hf.take_along_axis(nn.log_softmax(x @ hf.matrix_transpose(table)), targets[..., None], axis=-1)[..., 0]
    chosen = hf.logical_and(hf.arange(9) < hf.expand_dims(lengths, 1), targets % 3 == 0)
    return hf.sum(hf.where(chosen, losses, 0.0)) / hf.maximum(hf.count_nonzero(chosen), 1)


@architecture(tokens(8))
def gpt(w: Weights, batch: Batch) -> Any:
    (words,) = batch
    x = hf.take(w("words", 23, 12, scale=0.3), words, axis=0) + w("positions", 8, 12, scale=0.3)
    for k in range(2):
        y = norm(w, f"{k}.n1", x)
        q, key, v = hf.split(dense(w, f"{k}.qkv", y, 36), 3, axis=-1)
        y = nn.scaled_dot_product_attention(heads(q, 3), heads(key, 3), heads(v, 3), is_causal=True)
        x = x + dense(w, f"{k}.o", joined(y), 12)
        x = x + mlp(w, f"{k}.mlp", norm(w, f"{k}.n2", x), 24)
    return cross_entropy(dense(w, "head", norm(w, "n", x), 23)[:, :-1], words[:, 1:])


def rotated(x: Any) -> Any:
    """Rotary positions of [n, heads, t, d]."""
    half = x.shape[-1] // 2
    rates = hf.asarray(10.0 ** -np.arange(half)).astype(x.dtype)
    angles = hf.arange(x.shape[-2]).astype(x.dtype)[:, None] * rates
    a, b = x[..., :half], x[..., half:]
    return hf.concat([a * hf.cos(angles) - b * hf.sin(angles), b * hf.cos(angles) + a * hf.sin(angles)], axis=-1)


@architecture(tokens(7))
def llama(w: Weights, batch: Batch) -> Any:
    """RMS norms, rotary positions, fewer heads of keys than of queries, SwiGLU."""
    (words,) = batch
    x = hf.take(w("words", 23, 16, scale=0.3), words, axis=0)
    for k in range(2):
        y = nn.rms_norm(x, w(f"{k}.n1", 16, start=1.0))
        q, key, v = (
            heads(y @ w(f"{k}.{part}", 16, width), count)
            for part, width, count in (("q", 16, 4), ("k", 8, 2), ("v", 8, 2))
        )
        y = nn.scaled_dot_product_attention(rotated(q), rotated(key), v, is_causal=True, enable_gqa=True)
        x = x + joined(y) @ w(f"{k}.o", 16, 16)
        y = nn.rms_norm(x, w(f"{k}.n2", 16, start=1.0))
        x = x + (nn.silu(y @ w(f"{k}.gate", 16, 24)) * (y @ w(f"{k}.up", 16, 24))) @ w(f"{k}.down", 24, 16)
    return cross_entropy(nn.rms_norm(x, w("n", 16, start=1.0)) @ w("head", 16, 23), hf.roll(words, -1, axis=1))


@architecture(tokens(6))
def decoding_with_a_cache(w: Weights, batch: Batch) -> Any:
    """One token after the other: keys and values go into a cache that is read as far as it is filled."""
    (words,) = batch
    n = words.shape[0]
    table = w("words", 23, 8, scale=0.3)
    parts = {name: w(name, 8, 8) for name in ("q", "k", "v", "o")}

    def step(state: Any, at: Any) -> Any:
        keys, values, total = state
        x = hf.take(table, hf.take(words, at, axis=1), axis=0)
        here = (hf.arange(6) == at)[None, :, None]
        keys = hf.where(here, (x @ parts["k"])[:, None, :], keys)
        values = hf.where(here, (x @ parts["v"])[:, None, :], values)
        scores = hf.sum((x @ parts["q"])[:, None, :] * keys, axis=-1) / 8**0.5
        shares = nn.softmax(hf.where(hf.arange(6) <= at, scores, -1e9))
        x = x + hf.sum(shares[..., None] * values, axis=1) @ parts["o"]
        return keys, values, total + cross_entropy(x @ hf.matrix_transpose(table), hf.take(words, at, axis=1))

    empty = hf.zeros((n, 6, 8), table.dtype)
    states = hf.scan(step, hf.arange(6), (empty, empty, hf.zeros((), table.dtype)))
    return states[2][-1]


@architecture(lambda rng, n: (rng.standard_normal((n, 20, 5)), rng.integers(0, 23, (n, 6))))
def whisper(w: Weights, batch: Batch) -> Any:
    """Sound through strided convolutions into an encoder, and a decoder that looks at it."""
    sound, words = batch
    x = nn.gelu(nn.conv1d(sound, w("c1", 3, 5, 12), 1, "SAME"))
    x = nn.gelu(nn.conv1d(x, w("c2", 3, 12, 12), 2, "SAME"))
    angles = np.arange(10)[:, None] / 100.0 ** (np.arange(6) / 6)
    x = x + hf.asarray(np.concatenate([np.sin(angles), np.cos(angles)], 1)).astype(x.dtype)
    y = norm(w, "e.n", x)
    x = x + attention(w, "e", y, y, 3)
    y = hf.take(w("words", 23, 12, scale=0.3), words, axis=0) + w("positions", 6, 12, scale=0.3)
    z = norm(w, "d.n1", y)
    y = y + attention(w, "d", z, z, 3, causal(6))
    y = y + attention(w, "cross", norm(w, "d.n2", y), x, 3)
    return cross_entropy(mlp(w, "d.mlp", y, 24) @ hf.matrix_transpose(w("words", 23, 12)), hf.roll(words, -1, axis=1))


@architecture(tokens(7, more=2))
def t5(w: Weights, batch: Batch) -> Any:
    """Biases by the distance of places."""
    source, target = batch
    distance = hf.clip(hf.arange(7)[:, None] - hf.arange(7) + 3, 0, 6)
    bias = hf.permute_dims(hf.take(w("bias", 7, 2, scale=0.3), distance, axis=0), (2, 0, 1))
    table = w("words", 23, 8, scale=0.5)
    x = hf.take(table, source, axis=0)
    q, k, v = (heads(x @ w(part, 8, 8), 2) for part in "qkv")
    x = x + joined(nn.softmax(q @ hf.permute_dims(k, (0, 1, 3, 2)) + bias) @ v) @ w("o", 8, 8)
    y = hf.take(table, target, axis=0)
    y = y + attention(w, "cross", y, x, 2)
    return cross_entropy(y @ hf.matrix_transpose(table), hf.roll(target, -1, axis=1))


def lstm_cell(w: Weights, name: str, width: int, features: int) -> Any:
    kernel, bias = w(f"{name}.w", features + width, 4 * width), w(f"{name}.b", 4 * width, scale=0.1)

    def step(state: Any, x: Any) -> Any:
        h, c = state
        i, f, g, o = hf.split(hf.concat([x, h], axis=-1) @ kernel + bias, 4, axis=-1)
        c = nn.sigmoid(f + 1) * c + nn.sigmoid(i) * hf.tanh(g)
        return nn.sigmoid(o) * hf.tanh(c), c

    return step


@architecture(tokens(7))
def lstm_language_model(w: Weights, batch: Batch) -> Any:
    (words,) = batch
    x = hf.permute_dims(hf.take(w("words", 23, 6, scale=0.5), words, axis=0), (1, 0, 2))
    for k, width in enumerate((10, 9)):
        start = hf.zeros((words.shape[0], width), x.dtype)
        x = hf.scan(lstm_cell(w, f"{k}", width, x.shape[-1]), x, (start, start))[0]
    logits = hf.permute_dims(dense(w, "head", x, 23), (1, 0, 2))
    return cross_entropy(logits[:, :-1], words[:, 1:])


def gru_step(w: Weights, name: str, h: Any, x: Any) -> Any:
    width = h.shape[-1]
    z, r = hf.split(nn.sigmoid(dense(w, f"{name}.zr", hf.concat([x, h], axis=-1), 2 * width)), 2, axis=-1)
    return (1 - z) * h + z * hf.tanh(dense(w, f"{name}.h", hf.concat([x, r * h], axis=-1), width))


@architecture(lambda rng, n: (rng.integers(0, 23, (n, 6)), rng.integers(2, 7, n), rng.integers(0, 5, n)))
def gru_with_masks(w: Weights, batch: Batch) -> Any:
    """In both directions, over sequences of different lengths, in Python's own loop."""
    words, lengths, labels = batch
    x = hf.take(w("words", 23, 6, scale=0.5), words, axis=0)
    found = []
    for name, order in (("f", range(6)), ("b", reversed(range(6)))):
        h = hf.zeros((words.shape[0], 7), x.dtype)
        for t in order:
            h = hf.where(hf.expand_dims(lengths > t, 1), gru_step(w, name, h, x[:, t]), h)
        found.append(h)
    return cross_entropy(dense(w, "head", hf.concat(found, axis=-1), 5), labels)


@architecture(tokens(5, more=2))
def seq2seq_with_attention(w: Weights, batch: Batch) -> Any:
    source, target = batch
    table = w("words", 23, 6, scale=0.5)
    x, y = hf.take(table, source, axis=0), hf.take(table, target, axis=0)
    h, states, total = hf.zeros((source.shape[0], 8), x.dtype), [], 0.0
    for t in range(5):
        h = gru_step(w, "e", h, x[:, t])
        states.append(h)
    memory = hf.stack(states, axis=1)
    for t in range(4):
        energy = hf.tanh(dense(w, "a1", memory, 7) + dense(w, "a2", h, 7)[:, None, :]) @ w("a3", 7, 1)
        context = hf.sum(nn.softmax(energy, axis=1) * memory, axis=1)
        h = gru_step(w, "d", h, hf.concat([y[:, t], context], axis=-1))
        total = total + cross_entropy(dense(w, "head", h, 23), target[:, t + 1])
    return total / 4


@architecture(lambda rng, n: (rng.integers(0, 50, n), rng.integers(0, 50, n), rng.integers(0, 50, (n, 4))))
def word2vec(w: Weights, batch: Batch) -> Any:
    """Negative sampling."""
    centre, near, others = batch
    u, v = w("in", 50, 9, scale=0.5), w("out", 50, 9, scale=0.5)
    x = hf.take(u, centre, axis=0)
    good = hf.sum(x * hf.take(v, near, axis=0), axis=-1)
    bad = hf.einsum("nd,nkd->nk", x, hf.take(v, others, axis=0))
    return -hf.mean(nn.log_sigmoid(good) + hf.sum(nn.log_sigmoid(-bad), axis=-1))


@architecture(lambda rng, n: (rng.integers(0, 23, (n, 11)), rng.integers(0, 5, n)))
def text_cnn(w: Weights, batch: Batch) -> Any:
    words, labels = batch
    x = hf.take(w("words", 23, 6, scale=0.5), words, axis=0)
    found = [hf.max(nn.relu(nn.conv1d(x, w(f"c{k}", k, 6, 4), 1, "VALID")), axis=1) for k in (2, 3, 4)]
    return cross_entropy(dense(w, "head", hf.concat(found, axis=-1), 5), labels)


@architecture(lambda rng, n: (rng.standard_normal((n, 12, 6)), rng.standard_normal((n, 12, 6))))
def state_space(w: Weights, batch: Batch) -> Any:
    """A selective linear recurrence: decay and input depend on the token."""
    x, target = batch
    decay = hf.exp(-nn.softplus(dense(w, "delta", x, 5)))
    drive = dense(w, "in", x, 5) * (1 - decay)

    def both(a: Any, b: Any) -> Any:
        return a[0] * b[0], a[1] * b[0] + b[1]

    states = hf.associative_scan(both, (decay, drive), axis=1)[1]
    return nn.mean_squared_error(target, dense(w, "out", states * nn.silu(dense(w, "gate", x, 5)), 6))


@architecture(lambda rng, n: (rng.standard_normal((n, 6, 8)), rng.standard_normal((n, 6, 8))))
def mixture_of_experts(w: Weights, batch: Batch) -> Any:
    """The two best of four experts for each token, and a loss that balances them."""
    x, target = batch
    scores = nn.softmax(dense(w, "router", x, 4))
    best, which = hf.top_k(scores, 2)
    best = best / hf.sum(best, axis=-1, keepdims=True)
    share = hf.sum(nn.one_hot(which, 4, dtype=x.dtype) * best[..., None], axis=-2)
    y = nn.gelu(hf.einsum("ntd,edh->nteh", x, w("up", 4, 8, 10, scale=0.3)))
    y = hf.einsum("nteh,ehd,nte->ntd", y, w("down", 4, 10, 8, scale=0.3), share)
    balance = hf.sum(hf.mean(scores, axis=(0, 1)) * hf.mean(hf.stop_gradient(share), axis=(0, 1))) * 4
    return nn.mean_squared_error(target, x + y) + 0.1 * balance


@architecture(rows(40))
def linear_attention(w: Weights, batch: Batch) -> Any:
    x = hf.reshape(batch[0], (batch[0].shape[0], 5, 8))
    q, k, v = (nn.elu(x @ w("q", 8, 6)) + 1, nn.elu(x @ w("k", 8, 6)) + 1, x @ w("v", 8, 8))
    state = hf.cumulative_sum(k[..., :, None] * v[..., None, :], axis=1)
    below = hf.sum(q * hf.cumulative_sum(k, axis=1), axis=-1, keepdims=True)
    return nn.mean_squared_error(hf.roll(x, -1, axis=1), hf.einsum("ntk,ntkv->ntv", q, state) / below)


@architecture(
    lambda rng, n: (rng.standard_normal((12, n, 6)), rng.integers(1, 6, (n, 3)), np.full(n, 3), np.full(n, 12))
)
def speech_with_ctc(w: Weights, batch: Batch) -> Any:
    sound, labels, label_length, length = batch
    logits = dense(w, "head", hf.tanh(dense(w, "d", sound, 10)), 6)
    return hf.mean(nn.ctc_loss(labels, logits, label_length, length))


# ---- generative


@architecture(rows(20, 4))
def variational_autoencoder(w: Weights, batch: Batch) -> Any:
    x, noise = batch
    mean, log_variance = hf.split(dense(w, "e2", hf.tanh(dense(w, "e1", x, 12)), 8), 2, axis=-1)
    z = mean + hf.exp(0.5 * log_variance) * noise
    logits = dense(w, "d2", hf.tanh(dense(w, "d1", z, 12)), 20)
    divergence = -0.5 * hf.sum(1 + log_variance - hf.square(mean) - hf.exp(log_variance), axis=-1)
    return nn.sigmoid_cross_entropy(nn.sigmoid(x), logits) * 20 + hf.mean(divergence)


@architecture(lambda rng, n: (rng.standard_normal((n, 6)), rng.standard_normal((n, 8, 8, 2))))
def generative_adversarial(w: Weights, batch: Batch) -> Any:
    """Both losses, with what is not theirs held fixed."""
    noise, real = batch

    def judged(x: Any, fixed: bool = False) -> Any:
        kernel, head = w("judge.c", 3, 3, 2, 6), w("judge.d", 96, 1)
        if fixed:
            kernel, head = hf.stop_gradient(kernel), hf.stop_gradient(head)
        y = nn.leaky_relu(nn.conv2d(x, kernel, 2, "SAME"), 0.2)
        return hf.reshape(y, (y.shape[0], 96)) @ head

    x = hf.reshape(nn.relu(dense(w, "g1", noise, 64)), (noise.shape[0], 4, 4, 4))
    fake = hf.tanh(nn.conv2d_transpose(x, w("g2", 4, 4, 2, 4, scale=0.3), (noise.shape[0], 8, 8, 2), 2, "SAME"))
    known = hf.stop_gradient(fake)
    judge = hf.mean(nn.softplus(judged(known))) + hf.mean(nn.softplus(-judged(real)))
    return judge + hf.mean(nn.softplus(-judged(fake, fixed=True)))


@architecture(
    lambda rng, n: (rng.standard_normal((n, 8, 8, 2)), rng.standard_normal((n, 8, 8, 2)), rng.uniform(0.1, 0.9, n))
)
def diffusion(w: Weights, batch: Batch) -> Any:
    """A step of denoising, conditioned on the time."""
    x, noise, time = batch
    angles = time[:, None] * hf.asarray(10.0 ** np.arange(3)).astype(x.dtype)
    embedded = nn.silu(dense(w, "time", hf.concat([hf.sin(angles), hf.cos(angles)], axis=-1), 8))
    level = time[:, None, None, None]
    noisy = hf.sqrt(1 - level) * x + hf.sqrt(level) * noise
    y = conv(w, "in", noisy, 8)
    z = nn.avg_pool2d(y, 2, 2, "VALID")
    z = nn.silu(batch_norm(w, "n", conv(w, "middle", z, 8))) + dense(w, "shift", embedded, 8)[:, None, None, :]
    y = hf.concat([y, hf.repeat(hf.repeat(z, 2, axis=1), 2, axis=2)], axis=-1)
    return nn.mean_squared_error(noise, conv(w, "out", nn.silu(y), 2))


@architecture(rows(6))
def normalizing_flow(w: Weights, batch: Batch) -> Any:
    """Affine couplings, and the logarithm of their volume."""
    (x,) = batch
    volume = hf.zeros((x.shape[0],), x.dtype)
    for k in range(3):
        a, b = x[:, :3], x[:, 3:]
        scale, shift = hf.split(dense(w, f"{k}.2", hf.tanh(dense(w, f"{k}.1", a, 8)), 6), 2, axis=-1)
        scale = hf.tanh(scale)
        x, volume = hf.concat([b * hf.exp(scale) + shift, a], axis=-1), volume + hf.sum(scale, axis=-1)
    return hf.mean(0.5 * hf.sum(hf.square(x), axis=-1) - volume)


@architecture(rows(12))
def vector_quantised(w: Weights, batch: Batch) -> Any:
    """The nearest entry of a code book, with the gradient passed straight through."""
    (x,) = batch
    z, book = dense(w, "e", x, 5), w("book", 7, 5, scale=1.0)
    near = hf.argmin(hf.sum(hf.square(z[:, None, :] - book), axis=-1), axis=1)
    q = hf.take(book, near, axis=0)
    losses = nn.mean_squared_error(hf.stop_gradient(z), q) + 0.25 * nn.mean_squared_error(hf.stop_gradient(q), z)
    return nn.mean_squared_error(x, dense(w, "d", z + hf.stop_gradient(q - z), 12)) + losses


@architecture(lambda rng, n: (rng.standard_normal((n, 6, 6, 1)), rng.integers(0, 2, (n, 6, 6))))
def pixel_cnn(w: Weights, batch: Batch) -> Any:
    """Convolutions that see what lies above and to the left alone."""
    x, labels = batch
    mask = np.ones((3, 3, 1, 1))
    mask[1, 1:], mask[2] = 0, 0
    for k, width in enumerate((6, 6, 2)):
        shown = mask.copy()
        shown[1, 1] = k > 0
        x = nn.conv2d(x, w(f"{k}", 3, 3, x.shape[-1], width) * hf.asarray(shown).astype(x.dtype), 1, "SAME")
        x = nn.relu(x) if k < 2 else x
    return cross_entropy(x, labels)


@architecture(lambda rng, n: (rng.standard_normal((n, 3)), rng.standard_normal((n, 3)), rng.uniform(0, 1, (n, 3))))
def neural_radiance_field(w: Weights, batch: Batch) -> Any:
    """Colours along rays, each seen through what lies before it."""
    start, direction, colour = batch
    depths = hf.linspace(0.1, 1.0, 6).astype(start.dtype)
    points = start[:, None, :] + direction[:, None, :] * depths[:, None]
    angles = hf.concat([points * 2.0**k for k in range(3)], axis=-1)
    y = nn.relu(dense(w, "1", hf.concat([points, hf.sin(angles), hf.cos(angles)], axis=-1), 12))
    out = dense(w, "2", y, 4)
    opacity = 1 - hf.exp(-nn.relu(out[..., 0]) * 0.2)
    clear = hf.cumulative_prod(1 - opacity + 1e-6, axis=-1, include_initial=True)[..., :-1]
    return nn.mean_squared_error(colour, hf.sum((opacity * clear)[..., None] * nn.sigmoid(out[..., 1:]), axis=1))


# ---- tables, graphs


@architecture(lambda rng, n: (rng.standard_normal((n, 5)), rng.integers(0, 30, (n, 3)), rng.uniform(0, 1, n)))
def dlrm(w: Weights, batch: Batch) -> Any:
    """Tables that are looked up, and products of all pairs."""
    numbers, items, clicks = batch
    parts = [dense(w, "bottom", numbers, 6)] + [
        hf.take(w(f"table{k}", 30, 6, scale=0.5), items[:, k], axis=0) for k in range(3)
    ]
    x = hf.stack(parts, axis=1)
    pairs = x @ hf.permute_dims(x, (0, 2, 1))
    found = hf.stack([pairs[:, i, j] for i in range(4) for j in range(i)], axis=1)
    y = nn.relu(dense(w, "top1", hf.concat([parts[0], found], axis=-1), 8))
    return nn.sigmoid_cross_entropy(clicks, dense(w, "top2", y, 1)[:, 0])


@architecture(lambda rng, n: (rng.integers(0, 40, (n, 4)), rng.uniform(0, 1, n)))
def factorisation_machine(w: Weights, batch: Batch) -> Any:
    items, clicks = batch
    v = hf.take(w("v", 40, 5, scale=0.3), items, axis=0)
    pairs = 0.5 * hf.sum(hf.square(hf.sum(v, axis=1)) - hf.sum(hf.square(v), axis=1), axis=-1)
    line = hf.sum(hf.take(w("line", 40, scale=0.1), items), axis=-1)
    return nn.sigmoid_cross_entropy(clicks, pairs + line + w("bias", 1, scale=0.1)[0])


def _graph(rng: np.random.Generator, n: int) -> Batch:
    nodes = 5 * n
    return rng.standard_normal((nodes, 6)), rng.integers(0, nodes, (2, 17 * n)), rng.integers(0, 3, nodes)


@architecture(_graph)
def graph_network(w: Weights, batch: Batch) -> Any:
    """Messages along edges, summed and of the largest where they arrive."""
    x, edges, labels = batch
    for k in range(2):
        near = hf.concat([hf.take(x, edges[0], axis=0), hf.take(x, edges[1], axis=0)], axis=-1)
        messages = nn.relu(dense(w, f"{k}.m", near, 8))
        total = hf.segment_sum(messages, edges[1], x.shape[0])
        most = nn.relu(hf.segment_max(messages, edges[1], x.shape[0]))
        x = dense(w, f"{k}.u", hf.concat([x, total, most], axis=-1), 8)
    return cross_entropy(dense(w, "head", x, 3), labels)


@architecture(_graph)
def graph_attention(w: Weights, batch: Batch) -> Any:
    x, edges, labels = batch
    y = x @ w("w", 6, 8)
    scores = nn.leaky_relu(hf.take(y @ w("a", 8), edges[0]) + hf.take(y @ w("b", 8), edges[1]), 0.2)
    most = hf.stop_gradient(hf.segment_max(scores, edges[1], x.shape[0]))
    powers = hf.exp(scores - hf.take(most, edges[1]))
    total = hf.segment_sum(powers, edges[1], x.shape[0]) + 1e-9
    shares = powers / hf.take(total, edges[1])
    x = hf.segment_sum(hf.take(y, edges[0], axis=0) * shares[:, None], edges[1], x.shape[0])
    return cross_entropy(dense(w, "head", nn.elu(x), 3), labels)


# ---- science


@architecture(lambda rng, n: (rng.standard_normal((9, n, 2)),))
def kalman_filter(w: Weights, batch: Batch) -> Any:
    """The likelihood of observations, whose noises are learnt."""
    (seen,) = batch
    move = w("move", 3, 3, scale=0.4)
    look = w("look", 3, 2)
    noise = hf.eye(3, dtype=move.dtype) * nn.softplus(w("q", 3, scale=0.1))
    error = hf.eye(2, dtype=move.dtype) * nn.softplus(w("r", 2, scale=0.1))

    def step(state: Any, y: Any) -> Any:
        mean, spread, total = state
        mean, spread = mean @ move, hf.matrix_transpose(move) @ spread @ move + noise
        inner = hf.matrix_transpose(look) @ spread @ look + error
        gain = spread @ look @ hf.linalg.inv(inner)
        left = y - mean @ look
        _, volume = hf.linalg.slogdet(inner)
        total = total + 0.5 * (volume + hf.mean(hf.sum(left @ hf.linalg.inv(inner) * left, axis=-1)))
        return mean + left @ hf.matrix_transpose(gain), spread - gain @ hf.matrix_transpose(look) @ spread, total

    start = (hf.zeros((seen.shape[1], 3), move.dtype), hf.eye(3, dtype=move.dtype), hf.zeros((), move.dtype))
    return hf.scan(step, seen, start)[2][-1]


@architecture(rows(3, 3))
def neural_ode(w: Weights, batch: Batch) -> Any:
    x, target = batch
    inner, outer = w("1", 3, 8), w("2", 8, 3)

    def slope(x: Any) -> Any:
        return hf.tanh(x @ inner) @ outer

    def step(_: Any, x: Any) -> Any:
        a = slope(x)
        b = slope(x + 0.05 * a)
        c = slope(x + 0.05 * b)
        return x + 0.1 / 6 * (a + 2 * b + 2 * c + slope(x + 0.1 * c))

    return nn.mean_squared_error(target, hf.fori_loop(0, 6, step, x))


@architecture(rows(2, 1))
def gaussian_process(w: Weights, batch: Batch) -> Any:
    """The marginal likelihood by a Cholesky factor."""
    x, y = batch
    scale, noise = nn.softplus(w("scale", 2, start=0.5)), nn.softplus(w("noise", 1, start=0.0)) + 0.1
    apart = hf.sum(hf.square((x[:, None, :] - x) / scale), axis=-1)
    factor = hf.linalg.cholesky(hf.exp(-0.5 * apart) + noise * hf.eye(x.shape[0], dtype=x.dtype))
    z = hf.linalg.triangular_solve(factor, y, lower=True)
    return 0.5 * hf.sum(hf.square(z)) + hf.sum(hf.log(hf.linalg.diagonal(factor)))


@architecture(lambda rng, n: (rng.integers(0, 6, (8, n)),))
def hidden_markov(w: Weights, batch: Batch) -> Any:
    """Forward algorithm in logarithms."""
    (seen,) = batch
    move, emit = nn.log_softmax(w("move", 4, 4)), nn.log_softmax(w("emit", 4, 6))

    def step(alpha: Any, symbol: Any) -> Any:
        return hf.logsumexp(alpha[:, :, None] + move, axis=1) + hf.matrix_transpose(hf.take(emit, symbol, axis=1))

    start = hf.broadcast_to(nn.log_softmax(w("start", 4)), (seen.shape[1], 4))
    return -hf.mean(hf.logsumexp(hf.scan(step, seen, start)[-1], axis=-1))


@architecture(lambda rng, n: (rng.uniform(0, 3, (n, 4, 3)),))
def molecular_forces(w: Weights, batch: Batch) -> Any:
    """Energies of pairs; their gradient by places is part of the loss."""
    (places,) = batch

    def energy(places: Any) -> Any:
        apart = places[:, :, None, :] - places[:, None, :, :]
        square = hf.sum(hf.square(apart), axis=-1) + hf.eye(4, dtype=places.dtype) + 0.1
        ratio = (nn.softplus(w("sigma", 1, start=0.0)) ** 2 / square) ** 3
        pairs = 4 * nn.softplus(w("depth", 1, start=0.0)) * (hf.square(ratio) - ratio)
        return hf.sum(hf.where(hf.eye(4) > 0, 0.0, pairs)) / 2

    total = energy(places)  # makes the weights
    return hf.tanh(total / 100) + hf.mean(hf.tanh(hf.grad(energy)(places)) ** 2)


@architecture(rows(2))
def physics_informed(w: Weights, batch: Batch) -> Any:
    """The residual of the heat equation: second derivatives of a network by its inputs."""
    (points,) = batch

    def field(point: Any) -> Any:
        return hf.sum(hf.tanh(hf.tanh(point @ w("1", 2, 8)) @ w("2", 8, 8)) @ w("3", 8, 1))

    field(points[0])  # makes the weights

    def residual(point: Any) -> Any:
        along = hf.grad(field)(point)
        return along[0] - 0.1 * hf.grad(lambda p: hf.grad(field)(p)[1])(point)[1]

    return hf.mean(hf.square(hf.vmap(residual)(points)))


@architecture(lambda rng, n: (rng.standard_normal((n, 12)),))
def wave_equation(w: Weights, batch: Batch) -> Any:
    """Through a medium whose speeds are learnt."""
    (now,) = batch
    speed = nn.sigmoid(w("speed", 12, scale=0.5))

    def step(_: Any, state: Any) -> Any:
        before, now = state
        bend = hf.roll(now, 1, axis=1) + hf.roll(now, -1, axis=1) - 2 * now
        return now, 2 * now - before + 0.2 * speed * bend

    return hf.mean(hf.square(hf.fori_loop(0, 5, step, (now, now))[1]))


@architecture(rows(5))
def soft_k_means(w: Weights, batch: Batch) -> Any:
    (x,) = batch
    centres = w("centres", 4, 5, scale=1.0)
    for _ in range(2):
        shares = nn.softmax(-hf.sum(hf.square(x[:, None, :] - centres), axis=-1))
        centres = 0.5 * centres + 0.5 * (hf.matrix_transpose(shares) @ x) / (hf.sum(shares, axis=0)[:, None] + 1e-3)
    return hf.mean(hf.min(hf.sum(hf.square(x[:, None, :] - centres), axis=-1), axis=1))


@architecture(rows(3, 1))
def mixture_density(w: Weights, batch: Batch) -> Any:
    x, y = batch
    share, mean, width = hf.split(dense(w, "2", hf.tanh(dense(w, "1", x, 8)), 12), 3, axis=-1)
    width = nn.softplus(width) + 0.1
    return -hf.mean(hf.logsumexp(nn.log_softmax(share) - 0.5 * hf.square((y - mean) / width) - hf.log(width), axis=-1))


@architecture(
    lambda rng, n: (rng.standard_normal((n, 4)), rng.integers(0, 3, n), rng.standard_normal(n), rng.uniform(0.5, 1, n))
)
def policy_gradient(w: Weights, batch: Batch) -> Any:
    """Clipped ratios of policies, values, entropy."""
    seen, actions, gains, old = batch
    y = hf.tanh(dense(w, "1", seen, 8))
    logs = nn.log_softmax(dense(w, "policy", y, 3))
    ratio = hf.exp(hf.take_along_axis(logs, actions[:, None], axis=1)[:, 0]) / old
    policy = -hf.mean(hf.minimum(ratio * gains, hf.clip(ratio, 0.8, 1.2) * gains))
    values = nn.huber(gains, dense(w, "value", y, 1)[:, 0])
    return policy + 0.5 * values + 0.01 * hf.mean(hf.sum(hf.exp(logs) * logs, axis=-1))


@architecture(rows(4, 4))
def whitening(w: Weights, batch: Batch) -> Any:
    """Decorrelated features of two views."""
    found = []
    for x in batch:
        y = dense(w, "2", nn.relu(dense(w, "1", x, 8)), 3)
        y = y - hf.mean(y, axis=0)
        values, vectors = hf.linalg.eigh(
            hf.matrix_transpose(y) @ y / 4 + 0.1 * hf.asarray(np.diag([1.0, 2.0, 4.0])).astype(y.dtype)
        )
        found.append(y @ (vectors / hf.sqrt(values)) @ hf.matrix_transpose(vectors))
    return nn.mean_squared_error(found[0], found[1])
