"""GradientTape and custom_gradient, against closed forms and finite differences in float64."""

import weakref

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, ArgumentTypeError, GradientError, ShapeError

f64 = np.float64


def tensor(values):
    return hf.asarray(np.asarray(values, f64))


def numeric_gradient(f, x, step=1e-6):
    """Central differences of a scalar function of one array."""
    out = np.zeros_like(x)
    for i in np.ndindex(*x.shape):
        up, down = x.copy(), x.copy()
        up[i] += step
        down[i] -= step
        out[i] = (float(f(hf.asarray(up))) - float(f(hf.asarray(down)))) / (2 * step)
    return out


def gradient(f, x):
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


SCALAR_FUNCTIONS = [
    lambda x: hf.sum(x * x),
    lambda x: hf.sum(hf.exp(-x) * x + 1.0 / (2.0 + x)),
    lambda x: hf.sum(hf.sqrt(x) * hf.log(x)) ** 2.0,
    lambda x: hf.mean(hf.matmul(hf.reshape(x, (2, 3)), hf.reshape(x, (3, 2)))),
    lambda x: hf.max(x) * hf.min(x) + hf.prod(x),
    lambda x: hf.sum(hf.where(x > 1.0, x * x, 3.0 * x)),
    lambda x: hf.sum(hf.concat([x[:2], x[::-1]]) * 2.0) + x[3],
]


@pytest.mark.parametrize("k", range(len(SCALAR_FUNCTIONS)))
def test_gradient_matches_finite_differences(k):
    x = np.array([0.3, 1.7, 0.9, 2.2, 0.5, 1.1])
    found = gradient(SCALAR_FUNCTIONS[k], tensor(x)).numpy()
    np.testing.assert_allclose(found, numeric_gradient(SCALAR_FUNCTIONS[k], x), rtol=1e-6, atol=1e-7)


def test_targets_are_summed_over_elements_and_over_targets():
    x = tensor([1.0, 2.0])
    with hf.GradientTape() as tape:
        tape.watch(x)
        a, b = x * x, 3.0 * x
    np.testing.assert_array_equal(tape.gradient([a, {"b": b}], x), [5.0, 7.0])


def test_nested_sources_keep_their_structure():
    x, y, z = tensor(2.0), tensor(3.0), tensor(5.0)
    with hf.GradientTape() as tape:
        tape.watch([x, {"y": y}, (z,)])
        out = x * y * z
    g = tape.gradient(out, {"a": [x, y], "b": (z, x)})
    assert float(g["a"][0]) == 15 and float(g["a"][1]) == 10 and float(g["b"][0]) == 6 and float(g["b"][1]) == 15


def test_a_source_may_be_the_target_or_lie_between():
    x = tensor(3.0)
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    gx, gy, gz = tape.gradient(z, [x, y, z])
    assert (float(gx), float(gy), float(gz)) == (108.0, 18.0, 1.0)
    assert float(tape.gradient(x, x)) == 1.0


def test_output_gradients_weight_the_targets():
    x = tensor([1.0, 2.0])
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    np.testing.assert_array_equal(tape.gradient(y, x, output_gradients=[10.0, 100.0]), [20.0, 400.0])
    np.testing.assert_array_equal(tape.gradient([y, y], x, output_gradients=[tensor([1.0, 1.0]), None]), [2.0, 4.0])
    with pytest.raises(ShapeError, match="output gradient"):
        tape.gradient(y, x, output_gradients=tensor([1.0, 2.0, 3.0]))
    with pytest.raises(ArgumentError, match="1 entries where 2 are expected"):
        tape.gradient([y, y], x, output_gradients=[tensor([1.0, 1.0])])


def test_what_was_watched_is_told_after_the_gradient():
    """In Python at first, in native code once the pass is known; tensors of the pass are let go of."""
    v, w = hf.Variable(3.0), hf.Variable([1.0, 2.0])
    for _ in range(50):
        with hf.GradientTape() as tape:
            y = hf.sum(hf.exp(w) * v)
        alive = weakref.ref(y)
        tape.gradient(y, [w, v])
        assert [id(x) for x in tape.watched_variables()] == [id(w), id(v)]
        del y
        assert alive() is None
    tape.reset()
    assert tape.watched_variables() == ()
    with tape:
        y = v * v
    assert float(tape.gradient(y, v)) == 6.0 and tape.watched_variables() == (v,)


def test_variables_are_watched_when_read():
    v = hf.Variable(tensor(3.0), name="v")
    frozen = hf.Variable(tensor(2.0), trainable=False)
    with hf.GradientTape() as tape:
        y = v * v * frozen
    assert tape.watched_variables() == (v,)
    gv, gf = tape.gradient(y, [v, frozen])
    assert float(gv) == 12.0 and gf is None
    assert "not trainable" in tape.why_none(frozen)


def test_watch_accessed_variables_can_be_turned_off():
    v, w = hf.Variable(tensor(3.0)), hf.Variable(tensor(4.0))
    with hf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(v)
        y = v * w
    gv, gw = tape.gradient(y, [v, w])
    assert float(gv) == 4.0 and gw is None
    assert "watch_accessed_variables=False" in tape.why_none(w)


def test_every_read_of_a_variable_counts_and_assignments_cut():
    v, w = hf.Variable(tensor(3.0), name="v"), hf.Variable(tensor(2.0))
    with hf.GradientTape() as tape:
        y = v * 10.0
        v.assign(w * w)
        y = y + v
    gv, gw = tape.gradient(y, [v, w])
    assert float(gv) == 11.0 and gw is None
    assert "assign to the variable v at test_tape.py:" in tape.why_none(w)


def test_the_first_gradient_call_frees_a_tape():
    x = tensor(3.0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    with pytest.raises(GradientError, match="persistent=True"):
        tape.gradient(y, x)
    tape.reset()
    with tape:
        tape.watch(x)
        y = x * x * x
    assert float(tape.gradient(y, x)) == 27.0


def test_gradient_inside_the_block():
    x = tensor(3.0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        g = tape.gradient(x * x, x)
        _ = x * 2.0  # the tape is done: no longer recorded
    assert float(g) == 6.0
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        g = tape.gradient(x * x * x, x)
        assert float(tape.gradient(g, x)) == 18.0  # its own gradient computation is recorded


def test_stop_recording_and_reset():
    x = tensor(3.0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            z = x * x
        total = y + 2.0 * z
    assert float(tape.gradient(total, x)) == 6.0
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        tape.reset()
    assert tape.gradient(y, x) is None


def test_entering_twice_is_an_error():
    with hf.GradientTape() as tape, pytest.raises(GradientError, match="already recording"), tape:
        pass


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_higher_orders(order):
    def nth(f, n):
        return f if n == 0 else nth(lambda x: gradient(f, x), n - 1)

    x = np.array([0.4, -1.3])
    found = nth(lambda x: hf.sum(hf.sin(x) * x**3.0), order)(tensor(x)).numpy()
    s, c = np.sin(x), np.cos(x)
    expected = {
        1: 3 * x**2 * s + x**3 * c,
        2: 6 * x * s + 6 * x**2 * c - x**3 * s,
        3: 6 * s + 18 * x * c - 9 * x**2 * s - x**3 * c,
        4: 24 * c - 36 * x * s - 12 * x**2 * c + x**3 * s,
    }
    np.testing.assert_allclose(found, expected[order], rtol=1e-12)


def test_unconnected_gradients():
    x, z = tensor([1.0, 2.0]), hf.asarray(np.ones((2, 3), np.float32))
    with hf.GradientTape(persistent=True) as tape:
        tape.watch([x, z])
        y = x * x
    assert tape.gradient(y, z) is None
    zero = tape.gradient(y, z, unconnected_gradients="zero")
    assert zero.shape == (2, 3) and zero.dtype == np.float32 and not zero.numpy().any()
    with pytest.raises(ArgumentError, match="none"):
        tape.gradient(y, z, unconnected_gradients="maybe")


def why(f, source, watch=True):
    with hf.GradientTape() as tape:
        if watch:
            tape.watch(source)
        y = f(source)
    assert tape.gradient(y, source) is None
    return tape.why_none(source)


def test_none_gradients_say_why():
    x = tensor([1.0, 2.0])
    assert "not watched" in why(lambda x: x * x, x, watch=False)
    assert "integer dtype" in why(lambda x: x * 2.0, hf.asarray([1, 2]))
    assert "stop_gradient at test_tape.py:" in why(lambda x: hf.stop_gradient(x) * 2.0, x)
    assert "floor at test_tape.py:" in why(lambda x: hf.floor(x), x)
    assert "convert at test_tape.py:" in why(lambda x: x.astype(hf.int32).astype(hf.float64), x)
    assert "not on any path" in why(lambda x: gradient_free(x), x)
    v = hf.Variable(x)
    with hf.GradientTape() as tape:
        y = x * 2.0
    assert tape.gradient(y, v) is None
    assert "not read" in tape.why_none(v)


def gradient_free(x):
    other = hf.Variable(tensor(3.0))
    return other * 2.0


def test_only_tensors_are_sources_and_targets():
    x = tensor(1.0)
    with hf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(ArgumentTypeError, match=r"value\[1\] is a float"):
            tape.watch([x, 2.0])
    with pytest.raises(ArgumentTypeError, match=r'sources\["a"\] is a int'):
        tape.gradient(y, {"a": 1})
    with pytest.raises(ArgumentTypeError, match="target is a str"):
        tape.gradient("y", x)


def test_jacobian():
    x, y = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), tensor(2.0)
    with hf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        z = hf.sum(x * x, axis=1) * y
    jx, jy = tape.jacobian(z, [x, y])
    expected = np.zeros((2, 2, 3))
    for i in range(2):
        expected[i, i] = 2 * x.numpy()[i] * 2.0
    np.testing.assert_array_equal(jx, expected)
    np.testing.assert_array_equal(jy, [14.0, 77.0])
    other = tensor([1.0, 1.0])
    assert tape.jacobian(z, other) is None and "not watched" in tape.why_none(other)
    assert tape.jacobian(z, other, unconnected_gradients="zero").shape == (2, 2)


def test_batch_jacobian():
    x = np.random.default_rng(0).normal(size=(3, 2))
    with hf.GradientTape() as tape:
        t = tensor(x)
        tape.watch(t)
        y = hf.stack([t[:, 0] * t[:, 1], hf.exp(t[:, 0]), t[:, 1]], axis=1)
    found = tape.batch_jacobian(y, t).numpy()
    expected = np.zeros((3, 3, 2))
    expected[:, 0, 0], expected[:, 0, 1] = x[:, 1], x[:, 0]
    expected[:, 1, 0], expected[:, 2, 1] = np.exp(x[:, 0]), 1.0
    np.testing.assert_allclose(found, expected, rtol=1e-14)
    with hf.GradientTape() as tape, pytest.raises(ShapeError, match="batch"):
        tape.batch_jacobian(tensor([1.0, 2.0]), tensor([1.0]))


def test_hessian_through_nested_tapes():
    x = tensor([1.0, 2.0])
    with hf.GradientTape() as outer:
        outer.watch(x)
        g = gradient(lambda x: x[0] ** 2.0 * x[1] ** 3.0, x)
    np.testing.assert_allclose(outer.jacobian(g, x), [[16.0, 24.0], [24.0, 12.0]], rtol=1e-14)


# custom_gradient


@hf.custom_gradient
def log1pexp(x):
    e = hf.exp(x)

    def grad(upstream):
        return upstream * (1.0 - 1.0 / (1.0 + e))

    return hf.log(1.0 + e), grad


def test_custom_gradient_replaces_the_derivative():
    x = tensor([0.0, 1.0])
    expected = 1 / (1 + np.exp(-x.numpy()))
    np.testing.assert_allclose(gradient(lambda x: log1pexp(x), x), expected, rtol=1e-15)
    second = gradient(lambda x: gradient(lambda x: log1pexp(x), x), x)
    np.testing.assert_allclose(second, expected * (1 - expected), rtol=1e-14)
    big = tensor(1000.0)  # exp overflows, and the derivative that was given does not mind
    assert float(gradient(log1pexp, big)) == 1.0


def test_custom_gradient_with_several_inputs_and_outputs():
    @hf.custom_gradient
    def f(x, y, scale=2.0):
        def grad(da, db):
            return da * 10.0, db * 100.0

        return (x * scale, [y, "text"]), grad

    x, y = tensor([1.0, 2.0]), tensor(3.0)
    with hf.GradientTape(persistent=True) as tape:
        tape.watch([x, y])
        a, (b, text) = f(x, y, scale=3.0)
    assert text == "text" and float(b) == 3.0
    np.testing.assert_array_equal(a, [3.0, 6.0])
    gx, gy = tape.gradient([a, b], [x, y])
    np.testing.assert_array_equal(gx, [10.0, 10.0])
    assert float(gy) == 100.0
    assert float(tape.gradient(a, y)) == 0.0  # an output without a cotangent counts as zeros


def test_custom_gradient_with_variables():
    v = hf.Variable(tensor(3.0))

    @hf.custom_gradient
    def f(x):
        def grad(upstream, variables=None):
            assert variables == [v]
            return upstream * 5.0, [upstream * 7.0]

        return x * v, grad

    x = tensor(2.0)
    with hf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    gx, gv = tape.gradient(y, [x, v])
    assert (float(y), float(gx), float(gv)) == (6.0, 5.0, 7.0)

    @hf.custom_gradient
    def careless(x):
        return x * v, lambda upstream: upstream

    with pytest.raises(ArgumentTypeError, match="variables"):
        careless(x)


def test_custom_gradient_checks_what_it_is_given():
    x = tensor([1.0, 2.0])
    with pytest.raises(ArgumentTypeError, match="pair"):
        hf.custom_gradient(lambda x: x)(x)
    with pytest.raises(GradientError, match="2 cotangents for 1 tensor argument"):
        gradient(hf.custom_gradient(lambda x: (x * 1.0, lambda g: (g, g))), x)
    with pytest.raises(ShapeError, match="argument 0"):
        gradient(hf.custom_gradient(lambda x: (x * 1.0, lambda g: hf.sum(g))), x)


def test_a_custom_gradient_may_return_its_argument():
    clip = hf.custom_gradient(lambda x: (x, lambda g: hf.clip(g, -1.0, 1.0)))
    assert float(gradient(lambda x: clip(x) * 5.0, tensor(2.0))) == 1.0
    blocked = hf.custom_gradient(lambda x: (x * 2.0, lambda g: None))
    assert gradient(blocked, tensor(2.0)) is None
