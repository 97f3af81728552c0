"""Attributes that a compiled function sets: gradients, errors, other functions around it, files, and who keeps what."""

from __future__ import annotations

import gc
import pathlib
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import TraceError

ROW = np.array([1.0, 2.0, 3.0], np.float32)


class Kept:
    last: hf.Tensor | None = None


def test_tapes_see_what_an_attribute_is_set_to():
    kept = Kept()

    @hf.function
    def f(x):
        kept.last = x**2
        return x

    for factor in (1.0, 3.0, 5.0):
        x = hf.asarray(ROW * factor)
        with hf.GradientTape() as tape:
            tape.watch(x)
            f(x)
            loss = hf.sum(kept.last)
        np.testing.assert_array_equal(tape.gradient(loss, x), 2 * ROW * np.float32(factor))


def test_a_call_that_raises_sets_nothing():
    kept = Kept()

    @hf.function
    def f(x):
        kept.last = x * 2.0
        hf.debugging.Assert(hf.sum(x) > 0, [x])
        return x

    f(hf.asarray(ROW))
    with pytest.raises(ValueError):
        f(hf.asarray(-ROW))
    np.testing.assert_array_equal(kept.last, ROW * 2)


def test_a_trace_that_raises_leaves_no_tensor_behind():
    kept = Kept()

    @hf.function
    def f(x):
        kept.last = x * 2.0
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        f(hf.asarray(ROW))
    assert kept.last is None or isinstance(kept.last.numpy(), np.ndarray)


def test_strict_functions_may_set_attributes():
    kept = Kept()

    @hf.function(strict=True)
    def f(x):
        kept.last = x * 2.0
        return x

    for _ in range(3):
        f(hf.asarray(ROW))
    np.testing.assert_array_equal(kept.last, ROW * 2)


def test_inside_of_another_function_it_is_that_ones():
    kept = Kept()

    @hf.function
    def inner(x):
        kept.last = x * 2.0
        return x + 1.0

    concrete = inner.get_concrete_function(hf.asarray(ROW))

    @hf.function
    def outer(x):
        return inner(x) + concrete(x * 10.0)

    for factor in (1.0, 2.0, 3.0):
        outer(hf.asarray(ROW * factor))
        np.testing.assert_array_equal(kept.last, ROW * np.float32(factor) * 20)


def test_objects_are_not_kept_alive():
    @hf.function
    def f(holder, x):
        holder.last = x * 2.0
        return x

    kept = Kept()
    for _ in range(3):
        f(kept, hf.asarray(ROW))
    np.testing.assert_array_equal(kept.last, ROW * 2)
    gone = weakref.ref(kept)
    del kept
    gc.collect()
    assert gone() is None


def test_layers_may_keep_what_they_computed_while_a_model_is_fitted():
    class Scored(hf.Model):
        def __init__(self) -> None:
            super().__init__()
            self.dense, self.scores = hf.layers.Dense(2), None

        def call(self, inputs):
            logits = self.dense(inputs)
            self.scores = hf.nn.softmax(logits)
            return logits

    model = Scored()
    model.compile("sgd", "mse")
    x, y = np.ones((6, 3), np.float32), np.zeros((6, 2), np.float32)
    model.fit(x, y, epochs=2, batch_size=2, verbose=0)
    assert model.scores.shape == (2, 2)
    out = model.predict(x[:1], verbose=0)
    np.testing.assert_allclose(model.scores, hf.nn.softmax(hf.asarray(out)), rtol=1e-6)


def test_what_is_set_is_no_result_of_a_saved_function(tmp_path: pathlib.Path):
    kept = Kept()

    @hf.function
    def f(x):
        kept.last = x * 2.0
        return x + 1.0

    hf.saved.save(f, tmp_path / "f", signatures=f.get_concrete_function(hf.TensorSpec((3,))))
    again = hf.saved.load(tmp_path / "f")
    np.testing.assert_array_equal(again(hf.asarray(ROW)), ROW + 1)


def test_tensors_of_a_branch_function_are_refused():
    kept = Kept()

    def one(x):
        kept.last = x * 2.0
        return x

    @hf.function(strict=True)
    def f(x):
        return hf.cond(hf.sum(x) > 0, lambda: one(x), lambda: x)

    with pytest.raises(TraceError):
        f(hf.asarray(ROW))
    assert kept.last is None
