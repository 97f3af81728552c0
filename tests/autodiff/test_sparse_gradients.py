"""Gradients of look-ups in eager mode: tensors to everybody, of which optimizers take the rows alone."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.core.lazy_tensor import LazyTensor, lazy_tensor as late_tensor, parts_of

pytestmark = pytest.mark.code

ROWS, COLUMNS = 4000, 5
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
INDICES = np.array([[3, -1, 3], [0, ROWS - 1, -ROWS]])
WEIGHTS = np.random.default_rng(1).normal(size=(2, 3, COLUMNS)).astype(np.float32)


def gradient_of(table, indices=INDICES, weights=WEIGHTS):
    with hf.GradientTape() as tape:
        loss = hf.sum(hf.take(table, indices, axis=0) * weights)
    return tape.gradient(loss, table)


def expected(indices=INDICES, weights=WEIGHTS):
    found = np.zeros_like(START)
    np.add.at(found, indices, weights)
    return found


def late():
    found = gradient_of(hf.Variable(START))
    assert parts_of(found) is not None
    return found


def compiled(x):
    return hf.function(lambda y: y * 2)(x)


def captured(x):
    return hf.function(lambda: x * 2)()


def watched(x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        loss = hf.sum(x * x)
    return tape.gradient(loss, x)


def changed(x):
    x[0] = 1.0
    return x


def assigned(x):
    v = hf.Variable(START)
    v.assign(x)
    return v.value()


def added(x):
    v = hf.Variable(START)
    v.assign_add(x)
    return v.value()


def in_a_dataset(x):
    return next(iter(hf.data.Dataset.from_tensor_slices(START).map(lambda _: x).batch(2)))[0]


def branched(x):
    return hf.function(lambda flag: hf.cond(flag, lambda: x, lambda: x * 2))(hf.asarray(False))


USES = {
    "operator": (lambda x: x * 2, 2),
    "of two": (lambda x: x + late(), 2),
    "function": (lambda x: hf.multiply(2, x), 2),
    "array": (np.asarray, 1),
    "numpy": (lambda x: x.numpy(), 1),
    "asarray": (hf.asarray, 1),
    "dlpack": (np.from_dlpack, 1),
    "lists": (lambda x: np.array(x.tolist(), np.float32), 1),
    "stacked": (lambda x: hf.stack([x, x])[0], 1),
    "nested": (lambda x: hf.asarray([x])[0], 1),
    "method": (lambda x: x.reshape(-1).reshape(x.shape), 1),
    "cast": (lambda x: hf.astype(x, hf.float64), 1),
    "argument": (compiled, 2),
    "captured": (captured, 2),
    "watched": (watched, 2),
    "copy": (copy.copy, 1),
    "deep copy": (copy.deepcopy, 1),
    "pickled": (lambda x: pickle.loads(pickle.dumps(x)), 1),
    "assigned": (assigned, 1),
    "variable": (lambda x: hf.Variable(x).value(), 1),
    "in a data set": (in_a_dataset, 1),
    "branched": (branched, 2),
    "structure": (lambda x: hf.tree.map(lambda y: y * 2, {"a": x})["a"], 2),
    "vectorised": (lambda x: hf.vmap(lambda row: row * 2)(x), 2),
    "clipped": (lambda x: hf.optimizers.clip_by_global_norm([x], 1e6)[0][0], 1),
}


@pytest.mark.parametrize("name", USES)
def test_it_is_a_tensor_to_everybody(name):
    use, times = USES[name]
    found = use(late())
    np.testing.assert_array_equal(np.asarray(found, np.float32), times * expected())


def test_what_changes_is_what_was_given():
    x = late()
    assert changed(x) is x
    assert x.numpy()[0].tolist() == [1.0] * COLUMNS
    np.testing.assert_array_equal(x.numpy()[1:], expected()[1:])


def test_what_is_assigned_while_another_look_makes_the_elements_stays():
    """The second look, and what is assigned after it, come while the first makes them, as from another thread."""

    def make():
        made.append(None)
        if len(made) == 1:
            x[0] = 7.0
        return np.array([1.0, 2.0], np.float32)

    made = []
    x = late_tensor(hf.asarray([1.0, 2.0]).type, None, make)
    assert x.tolist() == [7.0, 2.0]
    assert type(x) is hf.Tensor and len(made) == 2


def test_what_it_says_before_it_is_looked_at():
    x = late()
    assert isinstance(x, hf.Tensor) and isinstance(x, LazyTensor)
    assert (x.shape, x.dtype, x.ndim, x.size) == ((ROWS, COLUMNS), np.float32, 2, ROWS * COLUMNS)
    assert parts_of(x) is not None
    assert repr(x).startswith("<Tensor f32[4000,5] cpu>")
    assert type(x) is hf.Tensor and parts_of(x) is None


def test_several_sources_and_cotangents():
    """Of one value as gradient of two, and of a cotangent that is given."""
    table, other = hf.Variable(START), hf.Variable(START)
    for _ in range(4):
        with hf.GradientTape() as tape:
            both = hf.take(table, INDICES, axis=0) + hf.take(other, INDICES, axis=0)
        one, two = tape.gradient(both, [table, other], output_gradients=hf.asarray(WEIGHTS))
        assert one is not two
        one[0] = 7.0
        np.testing.assert_array_equal(two.numpy(), expected())


def test_what_is_assigned_to_indices_later_changes_nothing():
    table, weights = hf.Variable(START), hf.asarray(WEIGHTS)
    for _ in range(4):
        indices = hf.asarray(INDICES)
        with hf.GradientTape() as tape:
            rows = hf.take(table, indices, axis=0)
        found = tape.gradient(rows, table, output_gradients=weights)
        indices[0, 0] = 9
        np.testing.assert_array_equal(found.numpy(), expected())


def test_dense_uses_make_it_whole():
    table = hf.Variable(START)
    for _ in range(4):
        with hf.GradientTape() as tape:
            loss = hf.sum(hf.take(table, INDICES, axis=0) * WEIGHTS) + hf.sum(table * 2.0)
        found = tape.gradient(loss, table)
        assert parts_of(found) is None
        np.testing.assert_array_equal(found.numpy(), expected() + np.float32(2))


def test_second_derivatives():
    table = hf.Variable(START)
    for _ in range(4):
        with hf.GradientTape() as outer:
            with hf.GradientTape() as inner:
                loss = hf.sum(hf.take(table, INDICES, axis=0) ** 3)
            first = inner.gradient(loss, table)
            again = hf.sum(first * first)
        second = outer.gradient(again, table)
        rows, counts = np.unique(INDICES % ROWS, return_counts=True)
        found = np.zeros_like(START)
        for row, count in zip(rows, counts):
            found[row] = 36 * count**2 * START[row] ** 3
        np.testing.assert_allclose(second.numpy(), found, rtol=1e-5)


def test_compiled_and_eager_parts_of_one_loss():
    """One table, read by two compiled functions, one of them twice, and eagerly, in two orders."""
    square = hf.function(lambda table, i: hf.sum(hf.take(table, i, axis=0) ** 2))
    sine = hf.function(lambda table, i: hf.sum(hf.sin(hf.take(table, i, axis=0))))

    def eagerly(table, i):
        return hf.sum(hf.exp(hf.take(table, i, axis=0)))

    parts = [square, eagerly, sine, square]
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 0]):
        grads = []
        for whole in (lambda f: f, hf.function):
            table = hf.Variable(START)

            def found(i, table=table, order=order):
                with hf.GradientTape() as tape:
                    loss = sum(parts[k](table, i + k) for k in order)
                return tape.gradient(loss, table)

            run = whole(found)
            grads += [run(hf.asarray(INDICES[0])).numpy() for _ in range(3)]
        for other in grads[1:]:
            np.testing.assert_array_equal(grads[0], other)


def test_second_derivatives_through_compiled_functions():
    cubes = hf.function(lambda table, i: hf.sum(hf.take(table, i, axis=0) ** 3))
    table, indices = hf.Variable(START), hf.asarray([5, 6, 5])
    for _ in range(3):
        with hf.GradientTape() as outer:
            with hf.GradientTape() as inner:
                loss = cubes(table, indices)
            first = inner.gradient(loss, table)
            again = hf.sum(first * first)
        second = outer.gradient(again, table)
        found = np.zeros_like(START)
        found[5], found[6] = 36 * 4 * START[5] ** 3, 36 * START[6] ** 3
        np.testing.assert_allclose(second.numpy(), found, rtol=1e-5)


def test_no_rows_and_wrong_ones():
    table = hf.Variable(START)
    for _ in range(4):
        none = gradient_of(table, np.zeros((0,), np.int64), np.zeros((0, COLUMNS), np.float32))
        assert not none.numpy().any()
    with pytest.raises(errors.IndexRangeError, match="out of range"):
        gradient_of(table, np.array([ROWS]), WEIGHTS[0, :1])


OPTIMIZERS = {
    "sgd": lambda: hf.optimizers.SGD(0.3),
    "momentum": lambda: hf.optimizers.SGD(0.3, momentum=0.9),
    "adagrad": lambda: hf.optimizers.Adagrad(0.3),
    "adam": lambda: hf.optimizers.Adam(0.1),
    "lazy adam": lambda: hf.optimizers.LazyAdam(0.1),
    "clipped": lambda: hf.optimizers.SGD(0.3, global_clipnorm=0.5),
    "decay": lambda: hf.optimizers.AdamW(0.1),
    "accumulated": lambda: hf.optimizers.SGD(0.3, gradient_accumulation_steps=2),
    "averaged": lambda: hf.optimizers.SGD(0.3, use_ema=True),
}


def once(table, i):
    return hf.sum(hf.square(hf.take(table, i, axis=0)))


def thrice(table, i):
    pairs = hf.take(table, hf.reshape(i, (-1, 2)), axis=0)
    return hf.sum(hf.sin(table[i])) + hf.sum(pairs * pairs[:, ::-1]) + hf.sum(hf.exp(table[-1 - i] * 0.1))


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("loss_of", [once, thrice])
def test_eager_and_compiled_training_agree(name, loss_of):
    found = []
    for mode in ("eager", "compiled", "compiled loss"):
        table, optimizer = hf.Variable(START), OPTIMIZERS[name]()
        loss = hf.function(loss_of) if mode == "compiled loss" else loss_of

        def step(i, table=table, optimizer=optimizer, loss_of=loss, late=mode != "compiled"):
            with hf.GradientTape() as tape:
                loss = loss_of(table, i)
            gradient = tape.gradient(loss, table)
            if late:
                assert parts_of(gradient) is not None
            optimizer.apply([gradient], [table])
            return loss

        run = hf.function(step) if mode == "compiled" else step
        losses = [
            run(hf.asarray(i)).numpy()
            for i in ([3, -1, 3, 0, 3, 2999], [7, 8, 9, 10, 7, 3], [-ROWS, 0, 0, 0, 0, 0], [1, 1], [5, 4, 4, 5])
        ]
        found.append([table.numpy(), *losses, *(v.numpy() for v in optimizer.variables)])
    for eager, *others in zip(*found):
        for other in others:
            np.testing.assert_array_equal(eager, other)


def place_of(variable):
    return variable._tensor._array.ctypes.data


def test_eager_steps_update_where_the_table_lies():
    table, optimizer = hf.Variable(START), hf.optimizers.SGD(0.3)
    for k in range(6):
        gradient = gradient_of(table)
        before = place_of(table)
        gc.collect()
        optimizer.apply([gradient], [table])
        assert parts_of(gradient) is not None
        assert place_of(table) == before or k == 0


@pytest.mark.parametrize(
    "held",
    [
        lambda v: v._read(),
        lambda v: v.value(),
        lambda v: v.numpy(),
        lambda v: v.numpy()[1:],
        lambda v: memoryview(v.numpy()),
        lambda v: np.from_dlpack(v),
        lambda v: hf.reshape(v, (-1,)),
        lambda v: hf.Variable(v),
    ],
)
def test_whoever_holds_a_value_keeps_it(held):
    table, optimizer = hf.Variable(START), hf.optimizers.SGD(0.3)
    for _ in range(3):
        gradient = gradient_of(table)
        kept = held(table)
        before = np.array(kept, copy=True)
        optimizer.apply([gradient], [table])
        np.testing.assert_array_equal(np.asarray(kept), before)
        assert table.numpy()[3, 0] != before.reshape(-1)[15 if before.size == START.size else 10]


def test_a_value_stays_the_same_object_while_somebody_holds_its_memory():
    v = hf.Variable(START)
    memory = v._tensor._array
    before = id(v._tensor)
    v._reclaim()
    assert id(v._tensor) == before
    del memory
    v._reclaim()
    assert v._own is v._tensor


def test_what_a_variable_was_made_of_stays():
    given = hf.asarray(START)
    table = hf.Variable(given)
    hf.optimizers.SGD(0.3).apply([gradient_of(table)], [table])
    np.testing.assert_array_equal(given.numpy(), START)
    assert (table.numpy() != START).any()


def test_rows_are_seen_until_somebody_looks_at_the_whole():
    """As TensorFlow's slices: those of all look-ups one after another, of which the whole is the sum."""
    table = hf.Variable(START)
    with hf.GradientTape() as tape:
        loss = hf.sum(hf.take(table, INDICES, axis=0) * WEIGHTS) + hf.sum(hf.take(table, [5], axis=0))
    found = tape.gradient(loss, table)
    assert found.dense_shape == START.shape and found.values.shape == (7, COLUMNS) and found.indices.shape == (7,)
    assert parts_of(found) is not None
    again = hf.IndexedSlices(found.values, found.indices, found.dense_shape)
    whole = expected()
    whole[5] += 1
    np.testing.assert_allclose(np.asarray(again), whole, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(found), np.asarray(again))
    assert not hasattr(found, "values")


def test_gradients_of_large_tables_are_slices_to_programs_of_tensorflow():
    import hybridflow.compat.tf as tf

    found = late()
    assert isinstance(found, tf.IndexedSlices) and isinstance(found, tf.Tensor)
    np.testing.assert_array_equal(np.asarray(found), expected())
    assert not isinstance(found, tf.IndexedSlices)


@pytest.mark.parametrize("rows", [4, ROWS])
def test_compiled_functions_see_rows_of_gradients(rows):
    v = hf.Variable(START[:rows])

    @hf.function
    def parts(first, second):
        with hf.GradientTape() as tape:
            loss = hf.sum(hf.take(v, first, axis=0) * 2.0) + hf.sum(hf.take(v, second, axis=0) ** 2)
        found = tape.gradient(loss, v)
        assert hasattr(found, "values") and not hasattr(found * 2.0, "values") and not hasattr(first, "indices")
        return found.values, found.indices, found.dense_shape, found

    first, second = hf.asarray(np.array([[3, 1], [3, 0]])), hf.asarray(np.array([2]))
    values, indices, shape, whole = parts(first, second)
    assert shape == (rows, COLUMNS) and values.shape == (5, COLUMNS)
    again = np.zeros((rows, COLUMNS), np.float32)
    np.add.at(again, indices.numpy(), values.numpy())
    wanted = np.zeros((rows, COLUMNS), np.float32)
    np.add.at(wanted, first.numpy(), np.float32(2.0))
    np.add.at(wanted, second.numpy(), 2 * START[second.numpy()])
    np.testing.assert_allclose(again, wanted)
    np.testing.assert_allclose(whole, wanted)
