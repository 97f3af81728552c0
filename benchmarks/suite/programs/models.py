"""Parts of models and of algorithms around products: mixtures, chains of factors, kernels, iterations."""

from __future__ import annotations

from typing import Any

from benchmarks.suite.case import Case, Draw, Filter
from benchmarks.suite.programs.networks import gradient


def _chain(l: Any, x: Any, *factors: Any) -> Any:
    for factor in factors:
        x = l.matmul(x, factor)
    return x


def _gru(l: Any, w: Any, u: Any, v: Any, xs: Any, h: Any) -> Any:
    units = h.shape[-1]

    def cell(state: Any, x: Any) -> Any:
        (before,), z = state, l.matmul(x, w)
        gates = l.sigmoid(z[:, : 2 * units] + l.matmul(before, u))
        update, reset = gates[:, :units], gates[:, units:]
        proposed = l.tanh(z[:, 2 * units :] + l.matmul(reset * before, v))
        return (update * before + (1 - update) * proposed,)

    return l.sum(l.last(cell, xs, (h,))[0] ** 2)


def _biased_attention(l: Any, q: Any, k: Any, v: Any, slopes: Any) -> Any:
    """ALiBi: a score falls with the distance, at a slope of its head."""
    places = l.cast(l.arange(q.shape[2]), "float32")
    scores = l.einsum("bhqd,bhkd->bhqk", q, k) / 8 - slopes[:, None, None] * l.abs(places[:, None] - places[None])
    return l.sum(l.matmul(l.softmax(scores), v) ** 2)


def _rotated(l: Any, x: Any, cos: Any, sin: Any) -> Any:
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return l.concat([a * cos - b * sin, a * sin + b * cos], axis=-1)


def _shared_keys(l: Any, q: Any, k: Any, v: Any, cos: Any, sin: Any) -> Any:
    """Rotated queries of four heads for each head of keys and values, causal."""
    q, k = _rotated(l, q, cos, sin), _rotated(l, k, cos, sin)
    places = l.arange(q.shape[3])
    scores = l.einsum("bgrqd,bgkd->bgrqk", q, k) / 8
    scores = l.where(places[:, None] >= places[None], scores, -1e9)
    return l.einsum("bgrqk,bgkd->bgrqd", l.softmax(scores), v)


def _mixer(l: Any, x: Any, w1: Any, w2: Any, w3: Any, w4: Any) -> Any:
    """[batch, patches, channels]: layers along patches, then along channels."""
    y = l.transposed(l.layer_norm(x), (0, 2, 1))
    x = x + l.transposed(l.matmul(l.gelu(l.matmul(y, w1)), w2), (0, 2, 1))
    return l.sum((x + l.matmul(l.gelu(l.matmul(l.layer_norm(x), w3)), w4)) ** 2)


def _up_and_down(l: Any, x: Any, f0: Any, f1: Any, f2: Any, f3: Any, y: Any) -> Any:
    """A U-Net of one level: what goes down comes up beside what stayed."""
    stayed = l.relu(l.convolved(x, f0))
    low = l.relu(l.convolved(l.pooled(stayed), f1))
    up = l.repeat(l.repeat(l.relu(l.convolved(low, f2)), 2, 1), 2, 2)
    return l.mean((l.convolved(l.concat([stayed, up], axis=-1), f3) - y) ** 2)


def _kernel(l: Any, x: Any, y: Any, weights: Any) -> Any:
    """Predictions of a kernel machine."""
    squares = l.sum(x * x, axis=1)[:, None] - 2 * l.matmul(x, l.transposed(y, (1, 0))) + l.sum(y * y, axis=1)[None]
    return l.matmul(l.exp(squares / -64), weights)


def _style(l: Any, x: Any, wanted: Any) -> Any:
    return l.sum((l.einsum("bpc,bpd->bcd", x, x) / x.shape[1] - wanted) ** 2)


def _newton(l: Any, x: Any, y: Any, w: Any) -> Any:
    """Five steps of logistic regression."""
    xt = l.transposed(x, (1, 0))
    for _ in range(5):
        p = l.sigmoid(l.matmul(x, w))
        hessian = l.matmul(xt, x * (p * (1 - p))[:, None]) + l.eye(x.shape[1])
        w = w - l.solve(hessian, (l.matmul(xt, p - y) + w)[:, None])[:, 0]
    return w


def _nearest(l: Any, x: Any, y: Any) -> Any:
    squares = l.sum(x * x, axis=1)[:, None] - 2 * l.matmul(x, l.transposed(y, (1, 0))) + l.sum(y * y, axis=1)[None]
    return l.sqrt(l.maximum(l.min(squares, axis=1), 0.0))


def _experts(l: Any, x: Any, gate: Any, w1: Any, w2: Any) -> Any:
    """All experts, weighed."""
    hidden = l.gelu(l.einsum("td,edf->etf", x, w1))
    return l.sum(l.einsum("te,etf,efd->td", l.softmax(l.matmul(x, gate)), hidden, w2) ** 2)


def _linear_attention(l: Any, q: Any, k: Any, v: Any) -> Any:
    q, k = l.exp(-q * q), l.exp(-k * k)
    states = l.einsum("bhkd,bhke->bhde", k, v)
    return l.einsum("bhqd,bhde->bhqe", q, states) / (l.einsum("bhqd,bhd->bhq", q, l.sum(k, axis=2))[..., None] + 1)


def _contrastive(l: Any, x: Any, y: Any, labels: Any) -> Any:
    x, y = (z / l.sqrt(l.sum(z * z, axis=1)[:, None]) for z in (x, y))
    scores = l.matmul(x, l.transposed(y, (1, 0))) * 20
    return l.cross_entropy(scores, labels) + l.cross_entropy(l.transposed(scores, (1, 0)), labels)


def _squeezed(l: Any, x: Any, f: Any, w1: Any, w2: Any) -> Any:
    """Channels weighed by what all places say."""
    y = l.relu(l.convolved(x, f))
    weights = l.sigmoid(l.matmul(l.relu(l.matmul(l.mean(y, (1, 2)), w1)), w2))
    return l.sum((x + y * weights[:, None, None]) ** 2)


def _poses(l: Any, joints: Any) -> Any:
    """The product of the matrices of a chain of joints."""
    pose = joints[:, 0]
    for k in range(1, joints.shape[1]):
        pose = l.matmul(pose, joints[:, k])
    return pose


def _power(l: Any, a: Any, x: Any) -> Any:
    for _ in range(20):
        x = l.matmul(a, x)
        x = x / l.sqrt(l.sum(x * x))
    return x


def _deep(l: Any, x: Any, *weights: Any) -> Any:
    for w in weights:
        x = l.tanh(l.matmul(x, w))
    return l.sum(x * x)


def _filters(l: Any, first: Any, second: Any, x: Any) -> Any:
    for f in (first, second):
        x = l.relu(l.convolved(x, f))
    return l.sum(x * x)


def _wavelet(d: Draw) -> list[Any]:
    angles = d.floats(128, 32)
    return [d.floats(2, 4, 4, 128, 64), d.floats(2, 4, 128, 64), d.floats(2, 4, 128, 64), angles, angles * 0.5]


CASES = {
    "einsum bi,bj,ijo->bo": Case(
        lambda l, x, y, w: l.einsum("bi,bj,ijo->bo", x, y, w),
        lambda d: [d.floats(256, 32), d.floats(256, 32), d.floats(32, 32, 32)],
    ),
    "chain of ranks of 16": Case(
        _chain, lambda d: [d.floats(512, 512), *(d.weights(*s) for s in ((512, 16), (16, 512), (512, 16), (16, 512)))]
    ),
    "GRU gradient": Case(
        gradient(_gru),
        lambda d: [
            d.floats(64, 384) * 0.1,
            d.floats(128, 256) * 0.1,
            d.floats(128, 128) * 0.1,
            d.floats(50, 32, 64),
            d.floats(32, 128) * 0,
        ],
        2e-3,
    ),
    "attention with slopes, gradient": Case(
        gradient(_biased_attention), lambda d: [*(d.floats(2, 8, 256, 64) for _ in range(3)), d.positive(8)], 2e-3
    ),
    "rotated grouped-query attention": Case(_shared_keys, _wavelet, 2e-3),
    "mixer gradient": Case(
        gradient(_mixer),
        lambda d: [d.floats(8, 64, 128), *(d.weights(*s) for s in ((64, 128), (128, 64), (128, 256), (256, 128)))],
        2e-3,
    ),
    "U-Net step": Case(
        lambda l, f0, f1, f2, f3, x, y: _up_and_down(l, x, f0, f1, f2, f3, y),
        lambda d: [
            *(Filter(d.weights(3, 3, *s)) for s in ((3, 32), (32, 64), (64, 32), (64, 3))),
            d.floats(4, 64, 64, 3),
            d.floats(4, 64, 64, 3),
        ],
        2e-3,
        trained=4,
    ),
    "kernel machine": Case(_kernel, lambda d: [d.floats(500, 32), d.floats(2000, 32), d.floats(2000, 8)], 1e-3),
    "gram matrices, gradient": Case(gradient(_style), lambda d: [d.floats(4, 1024, 64), d.floats(4, 64, 64)], 2e-3),
    "Newton's method": Case(
        _newton, lambda d: [d.floats(5000, 50), d.integers(0, 2, 5000, dtype="float32"), d.floats(50) * 0], 1e-3
    ),
    "nearest of 2000": Case(_nearest, lambda d: [d.floats(1000, 48), d.floats(2000, 48)], 1e-3),
    "mixture of experts gradient": Case(
        gradient(_experts),
        lambda d: [d.floats(256, 64), d.weights(64, 8), d.floats(8, 64, 128) / 8, d.floats(8, 128, 64) / 11],
        2e-3,
    ),
    "linear attention": Case(_linear_attention, lambda d: [d.floats(2, 8, 512, 32) for _ in range(3)], 1e-3),
    "contrastive gradient": Case(
        gradient(_contrastive), lambda d: [d.floats(256, 128), d.floats(256, 128), d.integers(0, 256, 256)], 2e-3
    ),
    "squeeze and excite step": Case(
        lambda l, f, w1, w2, x: _squeezed(l, x, f, w1, w2),
        lambda d: [Filter(d.weights(3, 3, 64, 64)), d.weights(64, 16), d.weights(16, 64), d.floats(8, 28, 28, 64)],
        2e-3,
        trained=3,
    ),
    "chains of joints": Case(_poses, lambda d: [d.floats(5000, 6, 4, 4) * 0.5]),
    "power iteration": Case(_power, lambda d: [d.floats(512, 512), d.floats(512)], 1e-2),
    "deep and narrow gradient": Case(
        gradient(_deep), lambda d: [d.floats(1000, 32), *(d.weights(32, 32) for _ in range(12))], 2e-3
    ),
    "depthwise separable step": Case(
        _filters,
        lambda d: [Filter(d.weights(3, 3, 1, 64)), Filter(d.weights(1, 1, 64, 64)), d.floats(4, 32, 32, 64)],
        2e-3,
        trained=2,
    ),
    "filters of sequences, step": Case(
        _filters,
        lambda d: [Filter(d.weights(5, 1, 64)), Filter(d.weights(3, 64, 64)), d.floats(8, 512, 64)],
        2e-3,
        trained=2,
    ),
}
