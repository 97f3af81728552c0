"""hf.function: signatures, binding, nesting, state, methods, derivatives, lifetime."""

import copy
import dataclasses
import functools
import gc
import logging
import pickle
import sys
import weakref
from types import FrameType
from typing import NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.core.context import tracing
from hybridflow.errors import (
    ArgumentError,
    ArgumentTypeError,
    DTypeError,
    ShapeError,
    TraceError,
)
from hybridflow.tracing.trace import Trace


def tensor(values, dtype=np.float64):
    return hf.asarray(np.asarray(values, dtype))


def same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def traces_of(f):
    return len(f.signatures())


# Binding and signatures


def test_one_trace_per_shape_and_dtype(traced):
    @hf.function
    def f(x):
        return x + x

    for _ in range(3):
        assert same_bits(f(tensor([1.0, 2.0])), [2.0, 4.0])
    f(tensor([1.0]))
    f(tensor([1.0, 2.0], np.float32))
    assert [str(key.leaves[0]) for key in traced.keys] == ["f64[2]", "f64[1]", "f32[2]"]
    assert [row["hits"] for row in f.signatures()] == [2, 0, 0]


def test_positions_keywords_and_defaults_are_one_call():
    @hf.function
    def f(a, b=2.0, *, c=3.0):
        return a * b + c

    x = tensor([1.0])
    for call in (lambda: f(x), lambda: f(x, 2.0), lambda: f(a=x, b=2.0), lambda: f(x, c=3.0, b=2.0)):
        assert same_bits(call(), [5.0])
    assert traces_of(f) == 1
    with pytest.raises(ArgumentTypeError, match="missing a required argument: 'a'"):
        f()
    with pytest.raises(TypeError, match="too many positional"):
        f(x, x, x)


def test_variadic_parameters():
    @hf.function
    def f(x, *more, scale=1.0, **named):
        total = x
        for value in (*more, *named.values()):
            total = total + value
        return total * scale

    x = tensor([1.0])
    assert same_bits(f(x, x, x, scale=2.0, a=x), [8.0])
    assert same_bits(f(x, a=x, b=x), f(x, b=x, a=x))


class Pair(NamedTuple):
    left: object
    right: object


@dataclasses.dataclass(frozen=True)
class Batch:
    x: object
    n: int = 1


def test_nested_arguments_and_results():
    @hf.function
    def f(batch, pair, data):
        out = {"sum": batch["x"][0] + batch["x"][1], "none": None, "text": "t", "flag": True}
        return out, [Pair(pair.right, pair.left), (data.x * data.n,)], Batch(pair.left, 7)

    x, y = tensor([1.0]), tensor([2.0])
    out, listed, batch = f({"x": [x, y]}, Pair(x, y), Batch(y, 5))
    assert same_bits(out["sum"], [3.0]) and out["none"] is None and out["text"] == "t" and out["flag"] is True
    assert list(out) == ["sum", "none", "text", "flag"]
    assert isinstance(listed[0], Pair) and same_bits(listed[0].left, [2.0]) and same_bits(listed[1][0], [10.0])
    assert isinstance(batch, Batch) and batch.n == 7 and same_bits(batch.x, [1.0])


def test_structure_decides():
    @hf.function
    def f(values):
        return sum(values.values()) if isinstance(values, dict) else sum(values)

    x = tensor([1.0])
    f({"a": x, "b": x})
    f({"a": x, "b": x})
    assert traces_of(f) == 1
    f({"b": x, "a": x})
    f([x, x])
    f((x, x))
    f([x, x, x])
    assert traces_of(f) == 5


def test_numpy_arrays_are_tensors():
    @hf.function
    def f(x):
        return x * 2.0, x

    array = np.arange(3.0)
    doubled, same = f(array)
    assert same_bits(doubled, [0.0, 2.0, 4.0])
    array[0] = 99.0
    assert same_bits(same, [0.0, 1.0, 2.0])  # a result never sees what happens to the caller's array
    f(tensor(array))
    f(array[::-1])
    assert traces_of(f) == 1
    f(np.float32(3.0))
    f(np.float32(4.0))
    assert traces_of(f) == 2


def test_tensors_handed_through_are_the_same_object():
    f = hf.function(lambda x: (x, x))
    x = tensor([1.0])
    a, b = f(x)
    assert a is x and b is x


def test_results_that_hold_no_tensor():
    f = hf.function(lambda x: None)
    assert f(tensor([1.0])) is None
    constant = tensor([5.0])
    g = hf.function(lambda: constant)
    assert g() is constant
    array = np.zeros(2)
    h = hf.function(lambda: array)
    h()[0] = 1.0
    assert h()[0] == 0.0


def test_objects_are_told_apart_by_identity_and_not_kept_alive():
    class Config:
        factor = 2.0

    @hf.function
    def f(x, config):
        return x * config.factor

    one, two = Config(), Config()
    two.factor = 3.0
    x = tensor([1.0])
    assert same_bits(f(x, one), [2.0]) and same_bits(f(x, two), [3.0]) and same_bits(f(x, one), [2.0])
    reference = weakref.ref(one)
    del one
    gc.collect()
    assert reference() is None
    for factor in range(5):  # objects at the address of one that is gone are new objects
        config = Config()
        config.factor = float(factor)
        assert same_bits(f(x, config), [float(factor)])
        del config


@pytest.mark.parametrize("bad", [{1, 2}, bytearray(b"x"), object()])
def test_arguments_that_cannot_be_keys_name_their_path(bad):
    f = hf.function(lambda batch: 0)
    with pytest.raises(ArgumentTypeError, match=r'batch\["x"\]\[1\] is a '):
        f({"x": [1, bad]})


def test_variables_as_arguments():
    @hf.function
    def f(v, x):
        v.assign_add(x)
        return v * 2.0

    a, b = hf.Variable(tensor(1.0)), hf.Variable(tensor(10.0))
    assert float(f(a, tensor(1.0))) == 4.0 and float(f(b, tensor(1.0))) == 22.0 and float(f(a, tensor(1.0))) == 6.0
    assert float(a) == 3.0 and float(b) == 11.0
    assert traces_of(f) == 2
    reference = weakref.ref(a)
    del a
    gc.collect()
    assert reference() is None


def test_input_signature_makes_one_trace():
    @hf.function(input_signature=[hf.TensorSpec((2,), "float32"), {"n": hf.TensorSpec((), "int32")}])
    def f(x, options, flag=True):
        return x * options["n"].astype(hf.float32) if flag else x

    assert same_bits(f([1.0, 2.0], {"n": 3}), np.array([3, 6], np.float32))
    assert same_bits(f(tensor([1.0, 2.0], np.float32), {"n": 4}), np.array([4, 8], np.float32))
    assert traces_of(f) == 1
    with pytest.raises(DTypeError, match=r"x is f64\[2\]; the input_signature says f32\[2\]"):
        f(tensor([1.0, 2.0]), {"n": 1})
    with pytest.raises(ShapeError, match=r"x is f32\[3\]"):
        f([1.0, 2.0, 3.0], {"n": 1})
    with pytest.raises(ArgumentTypeError, match="options is a float"):
        f([1.0, 2.0], 5.0)
    assert "x: f32[2]" in repr(f.get_concrete_function())
    with pytest.raises(ArgumentTypeError, match="TensorSpec"):
        hf.function(input_signature=[3])(lambda x: x)


def test_an_open_extent_in_the_input_signature():
    @hf.function(input_signature=[hf.TensorSpec((None, 3), "float64")])
    def f(x):
        return hf.sum(x * 2.0, axis=1)

    for n in (1, 2, 5):
        x = np.arange(n * 3.0).reshape(n, 3)
        np.testing.assert_allclose(f(x), (x * 2).sum(1))
    assert traces_of(f) == 2  # 1, and what is more


def test_concrete_functions_check_strictly():
    @hf.function
    def f(x, n, scale=2.0):
        return x * n * scale

    concrete = f.get_concrete_function(hf.TensorSpec((3,), "float64"), 4)
    x = tensor([1.0, 2.0, 3.0])
    assert same_bits(concrete(x, 4), [8.0, 16.0, 24.0])
    assert f.get_concrete_function(x, n=4) is concrete
    f(x, 4)
    assert traces_of(f) == 1
    with pytest.raises(ShapeError, match=r"x is f64\[2\]; this concrete function takes f64\[3\]"):
        concrete(tensor([1.0, 2.0]), 4)
    with pytest.raises(DTypeError, match="float32"):
        concrete(tensor([1.0, 2.0, 3.0], np.float32), 4)
    with pytest.raises(ArgumentTypeError, match="n is 5; this concrete function takes int 4"):
        concrete(x, 5)
    with pytest.raises(ArgumentTypeError, match="nested"):
        concrete([x], 4)
    outer = hf.function(lambda x: concrete(x, 4) + 1.0)
    assert same_bits(outer(x), [9.0, 17.0, 25.0])


def test_concrete_functions_know_what_is_no_tensor():
    """As TensorFlow's do, they take what was given when they were made, or the tensors alone, by place or by name."""

    @hf.function
    def f(a, mode, b, /, k=2, *rest, scale=1.0, **more):
        out = a + b if mode == "add" else a - b
        return sum(rest, out * k * scale) + sum(more.values(), 0.0)

    x, y = tensor([1.0, 2.0]), tensor([10.0, 20.0])
    c = f.get_concrete_function(x, "sub", y, 3)
    wanted = [-27.0, -54.0]
    calls = [
        lambda: c(x, "sub", y),
        lambda: c(x, "sub", y, 3, scale=1.0),
        lambda: c(x, y),
        lambda: c(a=x, b=y),
        lambda: c(x, b=y),
        lambda: c(b=y, a=x),
    ]
    for call in calls:
        assert same_bits(call(), wanted)
    outer = hf.function(lambda x, y: c(x, y) + 1.0)
    assert same_bits(outer(x, y), [-26.0, -53.0])
    spec = hf.TensorSpec((2,), "float64")
    assert c.structured_input_signature == ((spec, "sub", spec, 3), {"scale": 1.0})
    assert [s.name for s in c.structured_input_signature[0] if isinstance(s, hf.TensorSpec)] == ["a", "b"]

    wrong = [
        (lambda: c(x), "missing a required argument: 'b'"),
        (lambda: c(x, "add", y), "mode is 'add'; this concrete function takes str 'sub'"),
        (lambda: c(x, "sub", y, 3, y), "nested"),
        (lambda: c(x, y, a=x), "missing a required argument: 'b'"),
        (lambda: c(x, c=y), "missing a required argument: 'b'"),
        (lambda: c([x], y), "missing a required argument: 'b'"),
        (lambda: c(x, y, scale=2.0), "missing a required argument: 'b'"),
    ]
    for call, text in wrong:
        with pytest.raises(ArgumentTypeError, match=text):
            call()

    spec = hf.TensorSpec(["n"], "float64", "left")
    d = f.get_concrete_function(spec, "add", hf.TensorSpec(["n"], "float64"), 1, spec, z=spec)
    assert same_bits(d(x, y, x, x), [13.0, 26.0])
    assert same_bits(d(left=x, b=y, rest_0=x, more_z=x), [13.0, 26.0])
    assert same_bits(d(tensor([1.0]), y[:1], x[:1], x[:1]), [13.0])  # an extent of 1 has a program of its own
    args, kwargs = d.structured_input_signature
    assert [s.name for s in (args[0], args[2], args[4], kwargs["z"])] == ["left", "b", "rest_0", "more_z"]


def test_concrete_functions_of_objects_and_structures():
    class Owner:
        def __init__(self):
            self.scale = 3.0

        @hf.function
        def scaled(self, x, n):
            return x["a"] * x["b"][0] * n * self.scale

    class Kind:
        factor = 5.0

    owner, kind, x, y = Owner(), Kind(), tensor([1.0, 2.0]), tensor([4.0, 5.0])
    c = owner.scaled.get_concrete_function({"b": (y,), "a": x}, 2)
    assert same_bits(c({"a": x, "b": (y,)}), [24.0, 60.0])
    assert same_bits(c(x, y), [24.0, 60.0])  # in the order of sorted keys
    assert same_bits(c(x_a=x, x_b_0=y), [24.0, 60.0])
    d = hf.function(lambda x, kind: x * kind.factor).get_concrete_function(x, kind)
    assert same_bits(d(x), [5.0, 10.0])
    assert same_bits(d(x, kind), [5.0, 10.0])
    del kind
    gc.collect()
    with pytest.raises(ArgumentTypeError, match="missing a required argument: 'kind'"):
        d(x)
    e = hf.function(lambda q: q, input_signature=[hf.TensorSpec([None], "float64", "named")]).get_concrete_function()
    assert same_bits(e(named=x), e(q=x))


def test_any_callable():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor

    x = tensor([1.0, 2.0])
    assert same_bits(hf.function(Scale(3.0))(x), [3.0, 6.0])
    assert same_bits(hf.function(functools.partial(lambda a, b: a - b, x))(x), [0.0, 0.0])
    assert hf.function(hf.add)(x, x).shape == (2,)
    named = hf.function(lambda x: x, name="identity")
    assert repr(named) == "<function identity: 0 traces, 0 hits>"
    with pytest.raises(ArgumentTypeError, match="not callable"):
        hf.function(3)
    with pytest.raises(ArgumentError, match="cache_size"):
        hf.function(lambda: 0, cache_size=0)


def test_metadata_is_the_functions_own():
    @hf.function
    def documented(x: int) -> int:
        """What it does."""
        return x

    assert documented.__name__ == "documented" and documented.__doc__ == "What it does."
    assert documented.python_function.__name__ == "documented"


# Methods


class Model:
    def __init__(self, weight):
        self.w = hf.Variable(tensor(weight))

    @hf.function
    def scaled(self, x, factor=1.0):
        return self.w * x * factor

    @staticmethod
    @hf.function
    def double(x):
        return x * 2.0


def test_methods_have_one_cache_per_instance():
    a, b = Model(2.0), Model(3.0)
    x = tensor([1.0])
    assert same_bits(a.scaled(x), [2.0]) and same_bits(b.scaled(x), [3.0]) and same_bits(a.scaled(x, factor=2.0), [4.0])
    assert traces_of(a.scaled) == 2 and traces_of(b.scaled) == 1
    assert a.scaled == a.scaled and a.scaled != b.scaled
    assert same_bits(Model(5.0).scaled(x), [5.0])  # an instance that only the call holds
    assert same_bits(Model.scaled(a, x), [2.0]) and same_bits(Model.double(x), [2.0])


def test_methods_do_not_keep_their_instance():
    model = Model(2.0)
    model.scaled(tensor([1.0]))
    reference = weakref.ref(model)
    method = model.scaled
    del model
    gc.collect()
    assert same_bits(method(tensor([1.0])), [2.0])  # a bound method does, as in Python
    del method
    gc.collect()
    assert reference() is None


def test_methods_of_slotted_classes_say_what_is_missing():
    class Slotted:
        __slots__ = ()

        @hf.function
        def f(self, x):
            return x

    with pytest.raises(ArgumentTypeError, match="__weakref__"):
        Slotted().f(1.0)


# State


def test_reads_and_writes_happen_in_order():
    v = hf.Variable(tensor(0.0))

    @hf.function
    def f():
        first = v + 0.0
        v.assign_add(1.0)
        second = v + 0.0
        v.assign_add(10.0)
        return first, second, v.value()

    assert [float(x) for x in f()] == [0.0, 1.0, 11.0]
    assert [float(x) for x in f()] == [11.0, 12.0, 22.0]
    v.assign(5.0)
    assert [float(x) for x in f()] == [5.0, 6.0, 16.0] and float(v) == 16.0


def adding(v, delta):
    v.assign_add(delta)


def test_values_read_before_an_update_do_not_change():
    v = hf.Variable(tensor([1.0, 2.0]))
    step = hf.function(lambda: adding(v, [1.0, 1.0]))
    before, view = v.value(), v.numpy()
    for _ in range(3):
        step()
    assert same_bits(before, [1.0, 2.0]) and same_bits(view, [1.0, 2.0]) and same_bits(v.value(), [4.0, 5.0])


def test_updates_happen_in_place_when_nobody_can_see_it():
    v = hf.Variable(np.zeros(64))
    step = hf.function(lambda: adding(v, np.ones(64)))
    step()
    step()
    address = v._tensor._array.ctypes.data
    step()
    assert v._tensor._array.ctypes.data == address
    held = v.value()
    step()
    assert v._tensor._array.ctypes.data != address and float(held[0]) == 3.0


def test_a_failing_trace_leaves_nothing_behind():
    fail = [True]
    v = hf.Variable(tensor(1.0))

    @hf.function
    def f(x):
        v.assign_add(1.0)
        if fail[0]:
            raise ValueError("in the body")
        return x + v

    for _ in range(2):
        with pytest.raises(ValueError, match="in the body"):
            f(tensor(1.0))
    assert traces_of(f) == 0 and float(v) == 1.0
    fail[0] = False
    assert float(f(tensor(1.0))) == 3.0
    assert same_bits(tensor(1.0) + tensor(1.0), 2.0)  # and eager code runs as before


def test_variables_made_in_the_body_are_made_once():
    class Lazy:
        def __init__(self):
            self.w = None
            self.runs = 0

        @hf.function
        def call(self, x):
            self.runs += 1
            if self.w is None:
                self.w = hf.Variable(hf.random.normal((2,), dtype=hf.float64))
            return self.w * x

    layer = Lazy()
    one = layer.call(tensor(1.0))
    assert same_bits(one, layer.w.value()) and layer.runs == 2
    assert same_bits(layer.call(tensor([2.0, 2.0])), layer.w.value() * 2.0)


def test_random_numbers_go_on_after_a_variable_was_made():
    results = []
    for wrap in (lambda f: f, hf.function):
        holder = []
        run = wrap(functools.partial(body_of, holder))
        hf.random.set_seed(3)
        results.append([np.asarray(x) for x in (*run(), *run())])
    for a, b in zip(*results):
        assert same_bits(a, b)


def body_of(holder):
    if not holder:
        holder.append(hf.Variable(hf.random.normal((2,))))
        holder.append(hf.Variable(hf.random.normal((3,))))
    return holder[0].value(), holder[1].value(), hf.random.uniform((2,))


def test_variables_made_again_are_an_error():
    @hf.function
    def f(x):
        v = hf.Variable(tensor(0.0))
        v.assign_add(x)
        return v.value()

    with pytest.raises(TraceError, match=r"makes a variable each time.*if self.v is None.*test_function.py:"):
        f(tensor(1.0))

    @hf.function
    def g(x):
        holder.append(hf.Variable(x))
        return x

    holder = []
    with pytest.raises(TraceError, match="initial value depends on the argument x of g"):
        g(tensor(1.0))


# Captures, nesting, eager


def test_captured_tensors_are_inputs_and_not_literals():
    big = tensor(np.arange(10000.0))
    f = hf.function(lambda x: x + big + big)
    assert same_bits(f(big), big.numpy() * 3)
    (concrete,) = f.concrete_functions()
    assert concrete.captures == (big,)


def test_nested_functions_are_inlined():
    v = hf.Variable(tensor(1.0))

    @hf.function
    def inner(x, k):
        v.assign_add(1.0)
        return x * k + v

    @hf.function
    def outer(x):
        return inner(x, 2.0) + inner(x, k=3.0)

    assert float(outer(tensor(1.0))) == 2 + 2 + 3 + 3 and float(v) == 3.0
    assert traces_of(inner) == 0
    assert float(inner(tensor(1.0), 2.0)) == 6.0


def test_run_functions_eagerly():
    runs = []

    @hf.function
    def f(x):
        runs.append(isinstance(x, hf.Tensor) and type(x) is hf.Tensor)
        return x + 1.0

    hf.config.run_functions_eagerly(True)
    try:
        f(tensor(1.0))
        f(tensor(1.0))
    finally:
        hf.config.run_functions_eagerly(False)
    assert runs == [True, True] and traces_of(f) == 0
    f(tensor(1.0))
    assert runs == [True, True, False]


def test_tensors_left_outside_are_refused_by_strict_functions_and_others_run_eagerly(caplog):
    leaked = [1.0]

    def leaky(x):
        leaked.append(x * 2.0)
        return x

    with pytest.raises(TraceError, match=r"left in leaked, which outlives the call.*test_function.py:\d+"):
        hf.function(leaky, strict=True)(tensor(1.0))
    assert leaked == [1.0]
    with caplog.at_level("WARNING", logger="hybridflow"):
        f = hf.function(leaky)
        for value in (1.0, 2.0, 3.0):
            f(tensor(value))
    assert [float(x) for x in leaked] == [1.0, 2.0, 4.0, 6.0]
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "leaky runs eagerly: it calls leaked.append, which each call has to repeat (test_function.py:"
    )


def test_leaked_tensors_say_where_they_were_made():
    leaked = []
    forgotten = Trace("leaky")
    with tracing(forgotten):
        leaked.append(forgotten.argument(tensor(1.0).type, "x") * 2.0)

    @hf.function
    def user(x):
        return x + leaked[0]

    with pytest.raises(
        TraceError, match=r"made by multiply at test_function.py:\d+\) leaked out of the trace of leaky"
    ):
        user(tensor(1.0))
    with pytest.raises(TraceError, match="trace"):
        leaked[0] + 1.0
    with pytest.raises(TraceError, match=r"x is .*trace that is over"):
        user(leaked[0])


# The cache


def test_the_cache_is_bounded_and_drops_the_least_recently_used():
    @hf.function(cache_size=2, reduce_retracing=False)
    def f(x, n):
        return x + n

    x = tensor(1.0)
    f(x, 1), f(x, 2), f(x, 1), f(x, 3)
    assert [row["inputs"] for row in f.signatures()] == ["x: f64[], n: int 1", "x: f64[], n: int 3"]
    f.cache_clear()
    assert traces_of(f) == 0 and float(f(x, 1)) == 2.0


def test_plain_calls_are_answered_natively():
    v = hf.Variable(tensor(2.0))

    @hf.function(cache_size=2, reduce_retracing=False)
    def f(x, n=1.0, flag=None):
        return x * n * v

    x = tensor([1.0, 2.0])
    for _ in range(4):
        assert same_bits(f(x), [2.0, 4.0]) and same_bits(f(x, 2.0), [4.0, 8.0]) and same_bits(f(x, n=2.0), [4.0, 8.0])
    assert len(f._dispatch) == 3 and sum(s.calls for s in f._dispatch) == 9
    assert [row["hits"] for row in f.signatures()] == [3, 7]
    v.assign(3.0)
    assert same_bits(f(x), [3.0, 6.0])
    f(x, 5.0)
    kept = [row["inputs"] for row in f.signatures()]
    assert len(kept) == 2 and kept[1] == "x: f64[2], n: float 5.0, flag: None"
    assert len(f._dispatch) in (2, 3)  # without the shortcuts of the signature that was dropped
    assert same_bits(f(x, -0.0), x.numpy() * -0.0)
    f.cache_clear()
    assert f._dispatch == ()


def test_calls_that_need_python_go_there():
    @hf.function
    def f(value):
        return value * 2.0

    for _ in range(3):
        assert same_bits(f(np.ones(2, ">f8")), [2.0, 2.0])
    assert sum(call.calls for call in f._dispatch) == 0
    g = hf.function(lambda x: x * 2.0)
    x = tensor([1.0, 2.0, 3.0])
    for _ in range(2):
        g(x)
    reversed_view = hf.asarray(np.arange(6.0))[::2]
    assert same_bits(g(reversed_view), [0.0, 4.0, 8.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    assert same_bits(tape.gradient(y, x), [2.0, 2.0, 2.0])
    outer = hf.function(lambda x: g(x) + 1.0)
    assert same_bits(outer(x), [3.0, 5.0, 7.0])


def test_everything_is_freed_with_the_function():
    def make():
        big = tensor(np.ones(1000))
        v = hf.Variable(tensor(1.0))
        f = hf.function(lambda x: x * big + v)
        with hf.GradientTape() as tape:
            y = f(big)
        tape.gradient(y, v)
        (concrete,) = f.concrete_functions()
        return f, [weakref.ref(concrete), weakref.ref(concrete.staged), weakref.ref(v), weakref.ref(big)]

    f, references = make()
    gc.collect()
    assert all(r() is not None for r in references)
    del f
    gc.collect()
    assert [r() for r in references] == [None] * 4


# Retraces and introspection


def test_retraces_say_which_argument_and_what_to_do():
    @hf.function
    def step(batch, n=1):
        return batch["x"] * n

    step({"x": tensor([1.0])})
    step({"x": tensor([1.0, 2.0])})
    step({"x": tensor([1.0, 2.0])}, 2)
    step({"x": tensor([1.0, 2.0], np.float32)}, 2)
    step({"x": [1, 2]}, 2)
    shape, value, dtype, structure = step.retraces()
    assert (shape.argument, shape.old, shape.new) == ('batch["x"]', "f64[1]", "f64[2]")
    assert "input_signature" in shape.suggestion and "test_function.py:" in shape.where and shape.trace_ms > 0
    assert (value.argument, value.old, value.new) == ("n", "int 1", "int 2") and "hf.constant" in value.suggestion
    assert (dtype.old, dtype.new) == ("f64[2]", "f32[2]") and "hf.astype" in dtype.suggestion
    assert (structure.argument, structure.old, structure.new) == ('batch["x"]', "a single value", "list of 2")
    assert "step at test_function.py:" in str(value)


def test_repr_says_how_many_calls_ago_the_last_retrace_was():
    f = hf.function(lambda x: x * 2, cache_size=1)  # calls of traces that were dropped count too
    said = []

    def look(*shapes: tuple[int, ...]) -> None:
        for shape in shapes:
            f(hf.ones(shape))
        said.append(repr(f).partition("last retrace ")[2].partition(" (")[0])

    look((2,), (2,), (2,))
    look((3, 2))
    look((3, 2), (3, 2))
    f.explain(hf.ones((2, 2, 2)))  # which traces without a call
    look()
    look((2, 2, 2))
    look((1, 1), (1, 1, 1, 1))
    assert said == ["", "just now", "2 calls ago", "just now", "1 call ago", "just now"]
    f.cache_clear()
    assert "retrace" not in repr(f)


def test_the_third_retrace_of_one_cause_warns(caplog):
    @hf.function(reduce_retracing=False)
    def f(x, n):
        return x + n

    x = tensor(1.0)
    with caplog.at_level(logging.WARNING, logger="hybridflow"):
        for n in range(3):
            f(x, n)
        assert not caplog.records
        for n in range(3, 9):
            f(x, n)
    (record,) = caplog.records
    assert "value of argument n changes" in record.getMessage() and "hf.constant" in record.getMessage()


def test_retraces_for_what_is_read_from_outside_name_it(caplog):
    held = {}
    f = hf.function(lambda x: x + held["offset"])
    x = tensor([1.0, 2.0])
    with caplog.at_level(logging.WARNING, logger="hybridflow"):
        for value in range(4):
            held["offset"] = tensor([value, 2.0])
            assert f(x)[0] == value + 1
    (record,) = caplog.records
    text = record.getMessage()
    assert 'because held["offset"], which is read from outside, changes' in text
    assert "tensor f64[2] → another one" in text and "0x" not in text


def test_repr_and_tables():
    @hf.function
    def step(x):
        return x * 2.0

    step(
        tensor(
            np.ones((31, 8)),
        )
    )
    step(tensor(np.ones((32, 8))))
    step(tensor(np.ones((32, 8))))
    assert repr(step) == ("<function step: 2 traces, 1 hit, last retrace 1 call ago (x: f64[31,8] → f64[?,8])>")
    table = repr(step.signatures()).splitlines()
    assert table[0].split() == ["id", "inputs", "outputs", "hits", "trace", "ms", "compile", "ms"]
    assert table[2].startswith("1   x: f64[?,8]   f64[x0,8]  1")


def test_ir_and_explain():
    v = hf.Variable(tensor(2.0), name="weight")

    @hf.function
    def f(x):
        return x * v

    x = tensor([1.0, 2.0])
    text = f.ir(x)
    assert "multiply" in text and "weight" in text and "test_function.py:" in text
    with pytest.raises(ArgumentError, match="the stages are"):
        f.ir(x, stage="cooked")
    explanation = f.explain(x)
    assert explanation.variables == ("weight: f64[]",) and explanation.operations >= 1
    assert "concrete function f(x: f64[2]) -> f64[2]" in str(explanation)
    assert any(row["kind"] == "state" and row["name"] == "weight" for row in f.memory_plan(x))
    assert len(f.kernels(x)) == len(explanation.kernels)


# Derivatives


def nth_gradient(f, n):
    if n == 0:
        return f

    def g(x):
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = nth_gradient(f, n - 1)(x)
        return tape.gradient(y, x)

    return g


def body(x):
    return hf.sum(hf.tanh(x) * x * x + hf.exp(-x)), hf.max(x)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_compiled_functions_equal_eager_ones(order):
    x = tensor([0.3, -1.2, 2.0])
    eager = nth_gradient(lambda x: body(x)[0], order)(x)
    compiled = hf.function(body)
    assert same_bits(nth_gradient(lambda x: compiled(x)[0], order)(x), eager)
    inside = hf.function(nth_gradient(lambda x: body(x)[0], order))
    assert same_bits(inside(x), eager)
    both = hf.function(nth_gradient(lambda x: body(x)[0], order - 1))
    assert same_bits(nth_gradient(both, 1)(x), eager)
    steps = np.eye(3) * 1e-5
    lower = nth_gradient(lambda x: body(x)[0], order - 1)
    numeric = [float(hf.sum(lower(hf.asarray(x.numpy() + s)) - lower(hf.asarray(x.numpy() - s)))) / 2e-5 for s in steps]
    np.testing.assert_allclose(eager, numeric, rtol=1e-5, atol=1e-6)


def test_shared_inputs_add_up_in_the_eager_order():
    rng = np.random.default_rng(1)
    x, w = tensor(rng.normal(size=7)), hf.Variable(rng.normal(size=7))

    def layer(a, b):
        return hf.sin(a * w) * b + hf.exp(b * 0.3) * a + w * 0.7

    def model(f):
        with hf.GradientTape() as tape:
            tape.watch(x)
            early = hf.tanh(x * w) * w
            y = hf.sum(f(f(x, x), x) * f(early, x) + x * w * 0.1)
        return tape.gradient(y, [x, w])

    for eager, compiled in zip(model(layer), model(hf.function(layer))):
        assert same_bits(eager, compiled)


def test_unused_outputs_cost_no_zeros():
    # sqrt has an infinite derivative at 0: a cotangent of zeros for the unused output would make it NaN
    f = hf.function(lambda x: (hf.sum(x), hf.sum(hf.sqrt(x))))
    x = tensor([0.0, 4.0])
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        total, _ = f(x)
    assert same_bits(tape.gradient(total, x), [1.0, 1.0])


def test_variables_through_compiled_functions():
    w, frozen = hf.Variable(tensor([1.0, 2.0])), hf.Variable(tensor(3.0), trainable=False)
    f = hf.function(lambda x: hf.sum(w * w * x) * frozen)
    x = tensor([5.0, 7.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert tape.watched_variables() == (w,)
    gw, gx, gf = tape.gradient(y, [w, x, frozen])
    assert same_bits(gw, [30.0, 84.0]) and same_bits(gx, [3.0, 12.0]) and gf is None


def test_state_changes_between_forward_and_backward():
    v = hf.Variable(tensor(3.0))

    def f(x):
        y = v * x
        v.assign(v * x)
        return y + v * 10.0

    results = []
    for g in (f, hf.function(f)):
        v.assign(3.0)
        x = tensor(2.0)
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = g(x)
        v.assign(100.0)
        gx, gv = tape.gradient(y, [x, v])
        results.append((float(y), float(gx), float(gv)))
    assert results[0] == results[1] == (66.0, 3.0, 12.0)


def test_gradients_with_respect_to_captured_tensors():
    c = tensor([2.0, 3.0])
    f = hf.function(lambda x: hf.sum(x * c))
    with hf.GradientTape() as tape:
        tape.watch(c)
        y = f(tensor([5.0, 7.0]))
    assert same_bits(tape.gradient(y, c), [5.0, 7.0])


def test_derivative_programs_are_made_once():
    f = hf.function(lambda x: hf.sum(hf.exp(x)))
    x = tensor([1.0, 2.0])
    for _ in range(3):
        nth_gradient(f, 1)(x)
    (concrete,) = f.concrete_functions()
    (derivative,) = concrete.staged._derivatives.values()
    assert len(derivative._programs) == 1


@hf.custom_gradient
def clipped(x):
    y = hf.exp(x)

    def grad(upstream):
        return hf.clip(upstream * y, -1.0, 1.0) * hf.sin(x)

    return y, grad


@pytest.mark.parametrize("order", [1, 2])
def test_custom_gradients_in_compiled_functions(order):
    x = tensor([-0.5, 0.3, 1.5])
    eager = nth_gradient(lambda x: hf.sum(clipped(x) * x), order)(x)
    f = hf.function(lambda x: hf.sum(clipped(x) * x))
    assert same_bits(nth_gradient(f, order)(x), eager)
    assert same_bits(hf.function(nth_gradient(lambda x: hf.sum(clipped(x) * x), order))(x), eager)


def test_second_derivatives_use_what_the_gradient_function_closes_over():
    @hf.custom_gradient
    def f(x):
        y = x * x

        @hf.custom_gradient
        def grad(upstream):
            return upstream * 3.0, lambda g: g * y

        return y * 1.0, grad

    x = tensor([2.0, 3.0])

    def second(f):
        with hf.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with hf.GradientTape() as inner:
                inner.watch(x)
                z = hf.sum(f(x) * x)
            g = inner.gradient(z, x)
            weight = hf.sum(g * g)
        return outer.gradient(weight, x)

    assert same_bits(second(hf.function(lambda x: f(x))), second(f))


def test_jacobian_of_a_compiled_function():
    f = hf.function(lambda x: x * x * 2.0)
    x = tensor([1.0, 2.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert same_bits(tape.jacobian(y, x), [[4.0, 0.0], [0.0, 8.0]])


def test_a_training_loop_learns_the_same_eagerly_and_compiled():
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(20, 3)), rng.normal(size=(20, 1))
    finals = []
    for wrap in (lambda f: f, hf.function):
        w = hf.Variable(np.zeros((3, 1)))

        def step(x, y, w=w):
            with hf.GradientTape() as tape:
                loss = hf.mean((x @ w - y) ** 2.0)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        run = wrap(functools.partial(step))
        losses = [float(run(hf.asarray(data), hf.asarray(labels))) for _ in range(5)]
        assert losses[-1] < losses[0]
        finals.append((losses, np.array(w.numpy())))
    assert finals[0][0] == finals[1][0] and same_bits(finals[0][1], finals[1][1])


def test_classmethods_and_staticmethods():
    class Base:
        rate = 7.0

        @classmethod
        @hf.function
        def scaled(cls, x):
            return x * cls.rate

        @staticmethod
        @hf.function
        def doubled(x):
            return x * 2

    class Derived(Base):
        rate = 9.0

    x = hf.constant([1.0, 2.0])
    for _ in range(3):
        assert Base.scaled(x).tolist() == [7.0, 14.0]
        assert Derived.scaled(x).tolist() == [9.0, 18.0]
        assert Derived().scaled(x).tolist() == [9.0, 18.0]
        assert Base.doubled(x).tolist() == Derived().doubled(x).tolist() == [2.0, 4.0]
    Base.rate, Derived.rate = 1.0, 2.0
    assert Base.scaled(x).tolist() == [1.0, 2.0]
    assert Derived.scaled(x).tolist() == [2.0, 4.0]


def test_a_class_with_a_traced_classmethod_is_freed():
    def make():
        class Local:
            rate = 2.0

            @classmethod
            @hf.function
            def scaled(cls, x):
                return x * cls.rate

        Local.scaled(hf.ones(3))
        Local.scaled(hf.ones(3))
        return weakref.ref(Local)

    reference = make()
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_decorators_in_the_wrong_order(kind):
    with pytest.raises(hf.errors.ArgumentTypeError, match=f"write @{kind.__name__} above @hf.function"):
        hf.function(kind(lambda x: x))


@pytest.mark.parametrize("array", [np.array(["2020"], "M8[Y]"), np.datetime64("2020")])
def test_arrays_of_other_dtypes(array):
    @hf.function
    def f(x, y):
        return x + y

    with pytest.raises(hf.errors.DTypeError, match=r"\[f\] y is an array of dtype .* not supported"):
        f(hf.ones(1), array)


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([object()])])
def test_texts_are_no_numbers(array):
    f = hf.function(lambda x, y: x + y)
    with pytest.raises((hf.errors.DTypeError, hf.errors.ArgumentTypeError)):
        f(hf.ones(1), array)


@pytest.mark.parametrize("array", [np.ma.array([1.0, 2.0], mask=[True, False]), np.ma.ones(2), np.ma.masked])
@pytest.mark.parametrize(
    "take",
    [
        hf.function(lambda x: x + 1),
        hf.constant,
        hf.exp,
        hf.Variable,
        hf.Variable([0.0, 0.0]).assign,
        hf.ones(2).__add__,
        lambda x: hf.stack([x, x]),
        hf.data.Dataset.from_tensor_slices,
    ],
)
def test_masks_are_not_lost(take, array):
    with pytest.raises(hf.errors.ArgumentTypeError, match=r"masked array.*x\.filled\(value\)"):
        take(array)
    assert take(array.filled(2.0)) is not None if array.ndim else True


def test_what_changed_is_told_of_objects_that_follow_one_another_in_one_place():
    f = hf.function(lambda v, x: v * x)
    for _ in range(20):
        f(hf.Variable(1.0), 2.0)
    assert f.retraces() and all(retrace.old != retrace.new for retrace in f.retraces())


def test_arrays_of_the_other_byte_order():
    f = hf.function(lambda x: x + 1)
    swapped = np.arange(3, dtype=">f4")
    for _ in range(3):
        assert f(swapped).tolist() == [1.0, 2.0, 3.0]
    assert f(swapped).dtype == hf.float32
    assert len(f.signatures()) == 1


def test_generators_and_coroutines_are_refused():
    def generator(x):
        yield x

    async def coroutine(x):
        return x

    for python in (generator, coroutine):
        with pytest.raises(hf.errors.ArgumentTypeError, match=f"{python.__name__} is a generator or a coroutine"):
            hf.function(python)


@hf.function
def importable(x):
    return x + 1


def test_copies_and_pickles_are_those_of_functions():
    assert copy.copy(importable) is importable
    assert copy.deepcopy(importable) is importable
    assert pickle.loads(pickle.dumps(importable)) is importable
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(hf.function(lambda x: x))


def test_a_deep_copy_of_an_object_has_functions_of_its_own():
    class Model:
        def __init__(self):
            self.weight = hf.Variable([2.0])
            self.step = hf.function(self.apply)
            self.held = self.method

        def apply(self, x):
            return x * self.weight

        @hf.function
        def method(self, x):
            return x * self.weight

    model, x = Model(), hf.constant([3.0])
    assert model.step(x).tolist() == model.step(x).tolist() == [6.0]
    other = copy.deepcopy(model)
    other.weight.assign([5.0])
    for _ in range(3):
        assert other.step(x).tolist() == other.held(x).tolist() == [15.0]
        assert model.step(x).tolist() == model.held(x).tolist() == [6.0]


def test_a_number_is_one_constant_for_all_operands_of_a_shape():
    @hf.function
    def f(x):
        for _ in range(5):
            x = 2.0 * x + 1
        return x + hf.sum(x) * 2.0

    assert f.ir(hf.ones((3,))).count("= constant()") == 3  # 2.0 for [3] and for [], 1.0


def test_numbers_that_only_look_equal_are_constants_of_their_own():
    def f(x, i):
        return x * 0.0, x * -0.0, i + 1, i + True, x + 1, x + 1.0, x * float("nan")

    args = hf.asarray([-1.0, 2.0]), hf.asarray([3, 4])
    for got, expected in zip(hf.function(f)(*args), f(*args), strict=True):
        assert got.dtype == expected.dtype
        assert got.numpy().tobytes() == expected.numpy().tobytes()


def test_a_watched_constant_is_not_the_number_of_an_operand():
    @hf.function
    def f(x):
        c = hf.asarray(2.0)
        with hf.GradientTape() as tape:
            tape.watch(c)
            y = c * x + 2.0 * x
        return tape.gradient(y, c)

    assert float(f(hf.asarray(5.0))) == 5.0


def test_a_first_call_enters_its_modules_once() -> None:
    """The call path is one line: no module hands the arguments to and fro."""
    watched = ("/jit/function.py", "/jit/concrete_function.py")
    entered: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        caller, file = frame.f_back, frame.f_code.co_filename
        if event == "call" and file.endswith(watched) and caller is not None and caller.f_code.co_filename != file:
            entered.append(frame.f_code.co_name)

    f, x = hf.function(lambda x: hf.sum(x * 2.0)), hf.ones(3)
    sys.setprofile(note)
    try:
        f(x)
    finally:
        sys.setprofile(None)
    assert entered == ["_call_slow", "__init__", "call_leaves"]  # the second is the trace, which is made once
