"""Metrics: each against NumPy, over batches, with weights, in compiled functions; configurations and wrong use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, metrics

pytestmark = pytest.mark.every_python

RNG = np.random.default_rng(5)
N = 37
LOGITS = RNG.standard_normal((N, 5))
SHARES = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
NUMBERS = RNG.integers(0, 5, N)
ONE_HOT = np.eye(5)[NUMBERS]
YES = RNG.integers(0, 2, (N, 3)).astype(float)
CHANCE = RNG.random((N, 3))
REAL = RNG.standard_normal((N, 3))
NEAR = REAL + 0.3 * RNG.standard_normal((N, 3))
CLASSES, OTHERS = RNG.integers(0, 4, (N, 6)), RNG.integers(0, 4, (N, 6))
WEIGHTS = RNG.random(N)
WEIGHTS[3] = 0
BEST = SHARES.argmax(-1)
RANK = (SHARES[np.arange(N), NUMBERS][:, None] < SHARES).sum(-1)


def average(values: Any) -> Callable[[Any], Any]:
    """The mean of values of samples, by weights."""
    rows = np.asarray(values, float).reshape(N, -1).mean(-1)
    return lambda w: (rows * w).sum() / w.sum()


def counts(y: Any, p: Any, t: float, w: Any) -> tuple[float, float, float, float]:
    y, above, w = y != 0, p > t, np.broadcast_to(w.reshape(N, *[1] * (y.ndim - 1)), y.shape)
    return (w * (y & above)).sum(), (w * (~y & above)).sum(), (w * (~y & ~above)).sum(), (w * (y & ~above)).sum()


def precision(y: Any, p: Any, t: float) -> Callable[[Any], Any]:
    def found(w: Any) -> Any:
        tp, fp, _, _ = counts(y, p, t, w)
        return tp / (tp + fp)

    return found


def recall(y: Any, p: Any, t: float) -> Callable[[Any], Any]:
    def found(w: Any) -> Any:
        tp, _, _, fn = counts(y, p, t, w)
        return tp / (tp + fn)

    return found


def area(y: Any, p: Any, thresholds: Any, curve: str, heights: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def found(w: Any) -> Any:
        tp, fp, tn, fn = np.array([counts(y, p, t, w) for t in thresholds]).T
        right = np.divide(tp, tp + fp, out=np.zeros_like(tp), where=tp + fp > 0)
        x, height = (fp / (fp + tn), tp / (tp + fn)) if curve == "ROC" else (tp / (tp + fn), right)
        return ((x[:-1] - x[1:]) * heights(height[:-1], height[1:])).sum()

    return found


def best(wanted: int, bounded: int, least: float) -> Callable[[Any], Any]:
    """The best rate at thresholds where another is no less."""

    def found(w: Any) -> Any:
        results = []
        for t in EVEN:
            tp, fp, tn, fn = counts(YES[:, :1], CHANCE[:, :1], t, w)
            rates = tp / (tp + fn), tn / (tn + fp), tp / (tp + fp) if tp + fp else 0.0
            results += [rates[wanted]] if rates[bounded] >= least else []
        return max(results, default=0.0)

    return found


def f_scores(y: Any, chosen: Any, beta: float) -> Callable[[Any], Any]:
    def found(w: Any) -> Any:
        y_, chosen_, weights = y != 0, chosen != 0, w[:, None]
        hits, right, picked = ((weights * part).sum(0) for part in (y_ & chosen_, y_, chosen_))
        return (1 + beta**2) * hits / (beta**2 * right + picked)

    return found


def overlap(y: Any, p: Any, classes: Any) -> Callable[[Any], Any]:
    def found(w: Any) -> Any:
        weights = np.broadcast_to(w.reshape(N, *[1] * (y.ndim - 1)), y.shape)
        shares = [
            (weights * ((y == c) & (p == c))).sum()
            / ((weights * (y == c)).sum() + (weights * (p == c)).sum() - (weights * ((y == c) & (p == c))).sum())
            for c in classes
        ]
        return np.mean(shares)

    return found


def explained(w: Any) -> Any:
    mean = (w[:, None] * REAL).sum(0) / w.sum()
    return np.mean(1 - (w[:, None] * (NEAR - REAL) ** 2).sum(0) / (w[:, None] * (REAL - mean) ** 2).sum(0))


EVEN = np.float32([-1e-7, *(np.arange(1, 199) / 199), 1 + 1e-7]).astype(float)
DIFFERENCE = NEAR - REAL
SIGNS = 2 * YES - 1
MIDDLE: Any = lambda a, b: (a + b) / 2  # noqa: E731
BINARY = -(YES * np.log(CHANCE) + (1 - YES) * np.log(1 - CHANCE))
EVERY: dict[str, tuple[Callable[[], Any], Any, Any, Callable[[Any], Any]]] = {
    "accuracy": (metrics.Accuracy, NUMBERS, BEST, average(NUMBERS == BEST)),
    "binary": (lambda: metrics.BinaryAccuracy(threshold=0.3), YES, CHANCE, average((CHANCE > 0.3) == YES)),
    "categorical": (metrics.CategoricalAccuracy, ONE_HOT, SHARES, average(NUMBERS == BEST)),
    "sparse": (metrics.SparseCategoricalAccuracy, NUMBERS[:, None], SHARES, average(NUMBERS == BEST)),
    "top": (lambda: metrics.TopKCategoricalAccuracy(2), ONE_HOT, SHARES, average(RANK < 2)),
    "sparse top": (lambda: metrics.SparseTopKCategoricalAccuracy(3), NUMBERS, SHARES, average(RANK < 3)),
    "squared": (metrics.MeanSquaredError, REAL, NEAR, average(DIFFERENCE**2)),
    "root": (metrics.RootMeanSquaredError, REAL, NEAR, lambda w: np.sqrt(average(DIFFERENCE**2)(w))),
    "absolute": (metrics.MeanAbsoluteError, REAL, NEAR, average(abs(DIFFERENCE))),
    "percentage": (metrics.MeanAbsolutePercentageError, REAL, NEAR, average(100 * abs(DIFFERENCE / REAL))),
    "logarithmic": (
        metrics.MeanSquaredLogarithmicError,
        YES,
        CHANCE,
        average((np.log1p(CHANCE) - np.log1p(np.maximum(YES, 1e-7))) ** 2),
    ),
    "cosine": (
        metrics.CosineSimilarity,
        REAL,
        NEAR,
        average((REAL * NEAR).sum(-1) / np.linalg.norm(REAL, axis=-1) / np.linalg.norm(NEAR, axis=-1)),
    ),
    "log cosh": (metrics.LogCoshError, REAL, NEAR, average(np.log(np.cosh(DIFFERENCE)))),
    "hinge": (metrics.Hinge, YES, NEAR, average(np.maximum(1 - SIGNS * NEAR, 0))),
    "squared hinge": (metrics.SquaredHinge, YES, NEAR, average(np.maximum(1 - SIGNS * NEAR, 0) ** 2)),
    "divergence": (
        metrics.KLDivergence,
        SHARES,
        SHARES[::-1],
        average((SHARES * np.log(SHARES / SHARES[::-1])).sum(-1)),
    ),
    "poisson": (metrics.Poisson, YES, CHANCE, average(CHANCE - YES * np.log(CHANCE + 1e-7))),
    "binary entropy": (metrics.BinaryCrossentropy, YES, CHANCE, average(BINARY)),
    "entropy": (metrics.CategoricalCrossentropy, ONE_HOT, SHARES, average(-np.log(SHARES[np.arange(N), NUMBERS]))),
    "sparse entropy": (
        metrics.SparseCategoricalCrossentropy,
        NUMBERS,
        SHARES,
        average(-np.log(SHARES[np.arange(N), NUMBERS])),
    ),
    "explained": (metrics.R2Score, REAL, NEAR, explained),
    "tp": (metrics.TruePositives, YES, CHANCE, lambda w: counts(YES, CHANCE, 0.5, w)[0]),
    "fp": (metrics.FalsePositives, YES, CHANCE, lambda w: counts(YES, CHANCE, 0.5, w)[1]),
    "tn": (metrics.TrueNegatives, YES, CHANCE, lambda w: counts(YES, CHANCE, 0.5, w)[2]),
    "fn": (
        lambda: metrics.FalseNegatives([0.2, 0.7]),
        YES,
        CHANCE,
        lambda w: np.array([counts(YES, CHANCE, t, w)[3] for t in (0.2, 0.7)]),
    ),
    "precision": (lambda: metrics.Precision(0.4), YES, CHANCE, precision(YES, CHANCE, 0.4)),
    "precision of one": (
        lambda: metrics.Precision(class_id=1),
        YES,
        CHANCE,
        precision(YES[:, 1], CHANCE[:, 1], 0.5),
    ),
    "precision at the top": (
        lambda: metrics.Precision(top_k=2),
        YES,
        CHANCE,
        precision(YES, (CHANCE.min(-1, keepdims=True) < CHANCE) * 1.0, 0.5),
    ),
    "recall": (metrics.Recall, YES, CHANCE, recall(YES, CHANCE, 0.5)),
    "recall at the top": (
        lambda: metrics.Recall(top_k=1),
        YES,
        CHANCE,
        recall(YES, (CHANCE.max(-1, keepdims=True) == CHANCE) * 1.0, 0.5),
    ),
    "sensitivity at": (lambda: metrics.SensitivityAtSpecificity(0.6), YES[:, :1], CHANCE[:, :1], best(0, 1, 0.6)),
    "specificity at": (lambda: metrics.SpecificityAtSensitivity(0.6), YES[:, :1], CHANCE[:, :1], best(1, 0, 0.6)),
    "precision at": (lambda: metrics.PrecisionAtRecall(0.6), YES[:, :1], CHANCE[:, :1], best(2, 0, 0.6)),
    "recall at": (lambda: metrics.RecallAtPrecision(0.5), YES[:, :1], CHANCE[:, :1], best(0, 2, 0.5)),
    "area": (metrics.AUC, YES, CHANCE, area(YES, CHANCE, EVEN, "ROC", MIDDLE)),
    "area below": (
        lambda: metrics.AUC(summation_method="minoring", thresholds=[0.6, 0.3]),
        YES,
        CHANCE,
        area(YES, CHANCE, [-1.0, 0.3, 0.6, 2.0], "ROC", np.minimum),
    ),
    "area above, of precision": (
        lambda: metrics.AUC(curve="PR", summation_method="majoring"),
        YES,
        CHANCE,
        area(YES, CHANCE, EVEN, "PR", np.maximum),
    ),
    "areas": (
        lambda: metrics.AUC(multi_label=True, label_weights=[1.0, 2.0, 3.0]),
        YES,
        CHANCE,
        lambda w: sum((i + 1) / 6 * area(YES[:, i], CHANCE[:, i], EVEN, "ROC", MIDDLE)(w) for i in range(YES.shape[1])),
    ),
    "f1": (metrics.F1Score, ONE_HOT, SHARES, f_scores(ONE_HOT, np.eye(5)[BEST], 1.0)),
    "f2": (
        lambda: metrics.FBetaScore("macro", 2.0, 0.4),
        YES,
        CHANCE,
        lambda w: f_scores(YES, CHANCE > 0.4, 2.0)(w).mean(),
    ),
    "overlap": (lambda: metrics.MeanIoU(4), CLASSES, OTHERS, overlap(CLASSES, OTHERS, range(4))),
    "overlap of two": (lambda: metrics.IoU(4, [1, 3]), CLASSES, OTHERS, overlap(CLASSES, OTHERS, [1, 3])),
    "binary overlap": (
        lambda: metrics.BinaryIoU(threshold=0.4),
        YES,
        CHANCE,
        overlap(YES, CHANCE > 0.4, [0, 1]),
    ),
    "overlap of scores": (lambda: metrics.OneHotMeanIoU(5), ONE_HOT, SHARES, overlap(NUMBERS, BEST, range(5))),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_metric_is_that_of_all_batches(name: str) -> None:
    make, y, p, reference = EVERY[name]
    for weights in (None, WEIGHTS):
        metric = make()
        for part in (slice(0, 20), slice(20, N)):
            given = {} if weights is None else {"sample_weight": weights[part]}
            metric.update_state(y[part], p[part], **given)
        expected = reference(np.ones(N) if weights is None else weights)
        np.testing.assert_allclose(metric.result(), expected, rtol=3e-5, atol=1e-6)
        assert metric.result().dtype == np.float32


@pytest.mark.parametrize("name", EVERY)
def test_compiled_updates_and_copies_are_the_same(name: str) -> None:
    make, y, p, _ = EVERY[name]
    metric = make()
    copy = type(metric).from_config(metric.get_config())
    step = hf.function(lambda y, p: (copy.update_state(y, p), copy.result())[1])
    for part in (slice(0, 20), slice(20, N)):
        expected = metric(y[part], p[part])
        np.testing.assert_array_equal(step(y[part], p[part]), expected)
    assert all(variable.dtype == hf.float64 for variable in metric.variables)
    metric.reset_state()
    assert all(not np.any(variable) for variable in metric.variables)
    np.testing.assert_array_equal(metric(y[:20], p[:20]), type(metric).from_config(metric.get_config())(y[:20], p[:20]))


def test_areas_of_precision_over_recall_are_interpolated() -> None:
    """Positives 1, 1, 0 at thresholds between: the curve has the points (1, 2/3), (1, 1), (1/2, 1)."""
    metric = metrics.AUC(curve="PR", thresholds=[0.25, 0.45])
    grown = 2.0  # from no positive to two, all of them true: precision is 1 everywhere
    assert metric([0.0, 1.0, 1.0], [0.2, 0.4, 0.9]).item() == pytest.approx(grown / 2)
    logits = metrics.AUC(from_logits=True)
    np.testing.assert_array_equal(logits(YES, REAL), metrics.AUC()(YES, hf.sigmoid(REAL.astype("f4"))))


def test_means_and_sums() -> None:
    mean, total = metrics.Mean(), metrics.Sum()
    for values, weights in (([1.0, 2.0], None), (3.0, 2.0), ([[4.0, 6.0], [0.0, 2.0]], [1.0, 0.5])):
        mean.update_state(values, sample_weight=weights)
        total.update_state(values if np.ndim(values) < 2 else [5.0, 1.0], sample_weight=weights)
    assert mean.result().item() == pytest.approx((3 + 6 + 5 + 0.5) / (2 + 2 + 1.5))
    assert total.result().item() == pytest.approx(3 + 6 + 5 + 0.5)
    assert metrics.Mean().result().item() == 0
    large = metrics.Mean()
    for _ in range(3):
        large.update_state(np.ones(2**24, np.float32))
    large.update_state(np.full(2**24, 3.0, np.float32))
    assert large.result().item() == 1.5  # counts above 2**24 are exact
    assert metrics.Mean(dtype="float64")([1.0, 0.0, 0.0]).dtype == hf.float64


def test_functions_as_metrics() -> None:
    metric = metrics.MeanMetricWrapper(lambda y, p, power: hf.abs(y - p) ** power, "own", power=2)
    assert metric.name == "own" and metric([1.0, 2.0], [2.0, 4.0]).item() == 2.5
    for function, own in (
        (metrics.categorical_accuracy(ONE_HOT, SHARES), NUMBERS == BEST),
        (metrics.top_k_categorical_accuracy(ONE_HOT, SHARES, 2), RANK < 2),
    ):
        np.testing.assert_array_equal(function, own)


def test_a_metric_of_ones_own() -> None:
    class Largest(metrics.Metric):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.seen = self.add_weight((), "zeros", name="seen")

        def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            self.seen.assign(hf.maximum(self.seen, hf.max(hf.abs(hf.asarray(y_pred) - hf.asarray(y_true)))))

        def result(self) -> Any:
            return self.seen

    metric = Largest(name="largest")
    metric([1.0, 2.0], [1.5, 2.0])
    assert metric([1.0], [1.25]).item() == 0.5 and "largest" in repr(metric)
    metric.reset_state()
    assert metric.result().item() == 0


def test_names() -> None:
    assert isinstance(metrics.get("mse"), metrics.MeanSquaredError)
    assert isinstance(metrics.get("SparseCategoricalAccuracy"), metrics.SparseCategoricalAccuracy)
    auc = metrics.get({"class_name": "AUC", "config": metrics.AUC(curve="PR").get_config()})
    assert auc.curve == "PR"
    with pytest.raises(errors.ArgumentError, match="did you mean 'Recall'"):
        metrics.get("recal")


def test_classes_out_of_range_are_no_others() -> None:
    for labels, predictions, said in (([0, 0], [0, 5], "prediction 5"), ([0, -1], [0, 2], "label -1")):
        metric = metrics.MeanIoU(3)
        for update in (metric.update_state, hf.function(lambda y, p, m=metric: m.update_state(y, p))):
            with pytest.raises(
                errors.IndexRangeError, match=rf"\[mean_io_u\] the {said} is no class; with num_classes 3"
            ):
                update(hf.asarray(labels), hf.asarray(predictions))
        assert not metric.total_cm.numpy().any()
    assert metrics.MeanIoU(3, ignore_class=255)([255, 1], [7, 1]).item() == 1.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: metrics.AUC(curve="roc"), "curve is 'roc'"),
        (lambda: metrics.AUC(num_thresholds=1), "num_thresholds"),
        (lambda: metrics.Precision(thresholds=[0.5, 2]), "thresholds are"),
        (lambda: metrics.Recall(top_k=0), "top_k is 0"),
        (lambda: metrics.TopKCategoricalAccuracy(0), "k is 0"),
        (lambda: metrics.RecallAtPrecision(1.5), "precision is 1.5"),
        (lambda: metrics.F1Score("all"), "average is 'all'"),
        (lambda: metrics.IoU(2, [2]), "class 2"),
        (lambda: metrics.R2Score()([1.0], [1.0]), "samples, outputs"),
        (lambda: metrics.AUC()([[1.0, 0.0]], [[1.0, 0.0, 1.0]]), "differ in shape"),
        (lambda: metrics.Mean()([1.0], sample_weight=[[1.0, 2.0]]), "more axes"),
    ],
)
def test_wrong_use(make: Callable[[], Any], text: str) -> None:
    with pytest.raises((errors.ArgumentError, errors.ShapeError), match=text):
        make()


def test_ignored_classes_weigh_nothing_where_there_are_weights() -> None:
    y, p = np.array([1, -1, 0]), np.array([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]], "f4")
    metric = hf.metrics.SparseCategoricalCrossentropy(ignore_class=-1)
    assert metric(y, p).item() == pytest.approx(-np.log([0.8, 0.9]).sum() / 3)  # Keras's mean is over all
    metric.reset_state()
    metric.update_state(y, p, sample_weight=np.array([1.0, 2.0, 3.0]))
    assert metric.result().item() == pytest.approx(-(np.log([0.8, 0.9]) * [1, 3]).sum() / 4)
    assert type(metric).from_config(metric.get_config()).get_config() == metric.get_config()
