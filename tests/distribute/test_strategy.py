"""``MirroredStrategy`` on one process: what each replica computes has the bits of a call of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ops.evaluation_order import replica_fold
from tests.support.bits import same_bits

D = hf.distribute
S = 4


def batch(rows: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 6, 6, 2)).astype(np.float32), rng.integers(0, 3, rows)


def convolutional() -> Any:
    """Without random numbers of its own."""
    hf.random.set_seed(1)
    model = hf.Sequential(
        [
            hf.layers.Conv2D(4, 3, activation="relu"),
            hf.layers.BatchNormalization(momentum=0.5),
            hf.layers.Flatten(),
            hf.layers.Dense(3),
        ]
    )
    model(batch(2)[0])
    return model


def test_gradients_are_the_tree_of_those_of_separate_calls() -> None:
    """The reference knows nothing of strategies: a step for each replica's rows, added up by the twin in NumPy."""
    strategy = D.MirroredStrategy(replicas=S)
    x, y = batch()

    def gradients_of(model: Any, x: Any, y: Any, count: float) -> Any:
        with hf.GradientTape() as tape:
            value = hf.sum(hf.nn.log_softmax(model(x, training=True))[hf.arange(len(y)), y]) / -count
        return tape.gradient(value, model.trainable_variables)

    model = convolutional()
    alone = [gradients_of(convolutional(), x[k : k + 6], y[k : k + 6], 24.0) for k in range(0, 24, 6)]
    for compiled in (False, True):
        model = convolutional()

        def run(given: Any, model: Any = model) -> Any:
            def replica(x: Any, y: Any) -> Any:
                return [D.all_reduce(g) for g in gradients_of(model, x, y, 24.0)]

            return strategy.run(replica, args=given)

        found = (hf.function(run) if compiled else run)(strategy.distribute_batch((x, y)))
        for k, total in enumerate(found):
            assert same_bits(
                np.asarray(total.values[0]), replica_fold(np.add, np.stack([np.asarray(one[k]) for one in alone]))
            )


def test_moving_averages_are_means_over_replicas() -> None:
    x, _ = batch()
    x = x.reshape(24, -1)
    layer = hf.layers.BatchNormalization(momentum=0.0)
    layer(x)
    strategy = D.MirroredStrategy(replicas=S)
    out = strategy.run(lambda v: layer(v, training=True), args=(strategy.distribute_batch(x),))
    parts = x.reshape(S, 6, -1)
    means = np.stack([np.asarray(hf.mean(hf.asarray(part), axis=0)) for part in parts])
    assert same_bits(np.asarray(layer.moving_mean), replica_fold(np.add, means) / np.float32(S))
    for part, found in zip(parts, out.values):
        alone = hf.layers.BatchNormalization()
        assert same_bits(np.asarray(found), np.asarray(alone(part, training=True)))


def test_synchronized_batch_normalization_is_that_of_the_whole_batch() -> None:
    x, _ = batch()
    x = x.reshape(24, -1)
    strategy, layer = D.MirroredStrategy(replicas=S), hf.layers.BatchNormalization(momentum=0.0, synchronized=True)
    out = strategy.gather(strategy.run(lambda v: layer(v, training=True), args=(strategy.distribute_batch(x),)))
    whole = hf.layers.BatchNormalization(momentum=0.0)
    np.testing.assert_allclose(np.asarray(out), np.asarray(whole(x, training=True)), atol=2e-6)
    np.testing.assert_allclose(np.asarray(layer.moving_variance), np.asarray(whole.moving_variance), rtol=1e-5)
    assert hf.layers.BatchNormalization.from_config(layer.get_config()).synchronized


@pytest.mark.parametrize("weighted", (False, True))
def test_losses_divide_by_the_count_of_the_whole_batch(weighted: bool) -> None:
    rng = np.random.default_rng(2)
    y, p, w = (rng.normal(size=(8, 3)).astype(np.float32) for _ in range(3))
    weights = np.abs(w[:, 0]) if weighted else None
    strategy = D.MirroredStrategy(replicas=S)
    for reduction in ("sum_over_batch_size", "sum", *(["mean_with_sample_weight"] if weighted else [])):
        loss = hf.losses.MeanSquaredError(reduction=reduction)
        parts = strategy.run(loss, args=strategy.distribute_batch((y, p, weights)))
        np.testing.assert_allclose(strategy.reduce("sum", parts).item(), loss(y, p, weights).item(), rtol=1e-6)


def test_metrics_see_the_whole_batch() -> None:
    rng = np.random.default_rng(3)
    y, p = rng.integers(0, 2, 24).astype(np.float32), rng.uniform(size=24).astype(np.float32)
    strategy = D.MirroredStrategy(replicas=S)
    for make in (hf.metrics.BinaryAccuracy, hf.metrics.AUC, hf.metrics.Precision, hf.metrics.MeanSquaredError):
        shared, alone = make(), make()

        @hf.function
        def step(given: Any, metric: Any = shared) -> None:
            strategy.run(metric.update_state, args=given)

        for _ in range(2):
            step(strategy.distribute_batch((y, p)))
            alone.update_state(y, p)
        np.testing.assert_allclose(shared.result().item(), alone.result().item(), rtol=1e-6, err_msg=make.__name__)


def test_each_replica_drops_out_other_elements() -> None:
    hf.random.set_seed(5)
    strategy = D.MirroredStrategy(replicas=S)
    found = np.asarray(strategy.run(lambda: hf.nn.dropout(hf.ones((64,)), 0.5)).stacked)
    assert len({row.tobytes() for row in found}) == S


@pytest.mark.parametrize("kind", ("adam", "sgd", "adagrad"))
def test_embeddings_are_updated_by_the_rows_of_all(kind: str) -> None:
    """Against one step over the whole batch: rows that several replicas looked up add up."""
    ids = np.asarray([0, 3, 3, 1, 3, 0, 2, 3])

    def weights(replicas: int, lazily: bool) -> np.ndarray:
        hf.random.set_seed(0)
        table = hf.layers.Embedding(6, 5)
        table(ids)
        optimizer, strategy = hf.optimizers.get(kind), D.MirroredStrategy(replicas=replicas)

        def replica(ids: Any) -> None:
            with hf.GradientTape() as tape:
                loss = hf.sum(table(ids) ** 2)
            gradient = tape.gradient(loss, table.trainable_variables[0])
            if lazily:
                gradient = hf.IndexedSlices(hf.take(gradient, ids, axis=0) / 4, ids, (6, 5))
            optimizer.apply_gradients([(gradient, table.trainable_variables[0])])

        strategy.run(replica, args=(strategy.distribute_batch(ids),))
        return np.asarray(table.trainable_variables[0])

    np.testing.assert_allclose(weights(S, False), weights(1, False), rtol=2e-5, atol=1e-6)
    assert np.isfinite(weights(S, True)).all()


def trained(replicas: int | None, epochs: int = 2, **options: Any) -> tuple[Any, Any]:
    x, y = batch(26)  # whose last batch of each epoch is short, and falls into other parts
    hf.random.set_seed(7)

    def compiled() -> Any:
        model = hf.Sequential(
            [hf.layers.Flatten(), hf.layers.Dense(8, activation="relu"), hf.layers.Dense(3, kernel_regularizer="l2")]
        )
        model.build((None, 6, 6, 2))
        model.compile("sgd", hf.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"], **options)
        return model

    if replicas is None:
        model = compiled()
    else:
        with D.MirroredStrategy(replicas=replicas).scope():
            model = compiled()
    history = model.fit(x, y, batch_size=8, epochs=epochs, verbose=0, shuffle=False)
    return model, history.history


def test_fit_is_that_of_the_whole_batch_but_for_rounding() -> None:
    """The loss, the metrics, what regularizers add, the weights, and a short batch at the end."""
    alone, history = trained(None)
    x, y = batch(26)
    for replicas in (1, 3, 4):
        model, found = trained(replicas)
        for name, values in history.items():
            np.testing.assert_allclose(found[name], values, rtol=1e-5, err_msg=name)
        for one, other in zip(model.variables, alone.variables):
            np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(model.evaluate(x, y, verbose=0), alone.evaluate(x, y, verbose=0), rtol=1e-5)
        np.testing.assert_allclose(model.predict(x, verbose=0), alone.predict(x, verbose=0), rtol=1e-4, atol=1e-6)


def test_fit_eagerly_has_the_bits_of_the_compiled_step() -> None:
    (one, first), (other, second) = trained(S), trained(S, run_eagerly=True)
    assert first == second
    for a, b in zip(one.variables, other.variables):
        assert same_bits(np.asarray(a), np.asarray(b))


def test_models_are_built_within_replicas() -> None:
    x, y = batch(8)
    with D.MirroredStrategy(replicas=S).scope():
        model = hf.Sequential([hf.layers.Flatten(), hf.layers.Dropout(0.5), hf.layers.Dense(3)])
        model.compile("adam", hf.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(x, y, verbose=0)
    assert len(model.variables) and len(model.optimizer.variables) == 6


# ---- values and data


def test_reduce_and_gather() -> None:
    strategy = D.MirroredStrategy(replicas=3)
    x = (np.random.default_rng(0).normal(size=(3, 4, 2)) * 1e3).astype(np.float32)
    value = D.PerReplica(x)
    assert same_bits(np.asarray(strategy.reduce("sum", value)), replica_fold(np.add, x))
    assert same_bits(np.asarray(strategy.reduce("SUM", {"a": value})["a"]), replica_fold(np.add, x))
    np.testing.assert_allclose(np.asarray(strategy.reduce("mean", value, axis=0)), x.mean((0, 1)), rtol=1e-5)
    assert same_bits(np.asarray(strategy.gather(value, axis=1)), np.concatenate(list(x), 1))
    assert strategy.reduce("sum", 2.0).item() == 6.0
    assert [v.item() for v in strategy.local_results(strategy.run(D.axis_index))] == [0, 1, 2]


@pytest.mark.parametrize(("rows", "parts"), [(8, 4), (6, 3), (4, 4), (3, 3), (7, 1), (1, 1), (10, 2)])
def test_no_row_is_repeated_or_dropped(rows: int, parts: int) -> None:
    strategy = D.MirroredStrategy(replicas=4)
    x = np.arange(rows)
    value = strategy.distribute_batch({"x": x, "none": None})
    assert value["none"] is None and len(value["x"].values) == parts
    assert np.concatenate([np.asarray(v) for v in value["x"].values]).tolist() == x.tolist()
    sizes = strategy.run(lambda part: D.axis_size(), args=(value["x"],))
    assert np.asarray(sizes.stacked).tolist() == [parts] * parts


def test_a_distributed_data_set() -> None:
    strategy = D.MirroredStrategy(replicas=2)
    shared = strategy.distribute_dataset(hf.data.Dataset.range(10).batch(4))
    seen = [np.asarray(v).tolist() for part in shared for v in part.values]
    assert seen == [[0, 1], [2, 3], [4, 5], [6, 7], [8], [9]] and len(shared) == 3


def test_bad_calls() -> None:
    strategy = D.MirroredStrategy(replicas=2)
    v = hf.Variable(0.0, name="total")
    three, one, two = (D.PerReplica(hf.ones(n)) for n in (3, 1, 2))

    def assigns() -> None:
        v.assign(hf.astype(D.axis_index(), "float32"))

    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (errors.ArgumentError, "replicas is 0", lambda: D.MirroredStrategy(replicas=0)),
        (errors.ArgumentError, "replicas is True", lambda: D.MirroredStrategy(replicas=True)),
        (errors.ArgumentTypeError, "no function", lambda: strategy.run(3)),
        (errors.ArgumentError, "of 3 replicas, and the strategy has 2", lambda: strategy.reduce("sum", three)),
        (errors.ArgumentError, "of 1 and 2 replicas", lambda: strategy.run(lambda a, b: a, args=(one, two))),
        (errors.ArgumentError, "'total' is assigned a value of each", lambda: strategy.run(assigns)),
        (errors.ArgumentError, "Expected 'sum'", lambda: strategy.reduce("median", 1.0)),
        (errors.ShapeError, "no rows", lambda: strategy.distribute_batch(np.ones((0, 2)))),
        (errors.ShapeError, "one number of rows", lambda: strategy.distribute_batch((np.ones(2), np.ones(4)))),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text):
            call()
    assert v.item() == 0.0


def test_the_strategy_of_a_scope() -> None:
    assert not D.has_strategy() and D.get_strategy().num_replicas_in_sync == 1
    with D.MirroredStrategy(replicas=3).scope() as strategy:
        assert D.has_strategy() and D.get_strategy() is strategy
    assert not D.has_strategy()
