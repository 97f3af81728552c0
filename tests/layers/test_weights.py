"""What is asked of weights: penalties that layers collect, and constraints that optimizers apply."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import constraints, errors, layers, regularizers

W = np.random.default_rng(5).standard_normal((4, 3))


def cosines(rows: np.ndarray) -> float:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = [abs(unit[i] @ unit[j]) for i in range(len(unit)) for j in range(i)]
    return float(np.mean(pairs))


PENALTIES = {
    "l1": (regularizers.L1(0.3), lambda w: 0.3 * np.abs(w).sum()),
    "l2": (regularizers.L2(0.3), lambda w: 0.3 * (w * w).sum()),
    "both": (regularizers.L1L2(0.3, 0.1), lambda w: 0.3 * np.abs(w).sum() + 0.1 * (w * w).sum()),
    "rows": (regularizers.OrthogonalRegularizer(0.3), lambda w: 0.3 * cosines(w)),
    "columns": (regularizers.OrthogonalRegularizer(0.3, "columns"), lambda w: 0.3 * cosines(w.T)),
}


@pytest.mark.parametrize("name", PENALTIES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_penalties(name: str, dtype: str) -> None:
    penalty, reference = PENALTIES[name]
    w = W.astype(dtype)
    found = penalty(hf.asarray(w))
    assert found.shape == () and found.dtype == w.dtype
    assert found.item() == pytest.approx(reference(w.astype("f8")), rel=1e-5)
    assert hf.function(penalty)(w).item() == found.item()
    assert regularizers.get({"class_name": type(penalty).__name__, "config": penalty.get_config()}) == penalty


def norms(w: np.ndarray, axis: Any) -> np.ndarray:
    return np.sqrt((w * w).sum(axis=axis, keepdims=True))


RULES = {
    "non-negative": (constraints.NonNeg(), lambda w: np.maximum(w, 0)),
    "at most": (constraints.MaxNorm(1.5), lambda w: w * np.minimum(norms(w, 0), 1.5) / norms(w, 0)),
    "unit": (constraints.UnitNorm(axis=1), lambda w: w / norms(w, 1)),
    "unit of all": (constraints.UnitNorm(axis=[0, 1]), lambda w: w / norms(w, (0, 1))),
    "between": (
        constraints.MinMaxNorm(1.5, 1.75, 0.25),
        lambda w: w * (0.25 * np.clip(norms(w, 0), 1.5, 1.75) + 0.75 * norms(w, 0)) / norms(w, 0),
    ),
}


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_constraints(name: str, dtype: str) -> None:
    rule, reference = RULES[name]
    w = W.astype(dtype)
    found = rule(hf.asarray(w))
    assert found.dtype == w.dtype
    np.testing.assert_allclose(found.numpy(), reference(w.astype("f8")), rtol=1e-5, atol=1e-6)
    assert hf.function(rule)(w).numpy().tobytes() == found.numpy().tobytes()
    assert np.isfinite(rule(hf.zeros((4, 3))).numpy()).all()
    assert constraints.get({"class_name": type(rule).__name__, "config": rule.get_config()}) == rule


@pytest.mark.parametrize("decorate", [lambda f: f, hf.function])
def test_layers_collect_penalties_and_optimizers_apply_constraints(decorate: Any) -> None:
    x = np.random.default_rng(1).standard_normal((8, 4)).astype("f4")
    model = hf.Sequential(
        [
            layers.Dense(3, kernel_regularizer=regularizers.L2(0.5), kernel_constraint="unit_norm"),
            layers.Dense(1, kernel_regularizer="l1", bias_regularizer=lambda w: hf.sum(w), bias_constraint="non_neg"),
        ]
    )
    optimizer = hf.optimizers.SGD(0.1, momentum=0.5)

    def step(x: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.mean(hf.square(model(x))) + sum(model.losses)
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss

    run = decorate(step)
    for _ in range(3):
        run(x)
    first, last = model.layers
    np.testing.assert_allclose(norms(first.kernel.numpy(), 0), 1, rtol=1e-5)
    assert last.bias.item() == 0  # the penalty drives it below
    kernels = first.kernel.numpy().astype("f8"), last.kernel.numpy().astype("f8")
    wanted = [0.5 * (kernels[0] ** 2).sum(), 0.01 * np.abs(kernels[1]).sum(), 0]
    np.testing.assert_allclose([loss.item() for loss in model.losses], wanted, rtol=1e-5)
    assert len(first.losses) == 1 and layers.Dense(2).losses == []
    last.trainable = False
    assert len(model.losses) == 1


def test_a_penalty_that_changes_is_seen() -> None:
    class Weighted(regularizers.Regularizer):
        def __init__(self) -> None:
            self.weight = 1.0

        def __call__(self, weights: Any) -> Any:
            return self.weight * hf.sum(weights)

    class Ceiling(constraints.Constraint):
        limit = 5.0

        def __call__(self, weights: Any) -> Any:
            return hf.minimum(weights, self.limit)

    penalty, ceiling = Weighted(), Ceiling()
    layer = layers.Dense(1, kernel_initializer="ones", kernel_regularizer=penalty, kernel_constraint=ceiling)
    layer(np.ones((1, 2)))
    total = hf.function(lambda: sum(layer.losses))
    optimizer = hf.optimizers.SGD(1.0)
    step = hf.function(lambda g: optimizer.apply_gradients([(g, layer.kernel)]))
    assert total().item() == 2.0
    penalty.weight = 3.0
    assert total().item() == 6.0
    up = np.full((2, 1), -10.0, "f4")
    step(up)
    assert layer.kernel.numpy().max() == 5.0
    ceiling.limit = 2.0
    step(up)
    assert layer.kernel.numpy().max() == 2.0
    optimizer.apply_gradients([(up, layer.kernel)])
    ceiling.limit = 4.0
    optimizer.apply_gradients([(up, layer.kernel)])
    assert layer.kernel.numpy().max() == 4.0


def test_copies_keep_what_is_asked() -> None:
    layer = layers.Dense(1, kernel_regularizer="l2", kernel_constraint="non_neg")
    layer(np.ones((1, 2)))
    for again in (copy.deepcopy(layer.kernel), pickle.loads(pickle.dumps(layer.kernel))):
        assert again.regularizer == regularizers.L2() and again.constraint == constraints.NonNeg()
        assert again.name == "kernel" and again.numpy().tobytes() == layer.kernel.numpy().tobytes()
    made = layers.Dense.from_config(layer.get_config())
    assert made.kernel_regularizer == regularizers.L2() and made.kernel_constraint == constraints.NonNeg()
    assert hf.Variable(1.0).regularizer is None and hf.Variable(1.0).constraint is None


@pytest.mark.parametrize(
    ("run", "kind", "message"),
    [
        (lambda: regularizers.get("l3"), errors.ArgumentError, "nothing is called 'l3'"),
        (lambda: regularizers.get(3), errors.ArgumentTypeError, "3 is neither a name nor a regularizer"),
        (lambda: constraints.get(3), errors.ArgumentTypeError, "3 is neither a name nor a constraint"),
        (lambda: constraints.get("max_nor"), errors.ArgumentError, "did you mean 'MaxNorm'"),
        (lambda: regularizers.OrthogonalRegularizer(mode="x"), errors.ArgumentError, "mode is 'x'"),
        (lambda: regularizers.OrthogonalRegularizer()(hf.ones(3)), errors.ShapeError, "must be a matrix"),
        (lambda: regularizers.Regularizer()(hf.ones(3)), NotImplementedError, "has to define __call__"),
        (lambda: constraints.Constraint()(hf.ones(3)), NotImplementedError, "has to define __call__"),
    ],
)
def test_wrong_use(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        run()
