"""Losses as objects: each against NumPy, reductions, weights, configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, losses

RNG = np.random.default_rng(2)
LOGITS = 2 * RNG.standard_normal((4, 5))
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
OTHERS = SHARES[::-1]
NUMBERS = np.array([1, 0, 4, 2])
ONE_HOT = np.eye(5)[NUMBERS]
SIGMOID = 1 / (1 + np.exp(-LOGITS))
ERROR = np.abs(LOGITS - ONE_HOT)
SMOOTH = 0.8 * ONE_HOT + 0.2 / 5
SIGNS = 2 * ONE_HOT - 1


def binary(y: Any, p: Any) -> Any:
    return -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(-1)


EVERY: dict[str, tuple[Any, Any, Any, np.ndarray]] = {
    "squared": (losses.MeanSquaredError(), ONE_HOT, LOGITS, (ERROR**2).mean(-1)),
    "absolute": (losses.MeanAbsoluteError(), ONE_HOT, LOGITS, ERROR.mean(-1)),
    "log cosh": (losses.LogCosh(), ONE_HOT, LOGITS, np.log(np.cosh(ERROR)).mean(-1)),
    "huber": (
        losses.Huber(0.7),
        ONE_HOT,
        LOGITS,
        np.where(ERROR <= 0.7, ERROR**2 / 2, 0.7 * ERROR - 0.7**2 / 2).mean(-1),
    ),
    "poisson": (losses.Poisson(), ONE_HOT, SHARES, (SHARES - ONE_HOT * np.log(SHARES + 1e-7)).mean(-1)),
    "hinge": (losses.Hinge(), ONE_HOT, LOGITS, np.maximum(1 - SIGNS * LOGITS, 0).mean(-1)),
    "squared hinge": (losses.SquaredHinge(), SIGNS, LOGITS, (np.maximum(1 - SIGNS * LOGITS, 0) ** 2).mean(-1)),
    "divergence": (losses.KLDivergence(), SHARES, OTHERS, (SHARES * np.log(SHARES / OTHERS)).sum(-1)),
    "cosine": (
        losses.CosineSimilarity(),
        SHARES,
        LOGITS,
        -(SHARES * LOGITS).sum(-1) / np.linalg.norm(SHARES, axis=-1) / np.linalg.norm(LOGITS, axis=-1),
    ),
    "binary": (losses.BinaryCrossentropy(), ONE_HOT, SIGMOID, binary(ONE_HOT, SIGMOID)),
    "binary of logits": (
        losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
        ONE_HOT,
        LOGITS,
        binary(0.8 * ONE_HOT + 0.1, SIGMOID),
    ),
    "categorical": (
        losses.CategoricalCrossentropy(label_smoothing=0.2),
        ONE_HOT,
        3 * SHARES,
        -(SMOOTH * np.log(SHARES)).sum(-1),
    ),
    "categorical of logits": (
        losses.CategoricalCrossentropy(from_logits=True),
        ONE_HOT,
        LOGITS,
        -(ONE_HOT * np.log(SHARES)).sum(-1),
    ),
    "sparse": (losses.SparseCategoricalCrossentropy(), NUMBERS, 3 * SHARES, -np.log(SHARES[range(4), NUMBERS])),
    "sparse of logits": (
        losses.SparseCategoricalCrossentropy(from_logits=True),
        NUMBERS[:, None],
        LOGITS,
        -np.log(SHARES[range(4), NUMBERS]),
    ),
}
WEIGHTS = np.array([0.5, 0.0, 2.0, 1.0])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", EVERY)
def test_losses_are_what_numpy_calculates(name: str, dtype: str) -> None:
    loss, y, p, each = EVERY[name]
    y, p = (x.astype(dtype) if x.dtype == float else x for x in (y, p))
    weights = WEIGHTS.astype(dtype)
    wanted = {
        "none": (each, each * WEIGHTS),
        "sum": (each.sum(), (each * WEIGHTS).sum()),
        "sum_over_batch_size": (each.mean(), (each * WEIGHTS).mean()),
        "mean": (each.mean(), (each * WEIGHTS).mean()),
        "mean_with_sample_weight": (each.mean(), (each * WEIGHTS).sum() / WEIGHTS.sum()),
    }
    for reduction, (plain, weighted) in wanted.items():
        chosen = type(loss).from_config(loss.get_config() | {"reduction": reduction})
        for more, value in (((), plain), ((weights,), weighted), ((weights[:, None],), weighted)):
            found = chosen(y, p, *more)
            assert found.dtype == dtype
            np.testing.assert_allclose(found.numpy(), value, rtol=2e-5, atol=1e-6)
            assert hf.function(chosen)(y, p, *more).numpy().tobytes() == found.numpy().tobytes()


@pytest.mark.parametrize("name", EVERY)
def test_gradients_in_compiled_functions(name: str) -> None:
    loss, y, p, _ = EVERY[name]
    gradient = hf.grad(lambda p: loss(y, p))
    found = gradient(hf.asarray(p))
    assert np.isfinite(found.numpy()).all() and np.abs(found.numpy()).max() > 0
    assert hf.function(gradient)(p).numpy().tobytes() == found.numpy().tobytes()


def test_a_class_that_does_not_count() -> None:
    each = -np.log(SHARES[range(4), NUMBERS])
    each[2] = 0
    for reduction, wanted in (("none", each), ("sum", each.sum()), ("mean", each.sum() / 3)):
        loss = losses.SparseCategoricalCrossentropy(True, ignore_class=4, reduction=reduction)
        np.testing.assert_allclose(loss(NUMBERS, LOGITS).numpy(), wanted, rtol=1e-6)
    loss = losses.SparseCategoricalCrossentropy(True, ignore_class=-1)
    assert loss(np.full(4, -1), LOGITS).item() == 0
    many = np.zeros((1, 3000), "f2")
    many[0, 2049] = 10
    assert losses.SparseCategoricalCrossentropy(True)([2049], many).item() < 0.2  # no float16 is 2049


def test_logits_that_are_large_and_shares_that_are_nothing() -> None:
    huge = np.array([[1000.0, -1000.0]])
    right = np.array([[1.0, 0.0]])
    for kind in (losses.BinaryCrossentropy, losses.CategoricalCrossentropy):
        assert kind(from_logits=True)(right, huge).item() == 0
        assert kind(from_logits=True)(1 - right, huge).item() in (1000.0, 2000.0)
        assert 16 < kind()(1 - right, right).item() < 17
    assert losses.LogCosh()(right, huge).item() == pytest.approx(999.5 - np.log(2))


def test_other_shapes() -> None:
    x, y = RNG.standard_normal((4, 1)), RNG.standard_normal(4)
    np.testing.assert_allclose(losses.MeanSquaredError()(y, x).numpy(), ((x[:, 0] - y) ** 2).mean())
    deep = RNG.standard_normal((2, 3, 5))
    numbers = RNG.integers(0, 5, (2, 3))
    weights = np.array([1.0, 3.0])
    each = losses.SparseCategoricalCrossentropy(True, reduction="none")(numbers, deep)
    assert each.shape == (2, 3)
    found = losses.SparseCategoricalCrossentropy(True, reduction="mean_with_sample_weight")(numbers, deep, weights)
    np.testing.assert_allclose(found.numpy(), (each.numpy() * weights[:, None]).sum() / 12)


def test_a_loss_of_the_user_and_what_it_reads() -> None:
    class Weighted(losses.Loss):
        factor = 2.0

        def call(self, y_true: Any, y_pred: Any) -> Any:
            return self.factor * hf.mean(hf.abs(y_true - y_pred), axis=-1)

    loss = Weighted(name="mine")
    run = hf.function(lambda y, p: loss(y, p))
    assert run(ONE_HOT, LOGITS).item() == pytest.approx(2 * ERROR.mean())
    loss.factor = 3.0
    assert run(ONE_HOT, LOGITS).item() == pytest.approx(3 * ERROR.mean())
    assert loss.get_config() == {"reduction": "sum_over_batch_size", "name": "mine"}
    huber = losses.Huber()
    run = hf.function(lambda y, p: huber(y, p))
    y, p = np.zeros((2, 2), "f4"), np.full((2, 2), 5, "f4")
    assert run(y, p).item() == 4.5
    huber.delta = 2.0
    assert run(y, p).item() == 8.0
    huber.reduction = "sum"
    assert run(y, p).item() == 16.0


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: losses.Huber(reduction="all"), errors.ArgumentError, "reduction is 'all'"),
        (lambda: losses.BinaryCrossentropy(label_smoothing=2), errors.ArgumentError, "label_smoothing is 2"),
        (lambda: losses.Loss()(ONE_HOT, LOGITS), NotImplementedError, "has to define call"),
        (lambda: losses.SparseCategoricalCrossentropy()([5, 0, 0, 0], SHARES), errors.IndexRangeError, "5"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("label", [-1, 3])
def test_a_class_number_below_zero_is_no_index_from_the_end(compiled: bool, label: int) -> None:
    losses = [
        hf.losses.softmax_cross_entropy,
        hf.losses.SparseCategoricalCrossentropy(from_logits=True),
        hf.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=-2),
        hf.losses.CategoricalGeneralizedCrossEntropy(),
    ]
    for loss in losses:
        f = hf.function(loss) if compiled else loss
        with pytest.raises(errors.IndexRangeError):
            f(hf.asarray([0, label]), hf.ones((2, 3)))
    ignoring = hf.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=label)
    assert ignoring(hf.asarray([0, label]), hf.ones((2, 3))).item() == pytest.approx(np.log(3))


@pytest.mark.parametrize(
    "kind", ["BinaryCrossentropy", "CategoricalCrossentropy", "BinaryFocalCrossentropy", "CategoricalFocalCrossentropy"]
)
def test_class_numbers_do_not_broadcast_to_probabilities(kind: str) -> None:
    loss = getattr(hf.losses, kind)()
    for labels in (hf.asarray([0.0, 1.0, 2.0]), hf.asarray([[0.0], [1.0], [2.0]])):
        with pytest.raises(errors.ShapeError, match="must have the same shape"):
            loss(labels, hf.ones((3, 3)) / 3)


EMBEDDINGS = np.asarray(
    [
        [-0.494, -0.816, -0.153, 0.259],
        [0.762, 0.074, -0.371, -0.526],
        [0.341, 0.744, 0.124, -0.561],
        [-0.375, 0.627, 0.079, -0.678],
        [-0.059, -0.824, -0.446, -0.346],
        [-0.66, 0.512, -0.058, -0.546],
        [0.215, 0.436, -0.863, -0.135],
    ],
    dtype="f4",
)
# What Keras computes with its own arguments and with others: losses, their mean, and both means with weights 0..6.
CIRCLES = {
    (80.0, 0.4, True): (
        [312.4436950683594, 48.12455749511719, 317.92303466796875, 0, 57.43113708496094, 164.11920166015625, 0],
        [180.00831604003906, 346.8582458496094, 144.52427673339844],
    ),
    (5.0, 0.25, False): (
        [20.84333610534668, 4.955989837646484, 21.301481246948242, 3.976447343826294, 5.021451473236084,
         11.279288291931152, 2.0364153385162354],
        [9.916343688964844, 21.169862747192383, 7.056621074676514],
    ),
}  # fmt: skip


@pytest.mark.parametrize("arguments", CIRCLES)
def test_circle_is_keras_s(arguments: tuple[float, float, bool]) -> None:
    labels, weights = [0, 1, 0, 2, 1, 0, 3], np.arange(7.0)
    losses, means = CIRCLES[arguments]
    loss = hf.losses.Circle(*arguments)
    np.testing.assert_allclose(hf.losses.Circle(*arguments, "none")(labels, EMBEDDINGS).numpy(), losses, rtol=3e-6)
    weighted = hf.losses.Circle(*arguments, "mean_with_sample_weight")(labels, EMBEDDINGS, weights)
    found = [loss(labels, EMBEDDINGS), loss(labels, EMBEDDINGS, weights), weighted]
    np.testing.assert_allclose([float(one) for one in found], means, rtol=3e-6)
    again = type(loss).from_config(loss.get_config())
    assert float(again(np.reshape(labels, (-1, 1)), EMBEDDINGS)) == float(found[0])

    x = hf.Variable(EMBEDDINGS)
    with hf.GradientTape() as tape:
        total = loss(labels, x)
    assert np.isfinite(tape.gradient(total, x).numpy()).all()  # also where no other sample is of the class
    with pytest.raises(errors.ShapeError, match="one row for each label"):
        loss([0, 1], EMBEDDINGS)


def test_positional_arguments_have_keras_order() -> None:
    assert losses.SparseCategoricalCrossentropy(True, 0, "sum", -1, "mine").reduction == "sum"
    assert losses.MeanSquaredError("sum", "mine").name == losses.Loss("mine", "sum").name == "mine"
    named = losses.KLDivergence, losses.CategoricalGeneralizedCrossEntropy, losses.Huber, losses.LogCosh
    expected = ["kl_divergence", "categorical_generalized_cross_entropy", "huber_loss", "log_cosh"]
    assert [kind().name for kind in named] == expected  # Keras's
    assert losses.Dice("sum", "mine", -1, "float64").get_config()["dtype"] == "float64"


@pytest.mark.parametrize("dtype", ["float64", "mixed_bfloat16", hf.mixed_precision.Policy("float16")])
def test_a_loss_is_computed_in_its_dtype(dtype: Any) -> None:
    loss = losses.MeanAbsoluteError(dtype=dtype)
    expected = getattr(dtype, "compute_dtype", None) or hf.mixed_precision.Policy(dtype).compute_dtype
    assert loss(ONE_HOT, LOGITS).dtype == expected
    again = losses.MeanAbsoluteError.from_config(loss.get_config())
    assert again(ONE_HOT, LOGITS).dtype == expected
    with pytest.raises(errors.ArgumentError, match="floating-point"):
        losses.Huber(dtype="int32")
