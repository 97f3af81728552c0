"""Programs on which tracing compilers are known to differ silently from eager execution.  Here they agree, or raise."""

import copy
import gc
import struct
import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import DivisionError, IndexRangeError, ShapeError, TraceError


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def test_scalars_of_several_types_do_not_share_a_trace():
    def double(x):
        return hf.add(hf.constant(x), hf.constant(x))

    f = hf.function(double)
    for value in (1, 1.0, 2, 0, 0.0):
        assert same(f(value), double(value))
    assert f(1).dtype == hf.int64 and f(1.0).dtype == hf.float32


def test_negative_zero_is_not_zero():
    def inverse(x):
        return hf.divide(1.0, hf.constant(x))

    f = hf.function(inverse)
    for value in (0.0, -0.0, 0.0):
        assert same(f(value), inverse(value))
    assert float(f(-0.0)) == -np.inf


NAN = float("nan")
OTHER_NAN = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000001))[0]


def test_scalar_keys_are_type_and_bits(traced):
    f = hf.function(lambda x: x, reduce_retracing=False)
    values = [1, 1.0, True, 0, 0.0, -0.0, False, NAN, OTHER_NAN, 1e-320, 2**70, 1j, complex(0.0, -0.0), "1", b"1", None]
    for value in values:
        f(value)
    assert len(traced.keys) == len(values)
    for value in values:
        f(value)
    f(float("nan"))
    assert len(traced.keys) == len(values)  # nan hits its own trace


def test_nested_scalars_are_keyed_as_well():
    f = hf.function(lambda d: hf.constant(d["k"][0]))
    assert [f({"k": [v]}).dtype for v in (1, 1.0, True)] == [hf.int64, hf.float32, hf.bool_]
    g = hf.function(lambda d: len(d))
    g({1: 0.0})
    g({True: 0.0})
    assert len(g.signatures()) == 2


def test_branching_on_a_tensor_never_takes_a_side_in_silence():
    @hf.function
    def f(x):
        try:
            if x > 0:
                raise ValueError
        except ValueError:
            return 0.0
        return x

    assert [float(f(hf.constant(x))) for x in (-1.0, 2.0)] == [-1.0, 0.0]


def test_indices_out_of_range_raise():
    take = hf.function(lambda x, i: hf.take(x, i))
    with pytest.raises(IndexRangeError):
        take(hf.ones(3), hf.asarray([100]))


def test_integer_division_by_zero_raises():
    divide = hf.function(lambda a, b: a // b)
    with pytest.raises(DivisionError):
        divide(hf.asarray([4]), hf.asarray([0]))


def test_errors_of_unused_values_are_not_pruned():
    @hf.function
    def f(x, i):
        hf.take(x, i)
        return x * 2.0

    assert same(f(hf.ones(3), hf.asarray([1])), np.full(3, 2, np.float32))
    with pytest.raises(IndexRangeError):
        f(hf.ones(3), hf.asarray([100]))


def test_concrete_functions_do_not_accept_other_shapes():
    concrete = hf.function(lambda x: x + 1.0).get_concrete_function(hf.TensorSpec([3]))
    with pytest.raises(ShapeError, match=r"x is f32\[2\]"):
        concrete(hf.ones(2))


def test_a_local_variable_is_an_error_and_not_state():
    @hf.function
    def f(x):
        v = hf.Variable(0.0)
        v.assign_add(x)
        return v.value()

    with pytest.raises(TraceError):
        f(hf.constant(1.0))


def test_results_do_not_share_buffers_that_change():
    v = hf.Variable(np.zeros(3))

    @hf.function
    def f():
        v.assign_add(np.ones(3))
        return v.value()

    first = f()
    second = f()
    assert same(first, np.ones(3)) and same(second, np.full(3, 2.0))


def test_calls_do_not_share_output_buffers():
    f = hf.function(lambda x: x + 1.0)
    a = f(hf.zeros(100))
    b = f(hf.ones(100))
    assert same(a, np.ones(100, np.float32)) and same(b, np.full(100, 2, np.float32))


def test_methods_of_two_instances_do_not_share_constants():
    class Layer:
        def __init__(self, n):
            self.n = n

        @hf.function
        def f(self, x):
            return x * self.n

    x = hf.constant(1.0)
    assert [float(Layer(n).f(x)) for n in range(5)] == [0.0, 1.0, 2.0, 3.0, 4.0]


RATE, TABLE, HELPED = 2.0, {"k": [1.0, 2.0]}, 3.0


def helper(x):
    return x * HELPED


def test_globals_that_change_are_noticed(monkeypatch):
    @hf.function
    def f(x):
        return helper(x) * RATE + TABLE["k"][1]

    x = hf.constant(1.0)
    assert [float(f(x)) for _ in range(3)] == [8.0] * 3
    monkeypatch.setitem(globals(), "RATE", 3.0)
    assert [float(f(x)) for _ in range(3)] == [11.0] * 3
    monkeypatch.setitem(globals(), "HELPED", 4.0)
    assert [float(f(x)) for _ in range(3)] == [14.0] * 3
    TABLE["k"][1] = 10.0
    assert [float(f(x)) for _ in range(3)] == [22.0] * 3
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert [float(f(x)) for _ in range(3)] == [13.0] * 3
    monkeypatch.undo()
    TABLE["k"][1] = 2.0
    assert [float(f(x)) for _ in range(3)] == [8.0] * 3
    assert [r.argument for r in f.retraces()] == ["RATE", "HELPED", 'TABLE["k"][1]', "helper"]
    assert "pass it as an argument" in f.retraces()[0].suggestion


def test_closure_cells_that_change_are_noticed():
    factor, parts, weights = 2.0, [1.0, 2.0], np.array([1.0, 2.0])

    @hf.function
    def f(x):
        inner = [x * p for p in parts]
        return hf.sum(inner[0] * factor + inner[-1] + hf.asarray(weights))

    def plain(x):
        return float(np.sum(x * parts[0] * factor + x * parts[-1] + weights))

    x = hf.asarray(np.ones(2))
    for _ in range(3):
        assert float(f(x)) == plain(1.0)
    factor = 5.0
    for _ in range(3):
        assert float(f(x)) == plain(1.0)
    parts.append(7.0)
    for _ in range(3):
        assert float(f(x)) == plain(1.0)
    weights[0] = 100.0
    for _ in range(3):
        assert float(f(x)) == plain(1.0)


def test_attributes_that_change_are_noticed():
    class Dense:
        scale = 1.0

        def __init__(self, units):
            self.units = units

        def __call__(self, x):
            return x * self.units * self.scale

    class Model:
        def __init__(self):
            self.n, self.layers, self.options = 1.0, [Dense(2.0), Dense(3.0)], {"bias": 0.0}

        @property
        def doubled(self):
            return self.n * 2.0

        @hf.function
        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.shifted(x) * self.doubled

        def shifted(self, x):
            return x + self.options["bias"]

    model, x = Model(), hf.constant(1.0)

    def eager():
        hf.config.run_functions_eagerly(True)
        try:
            return float(model(x))
        finally:
            hf.config.run_functions_eagerly(False)

    def changes():
        yield
        model.n = 5.0
        yield
        model.layers[1].units = 7.0
        yield
        Dense.scale = 2.0
        yield
        model.layers.append(Dense(11.0))
        yield
        model.layers[0] = Dense(13.0)
        yield
        model.options["bias"] = 1.0
        yield
        model.options = {"bias": 2.0}
        yield
        model.shifted = lambda x: x - 1.0
        yield

    for _ in changes():
        assert [float(model(x)) for _ in range(3)] == [eager()] * 3


def test_copies_of_an_instance_are_instances_of_their_own():
    class Layer:
        def __init__(self, w):
            self.w = w

        @hf.function
        def f(self, x):
            return x * self.w

    x = hf.constant(1.0)
    one = Layer(2.0)
    one.f(x)
    for two in (copy.copy(one), copy.deepcopy(one)):
        two.w = 3.0
        assert float(two.f(x)) == 3.0 and float(one.f(x)) == 2.0


def test_rebinding_a_captured_tensor_or_variable_is_noticed():
    w, v = hf.constant(2.0), hf.Variable(3.0)
    f = hf.function(lambda x: x * w + v)
    x = hf.constant(1.0)
    assert float(f(x)) == float(f(x)) == 5.0
    w = hf.constant(10.0)
    assert float(f(x)) == float(f(x)) == 13.0
    v = hf.Variable(100.0)
    assert float(f(x)) == float(f(x)) == 110.0
    v.assign(1.0)
    assert float(f(x)) == 11.0


def test_a_body_that_counts_its_own_runs_counts_on():
    class Counter:
        calls = 0

        @hf.function
        def f(self, x):
            self.calls += 1
            return x * self.calls

    counter = Counter()
    assert [float(counter.f(hf.constant(1.0))) for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_python_random_state_is_not_traced_but_ours_is():
    f = hf.function(lambda: hf.random.uniform((4,)))
    hf.random.set_seed(7)
    compiled = [np.asarray(f()) for _ in range(3)]
    hf.random.set_seed(7)
    eager = [np.asarray(hf.random.uniform((4,))) for _ in range(3)]
    assert all(same(a, b) for a, b in zip(compiled, eager)) and not same(compiled[0], compiled[1])


def test_assigning_in_a_function_takes_effect_once_per_call():
    v = hf.Variable(0.0)
    f = hf.function(lambda x: (v.assign_add(x), None)[1])
    for _ in range(5):
        f(hf.constant(1.0))
    assert float(v) == 5.0


class Settings:
    """A plain object of a user's class."""

    def __init__(self, rate):
        self.rate = rate
        self.unread = 0

    @property
    def twice(self):
        return self.rate * 2

    def scaled(self, x):
        return x * self.rate


def _reads_through_alias(settings):
    def f(x):
        other = settings
        return x * other.rate

    return f


def _reads_in_loop(settings):
    def f(x):
        for item in [settings]:
            x = x * item.rate
        return x

    return f


def _reads_by_name(settings):
    def f(x):
        return x * getattr(settings, "rate")  # noqa: B009

    return f


def _reads_property_of_element(settings):
    both = {"first": [settings]}

    def f(x):
        for items in both.values():
            x = x * items[0].twice / 2
        return x

    return f


def _reads_in_method_of_element(settings):
    layers = [settings]

    def f(x):
        for layer in layers:
            x = layer.scaled(x)
        return x

    return f


@pytest.mark.parametrize(
    "make",
    [
        _reads_through_alias,
        _reads_in_loop,
        _reads_by_name,
        _reads_property_of_element,
        _reads_in_method_of_element,
    ],
)
def test_attributes_of_objects_used_indirectly_are_guarded(make):
    settings = Settings(2.0)
    f = hf.function(make(settings))
    x = hf.constant([1.0, 3.0])
    for rate in (2.0, 5.0, 2.0):
        settings.rate = rate
        for _ in range(3):
            settings.unread += 1
            assert f(x).tolist() == [rate, 3 * rate]
    assert len(f.signatures()) == 2


@pytest.mark.parametrize("read", [lambda s, x: x * s.rate, lambda s, x: s.scaled(x), lambda s, x: x * s.twice / 2])
def test_attributes_of_arguments_are_guarded(read):
    f = hf.function(lambda settings, x: read(settings, x))
    x = hf.constant([1.0, 3.0])
    first, second = Settings(2.0), Settings(3.0)
    for rate in (2.0, 5.0, 2.0):
        first.rate = rate
        for _ in range(3):
            first.unread += 1
            assert f(first, x).tolist() == [rate, 3 * rate]
            assert f(second, x).tolist() == [3.0, 9.0]
    assert len(f.signatures()) == 3
    assert any("rate" in record.argument for record in f.retraces())


def test_arguments_are_not_kept_alive_by_what_is_known_of_them():
    f = hf.function(lambda settings, x: x * settings.rate)
    settings = Settings(2.0)
    f(settings, hf.ones(2))
    f(settings, hf.ones(2))
    reference = weakref.ref(settings)
    del settings
    gc.collect()
    assert reference() is None


def test_functions_as_arguments_are_followed():
    rate = 2.0

    def scale(x):
        return x * rate

    f = hf.function(lambda g, x: g(x))
    x = hf.constant([1.0])
    assert f(scale, x).tolist() == f(scale, x).tolist() == [2.0]
    rate = 3.0
    assert f(scale, x).tolist() == [3.0]


def test_dicts_that_are_iterated_are_guarded():
    weights = {"a": 2.0}

    @hf.function
    def f(x):
        for weight in weights.values():
            x = x * weight
        return x * weights.get("scale", 1.0)

    x = hf.constant([1.0])
    assert f(x).tolist() == f(x).tolist() == [2.0]
    weights["a"] = 3.0
    assert f(x).tolist() == [3.0]
    weights["scale"] = 2.0
    assert f(x).tolist() == [12.0]
