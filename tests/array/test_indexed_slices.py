"""Tensors given as some of their rows: whole tensors to everybody, rows to optimizers."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors

pytestmark = pytest.mark.code

ROWS, COLUMNS = 500, 3
INDICES = np.array([4, -1, 4])
VALUES = np.arange(9, dtype=np.float32).reshape(3, 3) + 1
WHOLE = np.zeros((ROWS, COLUMNS), np.float32)
np.add.at(WHOLE, INDICES, VALUES)


def slices(values=VALUES, indices=INDICES):
    return hf.IndexedSlices(values, indices, (ROWS, COLUMNS))


USES = {
    "asarray": hf.asarray,
    "numpy": np.asarray,
    "array": lambda s: np.array(s, copy=True),
    "method": lambda s: s.numpy(),
    "two": lambda s: s + s - WHOLE,
    "scaled": lambda s: (2 * s) / 2,
    "negative": lambda s: -1 * -s,
    "function": lambda s: hf.multiply(s, 1),
    "cast": lambda s: s.astype(hf.float32),
    "subscript": lambda s: s[:],
    "stacked": lambda s: hf.stack([s, s])[1],
    "clipped": lambda s: hf.optimizers.clip_by_global_norm([s], 1e6)[0][0],
    "argument": lambda s: hf.function(lambda t: t * 1)(s),
    "result": lambda s: hf.function(lambda t: t)(s),
    "made inside": lambda s: hf.function(lambda v, i: slices(v, i) * 1)(VALUES, INDICES),
    "assigned": lambda s: hf.Variable(WHOLE * 2).assign(s).value(),
    "branch": lambda s: hf.function(lambda p: hf.cond(p, lambda: s * 1, lambda: s * 2))(hf.asarray(True)),
}


@pytest.mark.parametrize("name", USES)
def test_whatever_takes_a_tensor_takes_it(name):
    np.testing.assert_array_equal(np.asarray(USES[name](slices())), WHOLE)


def test_what_it_is():
    s = slices()
    assert (s.shape, s.dense_shape, s.dtype, s.ndim, len(s)) == ((ROWS, COLUMNS), (ROWS, COLUMNS), np.float32, 2, ROWS)
    np.testing.assert_array_equal(s.values, VALUES)
    np.testing.assert_array_equal(s.indices, INDICES)
    assert repr(s).startswith("<IndexedSlices f32[500,3] values=<Tensor f32[3,3] cpu>")
    assert not isinstance(s, hf.Tensor) and isinstance(hash(s), int)
    again = hf.function(lambda t: t)(s)
    assert type(again) is hf.IndexedSlices and again.dense_shape == (ROWS, COLUMNS)


def test_derivatives_with_respect_to_values():
    for run in (lambda f: f, hf.function):
        values = hf.asarray(VALUES)

        def found(values):
            with hf.GradientTape() as tape:
                tape.watch(values)
                loss = hf.sum(slices(values) ** 2)
            return tape.gradient(loss, values)

        np.testing.assert_array_equal(run(found)(values).numpy(), 2 * WHOLE[INDICES])


@pytest.mark.parametrize("kind", ["SGD", "Adagrad", "Adam", "LazyAdam", "Lion"])
def test_optimizers_take_it_for_a_gradient(kind):
    found = []
    for compiled in (False, True):
        for gradient_of in (slices, lambda: hf.asarray(WHOLE)):
            variable, optimizer = hf.Variable(WHOLE - 1), getattr(hf.optimizers, kind)(0.1)

            def step(variable=variable, optimizer=optimizer, gradient_of=gradient_of):
                optimizer.apply([gradient_of()], [variable])

            run = hf.function(step) if compiled else step
            for _ in range(3):
                run()
            found.append([variable.numpy(), *(v.numpy() for v in optimizer.variables)])
    for first, *others in zip(*found):
        for other in others:
            np.testing.assert_array_equal(first, other)


def test_bad_parts():
    with pytest.raises(errors.ShapeError, match=r"for each index a row"):
        hf.IndexedSlices(VALUES, [1, 2], (ROWS, COLUMNS))
    with pytest.raises(errors.ShapeError, match=r"for each index a row"):
        hf.IndexedSlices(1.0, 1, ())
    with pytest.raises(errors.DTypeError, match="integers"):
        hf.IndexedSlices(VALUES, [1.0, 2.0, 3.0], (ROWS, COLUMNS))
    with pytest.raises(errors.IndexRangeError, match="out of range"):
        hf.asarray(hf.IndexedSlices(VALUES, [0, 1, ROWS], (ROWS, COLUMNS)))
    variable = hf.Variable(WHOLE)
    with pytest.raises(errors.IndexRangeError, match="out of range"):
        hf.optimizers.SGD(0.1).apply([hf.IndexedSlices(VALUES, [0, 1, ROWS], (ROWS, COLUMNS))], [variable])
    np.testing.assert_array_equal(variable.numpy(), WHOLE)
