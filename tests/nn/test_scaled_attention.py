"""``hf.nn.scaled_dot_product_attention`` against NumPy in float64: heads, masks, dtypes, derivatives, bits, errors."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

RNG = np.random.default_rng(5)
attend = hf.nn.scaled_dot_product_attention


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def reference(q: Any, k: Any, v: Any, mask: Any = None, causal: bool = False, scale: Any = None) -> np.ndarray:
    """One step of one head after the other; heads of key and value repeated."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    if q.ndim > 2 and k.shape[-3] != q.shape[-3]:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    batch = np.broadcast_shapes(q.shape[:-2], k.shape[:-2], v.shape[:-2])
    q, k, v = (np.broadcast_to(x, batch + x.shape[-2:]) for x in (q, k, v))
    steps, others = q.shape[-2], k.shape[-2]
    full = np.zeros((*batch, steps, others)) if mask is None else np.broadcast_to(mask, (*batch, steps, others))
    out = np.zeros((*batch, steps, v.shape[-1]))
    for at in np.ndindex(*batch, steps):
        scores = np.array([q[at] @ x for x in k[at[:-1]]]) * (1 / math.sqrt(q.shape[-1]) if scale is None else scale)
        seen = np.ones(others, bool) if not causal else np.arange(others) <= at[-1]
        row = full[at]
        seen = seen & row if row.dtype == bool else seen & (row > -np.inf)
        if seen.any():
            scores = (scores if row.dtype == bool else scores + row)[seen]
            shares = np.exp(scores - scores.max())
            out[at] = shares @ v[at[:-1]][seen] / shares.sum()
    return out


BOOL = RNG.random((2, 1, 5, 7)) < 0.5
BOOL[1, 0, 2] = False
FLOATS = np.where(RNG.random((5, 7)) < 0.3, -np.inf, normal(5, 7))
FLOATS[4] = -np.inf
FOUR = [(2, 4, 5, 6), (2, 4, 7, 6), (2, 4, 7, 3)]
GROUPED = [(2, 4, 5, 6), (2, 2, 7, 6), (2, 2, 7, 3)]
ONE_HEAD = [(2, 4, 5, 6), (2, 1, 7, 6), (2, 1, 7, 3)]
WAYS: dict[str, tuple[list[tuple[int, ...]], dict[str, Any]]] = {
    "plain": (FOUR, {}),
    "matrices": ([(5, 6), (7, 6), (7, 3)], {"scale": 0.3}),
    "causal": (FOUR, {"is_causal": True}),
    "causal with few others": ([(9, 6), (4, 6), (4, 3)], {"is_causal": True}),
    "bool mask": (FOUR, {"attn_mask": BOOL}),
    "added mask": (FOUR, {"attn_mask": FLOATS}),
    "mask and causal": (FOUR, {"attn_mask": BOOL, "is_causal": True}),
    "grouped": (GROUPED, {"enable_gqa": True}),
    "grouped and masked": (GROUPED, {"enable_gqa": True, "attn_mask": BOOL, "is_causal": True}),
    "one head for all": (ONE_HEAD, {"enable_gqa": True, "attn_mask": FLOATS}),
    "broadcast": ([(2, 4, 5, 6), (4, 7, 6), (1, 1, 7, 3)], {}),
    "long rows": ([(2, 3, 16), (2, 150, 16), (2, 150, 9)], {"attn_mask": RNG.random((3, 150)) < 0.5}),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_is_what_numpy_calculates_and_compiled_bits_are_eager_bits(way: str) -> None:
    shapes, options = WAYS[way]
    q, k, v = (normal(*shape) for shape in shapes)
    named = {"mask": options.get("attn_mask"), "causal": options.get("is_causal", False), "scale": options.get("scale")}
    wanted = reference(q, k, v, **named)
    found = attend(q, k, v, **options)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-11, atol=1e-13)
    assert hf.function(lambda *x: attend(*x, **options))(q, k, v).numpy().tobytes() == found.numpy().tobytes()


@pytest.mark.parametrize("way", ["grouped and masked", "added mask", "causal"])
@pytest.mark.parametrize(("dtype", "off"), [("float32", 2e-6), ("bfloat16", 2e-2), ("float16", 2e-3)])
def test_narrow_floats_are_rounded_late(way: str, dtype: str, off: float) -> None:
    shapes, options = WAYS[way]
    q, k, v = (hf.asarray(normal(*shape)).astype(dtype) for shape in shapes)
    found = attend(q, k, v, **options)
    wide = [x.astype("float64").numpy() for x in (q, k, v)]
    wanted = reference(*wide, options.get("attn_mask"), options.get("is_causal", False))
    assert found.dtype == q.dtype
    np.testing.assert_allclose(found.astype("float64").numpy(), wanted, rtol=off, atol=off)
    again = hf.function(lambda *x: attend(*x, **options))(q, k, v)
    assert again.astype("float64").numpy().tobytes() == found.astype("float64").numpy().tobytes()


def gradients(run: Any, *given: Any) -> list[np.ndarray]:
    given = tuple(hf.asarray(x) for x in given)
    with hf.GradientTape() as tape:
        for x in given:
            tape.watch(x)
        y = run(*given)
        loss = hf.sum(y * hf.cos(hf.reshape(hf.arange(y.size, dtype=y.dtype), y.shape)))
    return [g.numpy() for g in tape.gradient(loss, list(given))]


@pytest.mark.parametrize("way", ["plain", "grouped and masked", "mask and causal", "one head for all"])
def test_derivatives_are_those_of_differences(way: str) -> None:
    shapes, options = WAYS[way]
    given = [normal(*shape) for shape in shapes]
    named = {"mask": options.get("attn_mask"), "causal": options.get("is_causal", False)}

    def loss(q: Any, k: Any, v: Any) -> Any:
        y = reference(q, k, v, **named)
        return np.sum(y * np.cos(np.arange(y.size, dtype=float).reshape(y.shape)))

    found = gradients(lambda *x: attend(*x, **options), *given)
    for number, (x, g) in enumerate(zip(given, found)):
        for at in [tuple(RNG.integers(0, n) for n in x.shape) for _ in range(4)]:
            step = np.zeros_like(x)
            step[at] = 1e-5
            up, down = ([*given[:number], x + s, *given[number + 1 :]] for s in (step, -step))
            np.testing.assert_allclose(g[at], (loss(*up) - loss(*down)) / 2e-5, rtol=1e-5, atol=1e-8)


def test_a_mask_has_a_derivative_and_what_sees_nothing_has_none() -> None:
    q, k, v = (normal(*shape) for shape in FOUR)
    found = gradients(lambda *x: attend(*x[:3], attn_mask=x[3]), q, k, v, FLOATS)
    assert all(np.isfinite(g).all() for g in found)
    seen = np.isfinite(FLOATS)
    assert not found[0][:, :, 4].any() and not found[3][~seen].any() and found[3][seen].all()
    nothing = attend(q, k, v, attn_mask=np.zeros((5, 7), bool)).numpy()
    assert not nothing.any()
    assert attend(q, k[..., :0, :], v[..., :0, :]).numpy().tolist() == np.zeros((2, 4, 5, 3)).tolist()


def test_symbolic_extents_are_static_ones() -> None:
    spec = [hf.TensorSpec(["b", 4, "t", 6], "float32"), *[hf.TensorSpec(["b", 2, "s", 6], "float32")] * 2]
    run = hf.function(lambda q, k, v: attend(q, k, v, is_causal=True, enable_gqa=True), input_signature=spec)
    for b, t, s in ((1, 1, 1), (2, 5, 7), (3, 70, 4)):
        q, k, v = (normal(*shape).astype(np.float32) for shape in ((b, 4, t, 6), (b, 2, s, 6), (b, 2, s, 6)))
        assert run(q, k, v).numpy().tobytes() == attend(q, k, v, is_causal=True, enable_gqa=True).numpy().tobytes()


def test_over_a_batch_it_is_one_after_the_other() -> None:
    q, k, v = (normal(*shape) for shape in ((3, 4, 5, 6), (3, 2, 7, 6), (3, 2, 7, 3)))
    mask = RNG.random((3, 5, 7)) < 0.6
    run = hf.vmap(lambda q, k, v, m: attend(q, k, v, attn_mask=m, enable_gqa=True))
    wanted = [reference(q[i], k[i], v[i], mask[i]) for i in range(3)]
    np.testing.assert_allclose(run(q, k, v, mask).numpy(), wanted, rtol=1e-11, atol=1e-13)


def test_dropped_shares_are_made_up_for() -> None:
    q, k = hf.zeros((1, 4)), hf.zeros((2000, 4))
    kept = attend(q, k, hf.eye(2000), dropout_p=0.25).numpy() * 2000
    assert set(np.round(kept.ravel(), 4)) == {0.0, np.float32(1.3333)} and 0.65 < (kept > 0).mean() < 0.85


@pytest.mark.parametrize(
    ("shapes", "options", "kind", "message"),
    [
        ([(6,), (7, 6), (7, 3)], {}, errors.ShapeError, r"must be \[\.\.\., steps, features\]"),
        ([(5, 6), (7, 5), (7, 3)], {}, errors.ShapeError, "differ in their features"),
        ([(5, 6), (7, 6), (8, 3)], {}, errors.ShapeError, "key and value differ in their steps"),
        (GROUPED, {}, errors.ShapeError, "need enable_gqa=True"),
        ([(3, 5, 6), (2, 7, 6), (2, 7, 3)], {"enable_gqa": True}, errors.ShapeError, "must be a multiple"),
        ([(4, 5, 6), (2, 7, 6), (4, 7, 3)], {"enable_gqa": True}, errors.ShapeError, "differ in their heads"),
        ([(5, 6), (7, 6), (7, 3)], {"enable_gqa": True}, errors.ShapeError, r"\[\.\.\., heads, steps, features\]"),
        ([(2, 5, 6), (3, 7, 6), (3, 7, 3)], {}, errors.ShapeError, "do not broadcast"),
        (FOUR, {"attn_mask": np.ones((7, 5), bool)}, errors.ShapeError, r"attn_mask is bool\[7,5\]"),
        (FOUR, {"attn_mask": np.ones((1, 2, 4, 5, 7), bool)}, errors.ShapeError, "must broadcast to the scores"),
        (FOUR, {"attn_mask": np.ones((5, 7), int)}, errors.DTypeError, "must be bool, or floats"),
        (FOUR, {"dropout_p": 1.0}, errors.ArgumentError, "dropout_p is 1.0"),
    ],
)
def test_wrong_use(shapes: Any, options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        attend(*(np.ones(shape) for shape in shapes), **options)
