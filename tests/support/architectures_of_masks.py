"""Architectures that choose by masks: what they keep, and how much of it, depends on values."""

from __future__ import annotations

from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow import nn
from tests.support.architectures import Architecture, Batch, Loss, Weights, conv, cross_entropy, dense, mlp, tokens

CHOOSING: dict[str, Architecture] = {}


def architecture(batch: Any) -> Any:
    """As ``architectures.architecture``."""

    def add(loss: Loss) -> Loss:
        CHOOSING[loss.__name__] = Architecture(loss, batch)
        return loss

    return add


# ---- a detector


def _overlaps(boxes: Any) -> Any:
    """Intersection over union of boxes, each with each."""
    low = hf.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = hf.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    inner = hf.prod(nn.relu(high - low), axis=-1)
    areas = hf.prod(boxes[:, 2:] - boxes[:, :2], axis=-1)
    return inner / (areas[:, None] + areas - inner)


def _kept(boxes: Any, scores: Any, limit: float) -> Any:
    """Greedy suppression: the places of boxes that overlap none with a higher score."""
    order = hf.argsort(-scores, stable=True)
    overlap = _overlaps(boxes[order]) > limit
    places = hf.arange(len(order))
    alive = hf.ones_like(scores) > 0
    for i in range(len(order)):
        alive = hf.where(alive[i], alive & ~(overlap[i] & (places > i)), alive)
    return order[alive]


def _scene(rng: np.random.Generator, n: int) -> Batch:
    return rng.standard_normal((n, 12, 12, 3)), rng.uniform(0, 12, (n, 2))


@architecture(_scene)
def detector(w: Weights, batch: Batch) -> Any:
    """Anchors, decoding, a threshold, suppression within each image, and a loss of what was kept."""
    x, targets = batch
    y = nn.relu(conv(w, "stem", x, 8, 4, 4))
    found = hf.reshape(dense(w, "head", y, 2 * 5), (-1, 5))
    row, column, anchor = hf.meshgrid(hf.arange(3), hf.arange(3), hf.arange(2), indexing="ij")
    centre = hf.astype(hf.reshape(hf.stack([row, column], axis=-1), (-1, 2)), x.dtype) * 4 + 2
    size = hf.astype(hf.reshape(anchor, (-1, 1)), x.dtype) * 2 + 3
    centre, size = (hf.tile(a, (x.shape[0], 1)) for a in (centre, size))
    image = hf.repeat(hf.arange(x.shape[0]), 18)
    middle = centre + hf.tanh(found[:, :2]) * 2
    half = size * hf.exp(0.3 * hf.tanh(found[:, 2:4])) / 2
    scores = nn.sigmoid(found[:, 4])
    likely = scores > 0.45
    middle, half, scores, image = middle[likely], half[likely], scores[likely], image[likely]
    apart = hf.astype(image, x.dtype)[:, None] * 100  # boxes of other images overlap none
    kept = _kept(hf.concat([middle - half + apart, middle + half + apart], axis=1), scores, 0.3)
    near = hf.sum(hf.abs(middle[kept] - targets[image[kept]]), axis=1)
    return hf.sum(scores[kept] * near) / (len(kept) + 1) + hf.mean(hf.square(found[:, 4]))


# ---- graphs


def _graph(rng: np.random.Generator, n: int) -> Batch:
    nodes, edges = 4 * n, 11 * n
    return (
        rng.standard_normal((nodes, 5)),
        rng.integers(0, nodes, (2, edges)),
        rng.uniform(0, 1, edges),
        rng.integers(0, 3, nodes),
    )


@architecture(_graph)
def graph_that_drops_edges(w: Weights, batch: Batch) -> Any:
    """Edges that a draw drops, then those whose scores are low, then nodes that nobody reaches."""
    x, edges, drawn, labels = batch
    edges = edges[:, drawn < 0.8]
    for k in range(2):
        source, target = edges[0], edges[1]
        message = nn.relu(dense(w, f"{k}.message", hf.concat([x[source], x[target]], axis=1), 8))
        score = nn.sigmoid(dense(w, f"{k}.score", message, 1)[:, 0])
        strong = hf.nonzero(score > 0.35)[0]
        target = target[strong]
        total = hf.segment_sum(message[strong] * score[strong][:, None], target, x.shape[0])
        count = hf.segment_sum(hf.ones_like(score[strong]), target, x.shape[0])
        x = hf.tanh(dense(w, f"{k}.own", x, 8) + total / (count[:, None] + 1))
        edges = edges[:, strong]
    reached = hf.unique_values(edges[1])
    return cross_entropy(dense(w, "head", x, 3)[reached], labels[reached])


# ---- texts


@architecture(tokens(13, 3))
def run_lengths(w: Weights, batch: Batch) -> Any:
    """Runs of equal tokens are encoded as a token and a length, and spread over their tokens again."""
    (text,) = batch
    flat = hf.reshape(text, (-1,))
    begins = hf.concat([hf.asarray([True]), flat[1:] != flat[:-1]])
    starts = hf.nonzero(begins)[0]
    ends = hf.concat([starts[1:], hf.asarray([len(flat)])])
    lengths = ends - starts
    code = w("tokens", 3, 6)[flat[starts]] * hf.log(1.5 + hf.astype(lengths, w("tokens", 3, 6).dtype))[:, None]
    code = mlp(w, "mixed", code, 8) + code
    spread = hf.repeat(code, lengths, axis=0)
    return cross_entropy(dense(w, "head", spread[:-1], 3), flat[1:])


@architecture(tokens(9, 12))
def masked_language_model(w: Weights, batch: Batch) -> Any:
    """Only hidden tokens are predicted: their rows are taken, and no others meet the vocabulary."""
    (text,) = batch
    hidden = (text % 3 == 0) & (text < 9)
    x = w("tokens", 12, 8)[hf.where(hidden, 0, text)] + w("places", 9, 8)
    x = x + mlp(w, "1", hf.mean(x, axis=1, keepdims=True) + x, 16)
    rows = x[hidden]
    labels = text[hidden]
    if len(rows) == 0:
        return hf.mean(hf.square(x))
    return cross_entropy(dense(w, "head", nn.gelu(rows), 12), labels)


# ---- routing


@architecture(lambda rng, n: (rng.standard_normal((5 * n, 6)), rng.standard_normal((5 * n, 6))))
def experts_by_routing(w: Weights, batch: Batch) -> Any:
    """Each expert gets the rows that chose it, however many, and adds its part to them; nobody may choose the last."""
    x, y = batch
    gates = nn.softmax(dense(w, "gate", x, 4) - hf.asarray(np.array([0.0, 0.0, 0.0, 9.0])).astype(x.dtype))
    best = hf.argsort(-gates, axis=1, stable=True)[:, :2]
    result = hf.zeros_like(x)
    for expert in range(4):
        rows, place = hf.nonzero(best == expert)
        if expert == 3 and len(rows) == 0:
            continue
        share = hf.take_along_axis(gates[rows], best[rows, place][:, None], axis=1)
        result = hf.scatter_add(result, rows, mlp(w, f"{expert}", x[rows], 8) * share)
    return nn.mean_squared_error(y, x + result)
