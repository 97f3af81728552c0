"""Training steps that look rows up: only these rows are computed and written, with the bits of an update of all."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.passes.dce import dce

ROWS, COLUMNS = 500, 7
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)

MASK = (np.arange(ROWS) < 2).astype(np.float32)[:, None]


def once(table, i):
    return hf.sum(hf.square(hf.take(table, i, axis=0)))


def twice(table, i):
    """One table read by two indices, of two ranks."""
    pairs = hf.take(table, hf.reshape(i, (-1, 2)), axis=0)
    return hf.sum(hf.sin(hf.take(table, i, axis=0))) + hf.sum(pairs * pairs[:, ::-1])


def by_subscript(table, i):
    return hf.sum(hf.exp(table[i] * 0.1))


OPTIMIZERS = {
    "sgd": lambda: hf.optimizers.SGD(0.3),
    "adagrad": lambda: hf.optimizers.Adagrad(0.3),
    "lazy adam": lambda: hf.optimizers.LazyAdam(0.1),
    "amsgrad": lambda: hf.optimizers.LazyAdam(0.1, amsgrad=True),
    "schedule": lambda: hf.optimizers.SGD(hf.optimizers.schedules.ExponentialDecay(0.3, 2, 0.5)),
}
OF_ALL = {
    "momentum": lambda: hf.optimizers.SGD(0.3, momentum=0.9),
    "adam": lambda: hf.optimizers.Adam(0.1),
    "decay": lambda: hf.optimizers.SGD(0.3, weight_decay=0.1),
    "clipped": lambda: hf.optimizers.SGD(0.3, clipnorm=0.5),
}


def training(optimizer, loss_of, compiled, dtype="float32"):
    table = hf.Variable(START.astype(dtype))

    def step(i):
        with hf.GradientTape() as tape:
            loss = loss_of(table, i)
        optimizer.apply([tape.gradient(loss, table)], [table])
        return loss

    return table, hf.function(step) if compiled else step


def text_of(step, *arguments):
    return str(step.ir(*arguments))


@pytest.mark.parametrize("loss_of", [once, twice, by_subscript])
@pytest.mark.parametrize("name", [*OPTIMIZERS, *OF_ALL])
def test_rows_are_trained_as_all_are(name, loss_of):
    made = {**OPTIMIZERS, **OF_ALL}[name]
    tables = []
    for compiled in (False, True):
        optimizer = made()
        table, step = training(optimizer, loss_of, compiled)
        for i in ([3, -1, 3, 0, 3, 499], [7, 8, 9, 10, 7, 3], [-500, 0, 0, 0, 0, 0]):
            step(hf.asarray(i))
        tables.append([table.numpy(), *(v.numpy() for v in optimizer.variables)])
    for eager, graph in zip(*tables):
        np.testing.assert_array_equal(eager, graph)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_nothing_is_computed_for_other_rows(name):
    _, step = training(OPTIMIZERS[name](), twice, True)
    step(hf.asarray([1, 2, 3, 4]))
    text = text_of(step, hf.asarray([1, 2, 3, 4]))
    whole = re.escape(f"f32[{ROWS},{COLUMNS}] = ")
    written = set(re.findall(rf"{whole}(\w+)", str(step.ir(hf.asarray([1, 2, 3, 4]), stage="optimized"))))
    assert written == {"scatter_set"}, text


@pytest.mark.parametrize("name", OF_ALL)
def test_what_changes_other_rows_computes_them(name):
    _, step = training(OF_ALL[name](), once, True)
    step(hf.asarray([1, 2, 3]))
    assert "scatter_set" not in text_of(step, hf.asarray([1, 2, 3]))


def test_many_rows_are_updated_at_once():
    _, step = training(hf.optimizers.SGD(0.3), once, True)
    many = hf.arange(ROWS)
    step(many)
    assert "scatter_set" not in text_of(step, many)


def test_any_number_of_rows():
    tables = []
    for compiled in (False, True):
        table, step = training(hf.optimizers.Adagrad(0.3), once, compiled)
        for count in (1, 2, 5, 9, 30, 0, 17):
            step(hf.asarray(np.arange(count, dtype=np.int32) * 11 % 83))
        tables.append(table.numpy())
    np.testing.assert_array_equal(*tables)


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_dtypes(dtype):
    dtype = hf.bfloat16 if dtype == "bfloat16" else hf.float64
    tables = []
    for compiled in (False, True):
        table, step = training(hf.optimizers.SGD(0.3), twice, compiled, dtype)
        for _ in range(2):
            step(hf.asarray([3, 4, 3, 499]))
        tables.append(hf.astype(table, hf.float64).numpy())
    np.testing.assert_array_equal(*tables)


def test_a_wrong_index_leaves_everything_as_it_was():
    optimizer = hf.optimizers.Adagrad(0.3)
    table, step = training(optimizer, once, True)
    step(hf.asarray([1, 2, 2]))
    before = [table.numpy(), *(v.numpy() for v in optimizer.variables)]
    with pytest.raises(errors.IndexRangeError, match="out of range"):
        step(hf.asarray([1, 2, ROWS]))
    for x, y in zip(before, [table.numpy(), *(v.numpy() for v in optimizer.variables)]):
        np.testing.assert_array_equal(x, y)
    step(hf.asarray([1, 2, 2]))


def test_the_layer_and_a_gradient_that_is_used_twice():
    found = []
    for compiled in (False, True):
        layer = hf.layers.Embedding(ROWS, COLUMNS)
        layer(hf.asarray([0]))
        (table,) = layer.variables
        table.assign(START)
        optimizer = hf.optimizers.SGD(0.5)

        def step(i, layer=layer, table=table, optimizer=optimizer):
            with hf.GradientTape() as tape:
                loss = hf.sum(hf.square(layer(i)))
            gradient = tape.gradient(loss, table)
            optimizer.apply([gradient], [table])
            return hf.sum(gradient, axis=0)

        run = hf.function(step) if compiled else step
        sums = [run(hf.asarray([[5, 6], [6, 499]])).numpy() for _ in range(2)]
        found.append((table.numpy(), *sums))
    for x, y in zip(*found):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("amsgrad", [False, True])
def test_lazy_adam_is_adam_on_what_is_looked_up(amsgrad):
    """Rows that are looked up in each step are trained as Adam trains them, and no others."""
    found = []
    for kind in (hf.optimizers.Adam, hf.optimizers.LazyAdam):
        for compiled in (False, True):
            optimizer = kind(0.1, amsgrad=amsgrad)
            table, step = training(optimizer, once, compiled)
            for _ in range(4):
                step(hf.asarray([3, 499, 3]))
            found.append([table.numpy(), *(v.numpy() for v in optimizer.variables[2:])])
    for adam, _, *lazy in zip(*found):
        for each in lazy:
            np.testing.assert_array_equal(each, adam)


def test_lazy_adam_leaves_alone_what_has_a_gradient_of_0():
    """Whether the gradient is known to be rows, or is a tensor with zeros, or of a scalar."""
    for loss_of in (once, lambda table, i: hf.sum(table * table * hf.asarray(MASK))):
        for compiled in (False, True):
            optimizer = hf.optimizers.LazyAdam(0.1)
            table, step = training(optimizer, loss_of, compiled)
            step(hf.asarray([0, 1]))
            before = [v.numpy() for v in optimizer.variables[2:]]
            step(hf.asarray([0, 1]))
            assert (table.numpy()[2:] == START[2:]).all() and (table.numpy()[:2] != START[:2]).all()
            assert all((v.numpy()[:2] != b[:2]).all() for v, b in zip(optimizer.variables[2:], before))
            assert not any(v.numpy()[2:].any() for v in optimizer.variables[2:])
    scalar = hf.Variable(2.0)
    hf.optimizers.LazyAdam(0.5).apply([hf.asarray(3.0)], [scalar])
    assert scalar.item() == pytest.approx(1.5)


def test_the_rule_of_a_subclass_counts():
    class Signs(hf.optimizers.SGD):
        def update_step(self, gradient, variable, learning_rate):
            self.assign_sub(variable, learning_rate * (hf.sign(gradient) + 1.0))

    tables = []
    for compiled in (False, True):
        table, step = training(Signs(0.5), once, compiled)
        step(hf.asarray([1, 2]))
        tables.append(table.numpy())
    np.testing.assert_array_equal(*tables)
    assert (tables[0][400] != START[400]).all()


def test_rows_are_set():
    x = hf.zeros((4, 2))
    rows = hf.asarray([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    from hybridflow.eager.dispatch import apply

    found = apply(TABLE["scatter_set"], x, hf.asarray([2, -4, 2]), rows, axis=0)
    assert found.tolist() == [[3, 4], [0, 0], [5, 6], [0, 0]]


def test_a_second_look_at_indices_goes():
    graph = parse(
        """graph f(%0: f32[9,2] "x", %1: i64[3] "i", %2: f32[3,2] "u", %3: f32[8,2] "y") {
  %4: f32[3,2] = take(%0, %1) {axis=0}
  %5: f32[9,2] = scatter_add(%0, %1, %2) {axis=0}
  %6: f32[3,2] = take(%3, %1) {axis=0}
  return %4
}
""",
        TABLE,
    )
    assert [node.op.name for node in dce(graph).nodes] == ["take", "take"]
    first = parse(
        """graph f(%0: f32[9,2] "x", %1: i64[3] "i", %2: f32[3,2] "u") {
  %3: f32[9,2] = scatter_add(%0, %1, %2) {axis=0}
  %4: f32[3,2] = take(%0, %1) {axis=0}
  return %4
}
""",
        TABLE,
    )
    assert [node.op.name for node in dce(first).nodes] == ["scatter_add", "take"]  # the first to fail is its
