"""Norms, losses, attention, convolutions and whole networks, with their gradients and steps."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case, Draw, Filter


def gradient(loss: Any) -> Any:
    """The program of a loss and its gradients."""
    return lambda l, *given: l.gradient(lambda *held: loss(l, *held))(*given)


def _inference(l: Any, x: Any, v: Any, b: Any, w: Any, c: Any) -> Any:
    return l.softmax(l.matmul(l.relu(l.matmul(x, v) + b), w) + c)


def _two_layers(l: Any, v: Any, b: Any, w: Any, c: Any, x: Any, labels: Any) -> Any:
    return l.cross_entropy(l.matmul(l.relu(l.matmul(x, v) + b), w) + c, labels)


def _block(l: Any, x: Any, wqkv: Any, wo: Any, w1: Any, w2: Any) -> Any:
    """A transformer's block of four heads, with a loss."""
    b, t, c = x.shape
    qkv = l.transposed(l.reshape(l.matmul(l.layer_norm(x), wqkv), (b, t, 3, 4, c // 4)), (2, 0, 3, 1, 4))
    y = l.attention(qkv[0], qkv[1], qkv[2], True)
    x = x + l.matmul(l.reshape(l.transposed(y, (0, 2, 1, 3)), (b, t, c)), wo)
    x = x + l.matmul(l.gelu(l.matmul(l.layer_norm(x), w1)), w2)
    return l.mean(x * x)


def _network(l: Any, x: Any, *own: Any) -> Any:
    """Convolutions 3x3 to 32 channels, twice, pooling, to 64 twice, pooling, dense layers of 512 and 10."""
    for k in range(0, 8, 2):
        x = l.relu(l.convolved(x, own[k]) + own[k + 1])
        if k in (2, 6):
            x = l.pooled(x)
    x = l.relu(l.matmul(l.reshape(x, (x.shape[0], -1)), own[8]) + own[9])
    return l.matmul(x, own[10]) + own[11]


def _network_weights(d: Draw) -> list[Any]:
    shapes = [(3, 3, 3, 32), (3, 3, 32, 32), (3, 3, 32, 64), (3, 3, 64, 64), (4096, 512), (512, 10)]
    found: list[Any] = []
    for shape in shapes:
        w = d.weights(*shape)
        found += [Filter(w) if len(shape) == 4 else w, d.floats(shape[-1]) * 0]
    return found


def _binary(l: Any, z: Any, y: Any) -> Any:
    """The cross entropy of two classes, from logits."""
    return l.mean(l.maximum(z, 0.0) - z * y + l.log1p(l.exp(-abs(z))))


def _lstm(l: Any, w: Any, u: Any, b: Any, xs: Any, h: Any) -> Any:
    units = h.shape[-1]

    def cell(state: Any, x: Any) -> Any:
        z = l.matmul(x, w) + l.matmul(state[0], u) + b
        i, f, o, g = (z[:, k * units : (k + 1) * units] for k in range(4))
        c = l.sigmoid(f) * state[1] + l.sigmoid(i) * l.tanh(g)
        return l.sigmoid(o) * l.tanh(c), c

    return l.sum(l.last(cell, xs, (h, h))[0] ** 2)


def _rnn(l: Any, w: Any, u: Any, xs: Any, h: Any) -> Any:
    return l.sum(l.last(lambda state, x: (l.tanh(l.matmul(x, w) + l.matmul(state[0], u)),), xs, (h,))[0] ** 2)


def _words(l: Any, words: Any, contexts: Any, word: Any, context: Any, drawn: Any) -> Any:
    """Word2vec: pairs are drawn together, and words drawn for all pairs pushed away."""
    vectors = l.take(words, word, axis=0)
    near = l.sum(vectors * l.take(contexts, context, axis=0), axis=-1)
    far = l.matmul(vectors, l.transposed(l.take(contexts, drawn, axis=0), (1, 0)))
    return l.mean(l.softplus(-near)) + l.mean(l.sum(l.softplus(far), axis=-1))


def _convolution(x: tuple[int, ...], f: tuple[int, ...], step: int = 1) -> Case:
    """Images [n, *s, c] padded to keep places, or every ``step``-th of them."""
    return Case(lambda l, x, f: l.convolved(x, f, step), lambda d: [d.floats(*x), Filter(d.weights(*f))])


def _norm(d: Draw) -> list[Any]:
    return [d.floats(4096, 1024), d.floats(1024), d.floats(1024), d.floats(4096, 1024)]


def _batch(d: Draw) -> list[Any]:
    return [d.floats(32 * 28 * 28, 64), d.floats(64), d.floats(64), d.floats(32 * 28 * 28, 64)]


def _classes(d: Draw) -> list[Any]:
    return [d.floats(256, 32_000), d.integers(0, 32_000, 256)]


def _two_classes(d: Draw) -> list[Any]:
    return [d.floats(1 << 20), d.positive(1 << 20)]


def _heads(d: Draw) -> list[Any]:
    return [d.floats(4, 4, 512, 64) for _ in range(3)]


CASES = {
    "softmax 4096x1024": Case(lambda l, x: l.softmax(x), lambda d: [d.floats(4096, 1024)]),
    "softmax gradient": Case(
        gradient(lambda l, x, g: l.sum(l.softmax(x) * g)), lambda d: [d.floats(4096, 1024) for _ in range(2)], 2e-3
    ),
    "layer norm": Case(lambda l, x: l.layer_norm(x), lambda d: [d.floats(4096, 1024)], 2e-3),
    "layer norm gradient": Case(gradient(lambda l, x, s, o, g: l.sum(l.layer_norm(x, s, o) * g)), _norm, 2e-3),
    "rms norm gradient": Case(gradient(lambda l, x, s, o, g: l.sum((l.rms_norm(x, s) + o) * g)), _norm, 2e-3),
    "batch norm gradient": Case(gradient(lambda l, x, s, o, g: l.sum(l.batch_norm(x, s, o) * g)), _batch, 2e-3),
    "mean and variance": Case(lambda l, x: l.statistics(x), lambda d: [d.floats(32 * 28 * 28, 64)], 2e-3),
    "cross entropy 32000": Case(lambda l, x, y: l.cross_entropy(x, y), _classes, 2e-3),
    "cross entropy gradient 32000": Case(gradient(lambda l, x, y: l.cross_entropy(x, y)), _classes, 2e-3),
    "binary cross entropy 1M": Case(_binary, _two_classes, 1e-3),
    "binary cross entropy gradient 1M": Case(gradient(_binary), _two_classes, 1e-3),
    "tanh-gelu gradient 1M": Case(gradient(lambda l, x: l.sum(l.gelu(x))), lambda d: [d.floats(1 << 20)], 1e-3),
    "attention": Case(lambda l, q, k, v: l.attention(q, k, v), _heads, 2e-3),
    "attention gradient": Case(gradient(lambda l, q, k, v: l.sum(l.attention(q, k, v) ** 2)), _heads, 2e-3),
    "causal attention": Case(lambda l, q, k, v: l.attention(q, k, v, True), _heads, 2e-3),
    "causal attention gradient": Case(
        gradient(lambda l, q, k, v: l.sum(l.attention(q, k, v, True) ** 2)), _heads, 2e-3
    ),
    "transformer gradient": Case(
        gradient(_block),
        lambda d: [
            d.floats(4, 128, 256),
            *(d.floats(*s) / 16 for s in ((256, 768), (256, 256), (256, 1024), (1024, 256))),
        ],
        2e-3,
    ),
    "60x784-128-10 inference": Case(
        _inference, lambda d: [d.floats(60, 784), d.weights(784, 128), d.floats(128), d.weights(128, 10), d.floats(10)]
    ),
    "784-512-10 step": Case(
        _two_layers,
        lambda d: [
            d.weights(784, 512),
            d.floats(512),
            d.weights(512, 10),
            d.floats(10),
            d.floats(64, 784),
            d.integers(0, 10, 64),
        ],
        1e-3,
        trained=4,
    ),
    "LSTM gradient": Case(
        gradient(_lstm),
        lambda d: [
            d.floats(64, 512) * 0.1,
            d.floats(128, 512) * 0.1,
            d.floats(512) * 0.1,
            d.floats(50, 32, 64),
            d.floats(32, 128) * 0,
        ],
        2e-3,
    ),
    "RNN gradient": Case(
        gradient(_rnn),
        lambda d: [d.floats(128, 128) * 0.1, d.floats(128, 128) * 0.1, d.floats(64, 32, 128), d.floats(32, 128) * 0],
        2e-3,
    ),
    "word2vec step": Case(
        _words,
        lambda d: [
            d.floats(200_000, 128) * 0.1,
            d.floats(200_000, 128) * 0.1,
            *(d.integers(0, 200_000, n) for n in (1024, 1024, 64)),
        ],
        1e-3,
        trained=2,
    ),
    "convolution 3x3, 32 channels": _convolution((32, 32, 32, 32), (3, 3, 32, 32)),
    "convolution 3x3, 256 channels": _convolution((8, 14, 14, 256), (3, 3, 256, 256)),
    "convolution 1x1": _convolution((8, 28, 28, 128), (1, 1, 128, 128)),
    "convolution 7x7, step 2": _convolution((8, 112, 112, 3), (7, 7, 3, 64)),
    "depthwise convolution 3x3": _convolution((8, 56, 56, 128), (3, 3, 1, 128)),
    "convolution, groups of 16": _convolution((8, 28, 28, 128), (3, 3, 16, 128)),
    "convolution of sequences": _convolution((32, 512, 64), (5, 64, 64)),
    "max pool 2x2": Case(lambda l, x: l.dense(l.pooled(x)), lambda d: [d.floats(32, 56, 56, 64)]),
    "average pool 2x2": Case(lambda l, x: l.dense(l.averaged(x)), lambda d: [d.floats(32, 56, 56, 64)]),
    "max pool gradient": Case(
        gradient(lambda l, x, g: l.sum(l.pooled(x) * g)),
        lambda d: [d.floats(32, 56, 56, 64), d.floats(32, 28, 28, 64)],
    ),
    "network of images, inference": Case(_network, lambda d: [d.floats(32, 32, 32, 3), *_network_weights(d)], 2e-3),
    "network of images, step": Case(
        lambda l, *given: l.cross_entropy(_network(l, given[12], *given[:12]), given[13]),
        lambda d: [*_network_weights(d), d.floats(32, 32, 32, 3), d.integers(0, 10, 32)],
        2e-3,
        trained=12,
    ),
}
