"""The loss of connectionist temporal classification: against sums over all ways, and figures of another library."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compat import tf


def spelled(way: tuple[int, ...], blank: int) -> list[int]:
    return [said for said, _ in itertools.groupby(way) if said != blank]


def by_ways(logits: np.ndarray, labels: list[int], blank: int) -> float:
    """The loss of one sequence, (steps, classes), from the probability of each way to say the labels."""
    p = np.exp(logits.astype(float))
    p /= p.sum(-1, keepdims=True)
    steps, classes = p.shape
    total = sum(
        np.prod([p[t, said] for t, said in enumerate(way)])
        for way in itertools.product(range(classes), repeat=steps)
        if spelled(way, blank) == labels
    )
    return float(-np.log(total)) if total else float("inf")


LABELS = [[1, 2, 1], [2, 2, 1], [0, 1, 0], [1, 1, 1], [2, 1, 2]]
LENGTHS = [3, 2, 0, 2, 3]
STEPS = [5, 3, 4, 2, 2]  # the last two are too short: repeated labels need a blank between, three labels three steps


@pytest.mark.parametrize("blank", [0, -1])
def test_it_is_the_sum_over_all_ways(blank: int) -> None:
    logits = np.random.default_rng(1).standard_normal((5, 5, 3))
    labels = np.asarray(LABELS) if blank == 0 else 2 - np.asarray(LABELS)
    found = hf.nn.ctc_loss(labels, logits, LENGTHS, STEPS, blank_index=blank).numpy()
    expected = [
        by_ways(logits[:steps, i], labels[i, :length].tolist(), blank % 3)
        for i, (length, steps) in enumerate(zip(LENGTHS, STEPS))
    ]
    assert found.dtype == np.float64
    assert np.isinf(expected).tolist() == [False, False, False, True, True]
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    by_batch = hf.nn.ctc_loss(labels, logits.swapaxes(0, 1), LENGTHS, STEPS, False, blank)
    np.testing.assert_array_equal(by_batch.numpy(), found)


def test_its_gradient_is_that_of_the_sum() -> None:
    logits = np.random.default_rng(2).standard_normal((4, 5, 3))
    steps = np.minimum(STEPS, 4)
    x = hf.Variable(logits)
    with hf.GradientTape() as tape:
        losses = hf.nn.ctc_loss(LABELS, x, LENGTHS, steps)
        total = hf.sum(hf.where(hf.isinf(losses), 0.0, losses))
    found = tape.gradient(total, x).numpy()
    compiled = hf.function(lambda x: hf.grad(lambda x: hf.sum(hf.nn.ctc_loss(LABELS, x, LENGTHS, steps)))(x))
    np.testing.assert_allclose(compiled(hf.asarray(logits)).numpy(), found, rtol=1e-13)

    expected = np.zeros_like(logits)
    for t, i, k in np.ndindex(*logits.shape):
        if i > 2:
            continue  # impossible ones have no gradient
        ends = []
        for sign in (1, -1):
            moved = logits.copy()
            moved[t, i, k] += sign * 1e-5
            ends.append(by_ways(moved[: steps[i], i], LABELS[i][: LENGTHS[i]], 0))
        expected[t, i, k] = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_it_is_that_of_torch() -> None:
    t, b, c = np.ogrid[:12, :5, :6]
    logits = (3 * np.sin(1.7 * t + 0.9 * b * c + 0.3 * c)).astype("f4")
    labels = [[1, 2, 3, 4], [2, 2, 2, 2], [1, 1, 1, 1], [5, 3, 1, 1], [4, 4, 2, 1]]
    lengths, steps = [4, 4, 0, 2, 3], [12, 7, 5, 12, 9]
    compiled = hf.function(lambda x: hf.nn.ctc_loss(labels, x, lengths, steps))
    found = hf.nn.ctc_loss(labels, logits, lengths, steps).numpy()
    np.testing.assert_allclose(found, TORCH, rtol=2e-6)  # torch.nn.functional.ctc_loss, float64
    np.testing.assert_array_equal(compiled(hf.asarray(logits)).numpy(), found)
    np.testing.assert_array_equal(tf.nn.ctc_loss(labels, logits, lengths, steps).numpy(), found)
    by_batch = logits.swapaxes(0, 1)
    np.testing.assert_array_equal(tf.keras.ops.ctc_loss(labels, by_batch, lengths, steps).numpy(), found)


TORCH = [15.034321993, 19.648565878, 15.860980557, 21.839791738, 12.452729766]


def test_the_loss_object_takes_zeros_for_padding() -> None:
    logits = np.random.default_rng(4).standard_normal((3, 6, 4)).astype("f4")
    labels = np.asarray([[1.0, 2.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    expected = hf.nn.ctc_loss(labels.astype(int), logits, [2, 1, 0], [6, 6, 6], False).numpy()
    np.testing.assert_array_equal(hf.losses.CTC("none")(labels, logits).numpy(), expected)
    np.testing.assert_array_equal(tf.keras.losses.ctc(labels, logits).numpy(), expected)
    assert float(tf.keras.losses.CTC()(labels, logits)) == pytest.approx(expected.mean())
    copy = hf.losses.CTC.from_config(hf.losses.CTC("sum").get_config())
    assert float(copy(labels, logits)) == pytest.approx(expected.sum())


def test_a_model_learns_to_spell() -> None:
    x = np.eye(4, dtype="f4")[[[0, 1, 1, 2], [3, 3, 0, 1]]]
    model = hf.Sequential([hf.layers.Dense(4)])
    model.compile(hf.optimizers.Adam(0.1), loss=hf.losses.CTC())
    history = model.fit(x, np.asarray([[1, 2], [3, 1]]), epochs=60, verbose=0).history["loss"]
    assert history[-1] < 0.2 < 1 < history[0]


def test_narrow_logits_and_no_labels() -> None:
    logits = hf.astype(hf.zeros((3, 2, 2)), "float16")
    found = hf.nn.ctc_loss(np.zeros((2, 0), int), logits, [0, 0], [3, 0])
    assert found.dtype == hf.float32
    np.testing.assert_allclose(found.numpy(), [3 * np.log(2), 0], rtol=1e-6)
    never = hf.nn.ctc_loss([[1]], [[[0.0, float("-inf")]], [[0.0, float("-inf")]]], [1], [2])
    assert np.isposinf(never.numpy()).all()


WRONG = {
    "two axes": (([[1]], np.zeros((2, 3), "f4"), [1], [2]), {}, errors.ShapeError, "must be"),
    "another batch": (([[1]], np.zeros((2, 3, 4), "f4"), [1], [2]), {}, errors.ShapeError, "3 sequences"),
    "lengths of too many": (([[1]], np.zeros((2, 1, 4), "f4"), [1, 1], [2]), {}, errors.ShapeError, "label_length"),
    "labels of floats": (([[1.0]], np.zeros((2, 1, 4), "f4"), [1], [2]), {}, errors.DTypeError, "labels"),
    "no such blank": (([[1]], np.zeros((2, 1, 4), "f4"), [1], [2]), {"blank_index": 4}, errors.ArgumentError, "4 cl"),
    "no such class": (([[7]], np.zeros((2, 1, 4), "f4"), [1], [2]), {}, errors.IndexRangeError, "out of range"),
    "none from the end": (([[-1]], np.zeros((2, 1, 4), "f4"), [1], [2]), {}, errors.IndexRangeError, "out of range"),
    "no such place": (([[1]], np.zeros((2, 1, 4), "f4"), [2], [2]), {}, errors.IndexRangeError, "out of range"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    args, options, kind, text = WRONG[case]
    with pytest.raises(kind, match=text):
        hf.nn.ctc_loss(*args, **options).numpy()
