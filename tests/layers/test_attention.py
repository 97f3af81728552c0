"""Attention of several heads against NumPy: shapes, masks, what is given back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers

RNG = np.random.default_rng(11)
Q, V, K = (RNG.standard_normal(shape) for shape in ((2, 4, 6), (2, 5, 3), (2, 5, 7)))
MASK = RNG.random((2, 4, 5)) < 0.6
MASK[0, 1] = False  # one that may look at nothing takes 0


def reference(weights: list[np.ndarray], q: Any, v: Any, k: Any, mask: Any) -> tuple[np.ndarray, np.ndarray]:
    wq, bq, wk, bk, wv, bv, wo, bo = weights
    out, all_shares = np.zeros((*q.shape[:2], wo.shape[-1])), []
    for h in range(wq.shape[1]):
        a, b, c = (x @ w[:, h] + bias[h] for x, w, bias in ((q, wq, bq), (k, wk, bk), (v, wv, bv)))
        scores = a @ b.transpose(0, 2, 1) / np.sqrt(wq.shape[-1])
        shares = np.where(mask, np.exp(scores - scores.max(-1, keepdims=True)), 0)
        shares /= np.maximum(shares.sum(-1, keepdims=True), 1e-300)
        out += shares @ c @ wo[h]
        all_shares.append(shares)
    return out + bo, np.stack(all_shares, 1)


def made(*inputs: Any, **options: Any) -> tuple[Any, list[np.ndarray]]:
    layer = layers.MultiHeadAttention(3, 4, **options, dtype="float64")
    layer(*inputs)
    weights = [0.5 * RNG.standard_normal(w.shape) for w in layer.get_weights()]
    layer.set_weights(weights)
    return layer, weights


@pytest.mark.parametrize("options", [{}, {"value_dim": 2}, {"output_shape": 9, "value_dim": 1}])
@pytest.mark.parametrize("mask", [None, MASK])
def test_every_head_is_what_numpy_calculates(options: Any, mask: Any) -> None:
    layer, weights = made(Q, V, K, **options)
    found = layer(Q, V, K, attention_mask=mask, return_attention_scores=True)
    for one, other in zip(found, reference(weights, Q, V, K, True if mask is None else mask), strict=True):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-12)
    run = hf.function(lambda q, v, k: layer(q, v, k, attention_mask=mask))
    assert run(Q, V, K).numpy().tobytes() == found[0].numpy().tobytes()
    again = layers.MultiHeadAttention.from_config(layer.get_config())
    again(Q, V, K)
    again.set_weights(weights)
    assert again(Q, V, K, attention_mask=mask).numpy().tobytes() == found[0].numpy().tobytes()


@pytest.mark.parametrize("decorate", [lambda f: f, hf.function])
def test_masks_of_inputs_and_of_time(decorate: Any) -> None:
    layer, weights = made(Q, Q)
    seen = RNG.random((2, 4)) < 0.6
    run = decorate(lambda q: layer(q, q, value_mask=seen, use_causal_mask=True))
    wanted = reference(weights, Q, Q, Q, np.tril(np.ones((4, 4), bool)) & seen[:, None])[0]
    np.testing.assert_allclose(run(Q).numpy(), wanted, rtol=1e-9, atol=1e-12)

    class Around(layers.Layer):
        def __init__(self) -> None:
            super().__init__(dtype="float64")
            self.masking, self.attention = layers.Masking(dtype="float64"), layer

        def call(self, x: Any) -> Any:
            x = self.masking(x)
            return self.attention(x, x)

    x = np.where(seen[..., None], Q, 0.0)
    wanted = reference(weights, x, x, x, seen[:, None] & seen[:, :, None])[0]
    np.testing.assert_allclose(decorate(Around())(x).numpy(), wanted, rtol=1e-9, atol=1e-12)


def test_without_bias_and_with_dropout() -> None:
    layer, weights = made(Q, V, use_bias=False, dropout=0.5)
    assert [w.shape for w in weights] == [(6, 3, 4), (3, 3, 4), (3, 3, 4), (3, 4, 6)]
    zeros = [np.zeros((3, 4))] * 3 + [np.zeros(6)]
    wanted = reference([w for pair in zip(weights, zeros) for w in pair], Q, V, V, True)[0]
    np.testing.assert_allclose(layer(Q, V).numpy(), wanted, rtol=1e-9, atol=1e-12)
    run = hf.function(lambda q, v: layer(q, v, training=True))
    a, b = run(Q, V).numpy(), run(Q, V).numpy()
    assert not np.array_equal(a, b) and not np.allclose(a, wanted)


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: layers.MultiHeadAttention(0, 4), errors.ArgumentError, "num_heads is 0"),
        (lambda: layers.MultiHeadAttention(2, 4, dropout=1), errors.ArgumentError, "dropout is 1"),
        (
            lambda: layers.MultiHeadAttention(2, 4)(Q, Q, attention_mask=np.ones((4, 4))),
            errors.DTypeError,
            "a mask is float64; it must be bool",
        ),
        (lambda: layers.MultiHeadAttention(2, 4)(Q), errors.ArgumentError, "takes query and value"),
        (lambda: layers.MultiHeadAttention(2, 4)(Q[0], Q[0]), errors.ShapeError, r"\[batch, steps, features\]"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()
