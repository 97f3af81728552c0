"""Functions in classes, called through native slots: the same as in Python."""

from __future__ import annotations

import functools
import gc
import os
import subprocess
import sys
import weakref
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.jit import bound_method, function as compiled
from hybridflow.runtime.calls.entry import Dispatcher
from tests.support.garbage import collect_all

_SLOT = type(int.__dict__["__add__"])


class Layer:
    """A layer with a parameter in Python."""

    def __init__(self, k: float) -> None:
        self.k = k

    @hf.function
    def scaled(self, x: Any, by: float = 1.0) -> Any:
        return x * self.k * by

    @classmethod
    @hf.function
    def of_class(cls, x: Any) -> Any:
        return x + 1.0

    @staticmethod
    @hf.function
    def of_none(x: Any) -> Any:
        return x + 2.0


class Wider(Layer):
    def twice(self, x: Any) -> Any:
        return super().scaled(x) * 2.0


@pytest.fixture(autouse=True)
def slots(native: Any) -> None:
    assert compiled._use_slots()
    assert type(Dispatcher.__dict__["__call__"]) is _SLOT and type(compiled.Function.__dict__["__get__"]) is _SLOT


def test_methods_of_several_instances() -> None:
    x = hf.asarray(np.arange(3, dtype=np.float32))
    layers = [Layer(k) for k in (1.0, 2.0, 3.0)]
    for _ in range(4):
        for layer in layers:
            assert layer.scaled(x).tolist() == [0, layer.k, 2 * layer.k]
            assert layer.scaled(x, by=2.0).tolist() == [0, 2 * layer.k, 4 * layer.k]
            assert layer.scaled(by=0.5, x=x).tolist() == [0, 0.5 * layer.k, layer.k]
        layers[1].k += 1.0
        assert layers[0].of_class(x).tolist() == Layer.of_class(x).tolist() == [1, 2, 3]
        assert layers[0].of_none(x).tolist() == Layer.of_none(x).tolist() == [2, 3, 4]
        assert Wider(2.0).twice(x).tolist() == [0, 4, 8]
        assert functools.partial(layers[2].scaled, by=2.0)(x).tolist() == [0, 6, 12]
        with pytest.raises(TypeError):
            layers[0].scaled()
        with pytest.raises(TypeError):
            layers[0].scaled(x, nonsense=1)


def test_what_is_taken_from_an_instance() -> None:
    x, layer = hf.ones(2), Layer(2.0)
    first = layer.scaled
    for _ in range(3):
        layer.scaled(x)
    taken = layer.scaled
    assert type(taken) is bound_method.BoundFunction and taken.__self__ is layer and taken == first
    assert Layer.scaled is Layer.__dict__["scaled"] and Layer.scaled.__get__(None, Layer) is Layer.scaled
    assert Layer.scaled.__get__(layer)(x).tolist() == [2, 2]
    assert isinstance(taken, Dispatcher) and callable(taken) and taken.kernels()
    with pytest.raises(TypeError):
        Layer.scaled.__get__()  # type: ignore[call-arg]


def test_calls_of_methods_leave_no_references() -> None:
    x, layer = hf.ones(2), Layer(2.0)
    for _ in range(3):
        layer.scaled(x), layer.scaled(x, by=2.0)
    own = Layer.scaled._instances.get(layer)
    watched = (layer, own, x, Layer.scaled, own._dispatch, bound_method.BoundFunction)
    counts = list(map(sys.getrefcount, watched))
    for _ in range(1000):
        layer.scaled(x), layer.scaled(x, by=2.0), layer.scaled
    assert list(map(sys.getrefcount, watched)) == counts


def test_instances_go() -> None:
    x, gone = hf.ones(2), []
    for k in range(20):
        layer = Layer(float(k))
        for _ in range(3):
            assert layer.scaled(x).tolist() == [k, k]
        gone.append(weakref.ref(layer))
    del layer
    collect_all()
    assert not any(reference() for reference in gone)
    assert Layer(7.0).scaled(x).tolist() == [7, 7]  # maybe at the place of another


def test_functions_are_taken_while_the_collector_holds_them() -> None:
    """Instances hold their functions then, and the table does not."""
    x, layer, seen = hf.ones(2), Layer(3.0), []
    for _ in range(3):
        layer.scaled(x)

    def look(phase: str, info: dict[str, int]) -> None:
        seen.append(layer.scaled(x).tolist())

    gc.callbacks.append(look)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(look)
    assert seen == [[3, 3]] * 2


def test_where_slots_cannot_be_made_methods_stay_in_python() -> None:
    program = """
import sys
sys.path.insert(0, ".")
from hybridflow.runtime.native import object_layout
object_layout.WRAPPER_KIND = 16  # where the class is
from tests.jit.test_method_slots import Layer, compiled, Dispatcher
import hybridflow as hf
x, layer = hf.ones(2), Layer(2.0)
for _ in range(5):
    assert layer.scaled(x).tolist() == [2, 2] and layer.scaled(x, by=3.0).tolist() == [6, 6]
assert not compiled._use_slots() and "built" not in repr(type(compiled.Function.__dict__["__get__"]))
print("done")
"""
    done = subprocess.run([sys.executable, "-c", program], env=dict(os.environ), capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr
