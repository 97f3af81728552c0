"""What layers add to the loss, and what masks leave out of it: in calls, in compiled functions, and in fit."""

from __future__ import annotations

import copy
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, layers

RNG = np.random.default_rng(3)
X = RNG.standard_normal((6, 3)).astype("f4")


class Adding(layers.Layer):
    """Adds the sum of squares when it trains, and the mean always."""

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if training:
            self.add_loss(inputs**2)
        self.add_loss([hf.mean(inputs)])
        return inputs * 2


class Nested(hf.Model):
    """Two layers that add, one of them in a list, and one with regularizers of weights and of results."""

    def __init__(self) -> None:
        super().__init__()
        self.adding = [Adding(), Adding()]
        self.dense = layers.Dense(2, kernel_regularizer="l2", activity_regularizer=hf.regularizers.L1(0.1))

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        for layer in self.adding:
            inputs = layer(inputs, training=training)
        assert len(self.losses) >= (4 if training else 2)  # those of the call that goes on
        return self.dense(inputs)


def expected(model: Any, training: bool) -> float:
    """What should be added, in float64."""
    x = X.astype(float)
    kernel, bias = (value.astype(float) for value in model.dense.get_weights())
    found = x.mean() + (2 * x).mean() + 0.01 * (kernel**2).sum()
    found += 0.1 * np.abs(4 * x @ kernel + bias).sum() / len(x)
    return float(found + ((x**2).sum() + (4 * x**2).sum() if training else 0))


def test_losses_are_those_of_the_last_call() -> None:
    model = Nested()
    for training in (False, True, True, False):
        model(X, training=training)
        assert len(model.losses) == (6 if training else 4)
        assert sum(float(loss) for loss in model.losses) == pytest.approx(expected(model, training), rel=1e-5)
        assert len(model.adding[1].losses) == 1 + training
    model.adding[0](X)  # called by itself it has but what it added now
    assert [len(layer.losses) for layer in model.adding] == [1, 1]


def test_a_layer_that_is_called_twice_adds_twice() -> None:
    shared = Adding()
    inputs = hf.Input((3,))
    model = hf.Model(inputs, shared(shared(inputs)))
    for _ in range(2):
        model(X)
        assert [float(loss) for loss in model.losses] == pytest.approx([X.mean(), 2 * X.mean()], rel=1e-4)


@pytest.mark.parametrize("eagerly", [False, True])
def test_fit_and_evaluate_count_what_is_added(eagerly: bool) -> None:
    model = Nested()
    model(X)
    model.compile(hf.optimizers.SGD(0.0), run_eagerly=eagerly)
    history = model.fit(X, batch_size=6, epochs=3, verbose=0)
    assert history.history["loss"] == pytest.approx([expected(model, True)] * 3, rel=1e-5)
    assert model.evaluate(X, batch_size=6, verbose=0) == pytest.approx(expected(model, False), rel=1e-5)
    if not eagerly:
        assert "1 trace" in repr(model._compiled.train_step)  # nothing that it reads has changed
    model.compile(hf.optimizers.SGD(0.0), "mse", run_eagerly=eagerly)
    y = model.predict(X, verbose=0) + 1
    assert model.evaluate(X, y, batch_size=6, verbose=0) == pytest.approx(1 + expected(model, False), rel=1e-5)


def test_what_is_added_has_gradients_and_stays_in_its_trace() -> None:
    model = Nested()
    model(X)
    before = [float(loss) for loss in model.losses]

    @hf.function
    def step(x: Any) -> Any:
        with hf.GradientTape() as tape:
            model(x, training=True)
            loss = sum(model.losses)
        return loss, tape.gradient(loss, model.dense.kernel)

    loss, gradient = step(hf.asarray(X))
    assert float(loss) == pytest.approx(expected(model, True), rel=1e-5)
    kernel, bias = model.dense.get_weights()
    signs = np.sign(4 * X @ kernel + bias)
    np.testing.assert_allclose(gradient, 0.02 * kernel + 0.1 * 4 * X.T @ signs / len(X), rtol=1e-4, atol=1e-5)
    assert [float(loss) for loss in model.losses] == before  # tensors of the trace are not there


def test_what_is_added_in_a_loop_counts_and_in_a_branch_is_refused() -> None:
    class Rows(layers.Layer):
        def call(self, inputs: Any) -> Any:
            for row in inputs:
                self.add_loss(row)
            return inputs

    class Perhaps(layers.Layer):
        def call(self, inputs: Any) -> Any:
            if hf.sum(inputs) > 0:
                self.add_loss(inputs)
            return inputs

    def total(layer: Any) -> Any:
        def run(x: Any) -> Any:
            layer(x)
            return sum(layer.losses)

        return run

    rows, perhaps = Rows(), Perhaps()
    np.testing.assert_allclose(hf.function(total(rows))(hf.asarray(X)), X.sum(), rtol=1e-5)
    with pytest.raises(errors.TraceError, match="leaked out of the trace of a branch"):
        hf.function(total(perhaps), strict=True)(hf.asarray(X))


def test_what_was_added_goes_with_its_layer() -> None:
    layer, model = Adding(), Nested()
    layer(X)
    model(X)
    losses = [weakref.ref(loss) for loss in (layer.losses[0], model.losses[0])]
    assert copy.deepcopy(layer).losses == []
    del layer, model
    gc.collect()
    assert [loss() for loss in losses] == [None, None]


def test_a_regularizer_of_results_is_part_of_the_configuration() -> None:
    layer = layers.Conv1D(2, 1, activity_regularizer="l1")
    other = layers.Conv1D.from_config(layer.get_config())
    assert other.activity_regularizer == hf.regularizers.L1()
    assert "activity_regularizer" not in layers.Dense(1).get_config()


def test_wrong_use() -> None:
    layer = Adding()
    for wrong in (hf.Input((3,)), lambda: 1.0):
        with pytest.raises(errors.ArgumentTypeError, match="add_loss was given"):
            layer.add_loss(wrong)


WORDS = np.array([[1, 2, 0, 0, 0], [3, 0, 0, 0, 0], [1, 2, 3, 4, 5]])
LABELS = RNG.standard_normal((3, 5, 2)).astype("f4")


@pytest.mark.parametrize("own", [False, True])
def test_steps_without_words_count_in_no_loss_and_in_no_metric(own: bool) -> None:
    """Means are over the words that there are, also for weighted samples, and where a model has a step of its own."""
    inputs = hf.Input((5,), dtype="int32")
    embedded = layers.Embedding(7, 4, mask_zero=True)(inputs)
    outputs = layers.Dense(2)(layers.Dropout(0.0)(embedded))

    class Own(type(hf.Model(inputs, outputs))):  # type: ignore[misc]
        def test_step(self, data: Any) -> Any:
            x, y, weights = data
            p = self(x, training=False)
            loss = self.compute_loss(x, y, p, weights)
            return {"loss": loss, **self.compute_metrics(x, y, p, weights)} | {"loss": loss}

    model = (Own if own else hf.Model)(inputs, outputs)
    model.compile("sgd", "mse", metrics=["mae"], weighted_metrics=["mse", lambda y, p: hf.mean(hf.abs(y - p), axis=-1)])
    p, words = model.predict(WORDS, verbose=0), WORDS != 0
    weights = np.array([0.5, 2.0, 1.0])
    squares, distances = ((p - LABELS) ** 2).mean(-1)[words], np.abs(p - LABELS).mean(-1)[words]
    of_words = np.broadcast_to(weights[:, None], words.shape)[words]
    found = list(model.evaluate(WORDS, LABELS, sample_weight=weights, verbose=0, return_dict=True).values())
    averages = [np.average(squares, weights=of_words), np.average(distances, weights=of_words)]
    np.testing.assert_allclose(found, [(squares * of_words).mean(), distances.mean(), *averages], rtol=1e-5)


def test_steps_without_words_count_in_no_decision() -> None:
    """Counts at thresholds are of the words that there are, with the weights of their samples where there are some."""
    inputs = hf.Input((5,), dtype="int32")
    outputs = layers.Dense(1, activation="sigmoid")(layers.Embedding(7, 4, mask_zero=True)(inputs))
    model, metrics = hf.Model(inputs, outputs), hf.metrics
    model.compile("sgd", "mse", metrics=[metrics.TruePositives(0.0)], weighted_metrics=[metrics.FalseNegatives(1.0)])
    found = model.evaluate(WORDS, np.ones((3, 5, 1), "f4"), sample_weight=np.array([0.5, 2.0, 1.0]), verbose=0)
    assert found[1:] == [8.0, 2 * 0.5 + 1 * 2.0 + 5 * 1.0]
