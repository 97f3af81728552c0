"""Gradients of variables that a compiled function reads, assigns and reads again: bit for bit those of eager mode.

To a tape each value of a variable is a value of its own, whoever reads it: the function before and after an assignment,
the caller before and after the call, or an argument that is such a value.
"""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf

pytestmark = pytest.mark.code

rng = np.random.default_rng(5)
STARTS = [rng.standard_normal(7).astype(np.float32) for _ in range(3)]
v, w, fixed = (hf.Variable(start) for start in STARTS)
x = hf.asarray(rng.standard_normal(7).astype(np.float32))


@hf.function
def reads_between(x):
    a = hf.tanh(v * x)
    v.assign_add(a)
    b = hf.sin(v * x) * 3.3
    v.assign(v * 0.7)
    return a * b + hf.exp(v) * 1.1


@hf.function
def adds():
    v.assign_add(w * 0.3)
    return v * w


@hf.function
def shrinks(a):
    v.assign(v * 0.9)
    return a * v * hf.sin(a)


@hf.function
def takes(a):
    v.assign(a)
    return v * a + hf.tanh(v)


@hf.function
def swaps():
    a = v.value()
    v.assign(w)
    w.assign(a)
    return a * w + v * hf.sin(w)


@hf.function
def updates(a, b):
    a.assign_add(b * 0.1)
    return a * b


@hf.function
def reads_and_returns():
    v.assign(v * w)
    between = v.value()
    v.assign_sub(w * 0.2)
    return between, v.value(), hf.sin(v) * between


@hf.function
def moves_what_is_not_trained():
    fixed.assign(fixed * 0.5 + v)
    v.assign(v * fixed)
    return v * fixed


def called_again():
    return adds() * 1.7 + adds() + hf.tanh(v) * w


def value_as_argument():
    return shrinks(v.value())


def value_as_argument_and_outside():
    old = v.value()
    return shrinks(old) * v + old


def assigned_argument():
    a = w * 2.0
    return takes(a) * a + v * takes(a)


def swapped():
    return swaps() * 1.1 + swaps() * v - w * swaps()


def variables_as_arguments():
    return updates(v, w) * updates(w, v) * updates(v, w)


def results_that_are_values():
    a, b, c = reads_and_returns()
    return a * b + c * v + hf.sin(b) * a


def several():
    return moves_what_is_not_trained() * moves_what_is_not_trained() + fixed * v


def nested():
    return hf.function(lambda: adds() * shrinks(v.value()) + v)() * v


PROGRAMS = [
    lambda: reads_between(x) * v,
    called_again,
    value_as_argument,
    value_as_argument_and_outside,
    assigned_argument,
    swapped,
    variables_as_arguments,
    results_that_are_values,
    several,
    nested,
]


def outcome(program, run):
    """What ``run`` says of the program, and the variables afterwards, compiled (twice) and eagerly."""
    found = []
    for eagerly in (True, False, False):
        for variable, start in zip((v, w, fixed), STARTS):
            variable.assign(start)
        hf.config.run_functions_eagerly(eagerly)
        try:
            results = run(program)
        finally:
            hf.config.run_functions_eagerly(False)
        results = [*results, v.value(), w.value(), fixed.value()]
        found.append([None if r is None else r.numpy().tobytes() for r in results])
    return found


def first_order(program):
    with hf.GradientTape() as tape:
        y = program()
    return tape.gradient(y, [v, w, fixed])


def chosen_only(program):
    """One variable is watched, and it is not the one that is trained."""
    with hf.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch([w, fixed])
        y = program()
    return [*tape.gradient(y, [v, w, fixed]), *tape.gradient(y, [fixed])]


def value_is_watched(program):
    """A tensor is watched that is a variable's value, and the variable is not."""
    with hf.GradientTape(watch_accessed_variables=False) as tape:
        old = v.value()
        tape.watch(old)
        y = program()
    return [*tape.gradient(y, [old, w])]


def second_order(program):
    with hf.GradientTape() as outer:
        with hf.GradientTape() as inner:
            y = program()
        g, h = inner.gradient(y, [v, w], unconnected_gradients="zero")
        z = hf.sum(g * g) + hf.sum(hf.sin(h)) + hf.sum(y)
    return outer.gradient(z, [v, w, fixed])


def after_the_tape(program):
    """What the tape holds is not overwritten by calls that it does not see."""
    with hf.GradientTape() as tape:
        y = program()
    for _ in range(3):
        program()
    return tape.gradient(y, [v, w, fixed])


@pytest.mark.parametrize("run", [first_order, chosen_only, value_is_watched, second_order, after_the_tape])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_compiled_gradients_are_those_of_eager_mode(program, run):
    eager, *compiled = outcome(program, run)
    for found in compiled:
        assert found == eager
