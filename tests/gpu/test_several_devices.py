"""Programs of several devices: where values lie, what is copied, and the bits of one device."""

from __future__ import annotations

import functools
import gc
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import DeviceError, IndexRangeError
from tests.support.bits import same_bits
from tests.support.cuda_emulator import emulated, emulating  # noqa: F401

ZERO, ONE, TWO = "gpu:0", "gpu:1", "gpu:2"


@pytest.fixture
def three(monkeypatch):
    with emulating(monkeypatch, 3) as emulator:
        yield emulator


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def on(device, value):
    return hf.asarray(value).to_device(device)


def variable(device, value):
    with hf.device(device):
        return hf.Variable(value)


def line_of(f, text):
    """The line of the source of a function that has this text."""
    code = f.__wrapped__.__code__ if hasattr(f, "__wrapped__") else f.__code__
    lines = Path(code.co_filename).read_text().splitlines()
    return next(k for k in range(code.co_firstlineno, len(lines) + 1) if text in lines[k - 1])


# ---- training


class Model:
    """A model of two parts, each on a device of its own."""

    def __init__(self, first, second):
        self.second = second
        self.a, self.b = variable(first, numbers(30, 25, seed=1)), variable(second, numbers(25, 24, seed=2))
        self.steps = hf.Variable(0)

    def loss(self, x):
        hidden = hf.tanh(x @ self.a)
        y = hidden.to_device(self.second) @ self.b
        return hf.mean(y * y) + hf.sum(self.b * self.b)

    def step(self, x, loss=None):
        with hf.GradientTape() as tape:
            value = (loss or self.loss)(x)
        a, b = tape.gradient(value, [self.a, self.b])
        self.a.assign_sub(0.1 * a)
        self.b.assign_sub(0.1 * b)
        self.steps.assign_add(1)
        return value


WAYS = {
    "eager": lambda model: model.step,
    "compiled": lambda model: hf.function(model.step),
    "tape outside": lambda model: functools.partial(model.step, loss=hf.function(model.loss)),
    "in a function": lambda model: hf.function(functools.partial(model.step, loss=hf.function(model.loss))),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("devices", [(ZERO, ONE), (ONE, ZERO), (ZERO, "cpu"), ("cpu", ONE)], ids="-".join)
def test_a_model_of_two_parts_is_trained_with_the_bits_of_one_device(emulated, devices, way):  # noqa: F811
    there, here = Model(*devices), Model("cpu", "cpu")
    step, want = WAYS[way](there), hf.function(here.step)
    x = numbers(20, 30)
    for k in range(3):
        loss, wanted = step(on(devices[0], x)), want(x)
        assert loss.device == devices[1] and same_bits(loss.numpy(), wanted.numpy())
        for found, expected in zip((there.a, there.b), (here.a, here.b)):
            assert same_bits(found.numpy(), expected.numpy())
        assert (there.a.device, there.b.device, there.steps.device) == (*devices, "cpu")
        assert there.steps.item() == k + 1


def test_optimizers_move_variables_where_they_lie(three):
    def trained(devices, wrap):
        layers = [variable(d, numbers(6, 6, seed=k)) for k, d in enumerate(devices)]
        optimizer = hf.optimizers.Adam(0.1)

        def step(x):
            with hf.GradientTape() as tape:
                for d, w in zip(devices, layers):
                    x = hf.tanh(x.to_device(d) @ w)
                loss = hf.sum(x)
            optimizer.apply_gradients(zip(tape.gradient(loss, layers), layers))
            return loss

        step = wrap(step)
        losses = [step(on(devices[0], numbers(5, 6))).item() for _ in range(3)]
        assert [w.device for w in layers] == devices
        return [np.float32(losses), *(w.numpy() for w in layers)]

    want = trained(["cpu"] * 3, hf.function)
    assert all(map(same_bits, trained([ZERO, ONE, TWO], hf.function), want))


def test_updates_are_written_in_place(emulated):  # noqa: F811
    model = Model(ZERO, ONE)
    step, x = hf.function(model.step), on(ZERO, numbers(20, 30))
    places = []
    for _ in range(8):  # a call that looks at guards again, which may be traced anew, writes elsewhere
        step(x)
        places.append([v._tensor._array.data.ptr for v in (model.a, model.b)])
    assert any(before == after for before, after in pairwise(places[2:]))


@pytest.mark.parametrize("there, is_in_place", [(ONE, False), ("cpu", True)])
def test_what_another_gpu_may_still_copy_is_not_written_over(emulated, there, is_in_place):  # noqa: F811
    """Small state goes where it is wanted as it is: the copy waits for its GPU's queue, and nobody waits for the copy.
    The host does."""
    v, w = variable(ZERO, numbers(10)), variable(ZERO, numbers(40, 10))
    x, places = on(there, numbers(40, 10, seed=1)), []

    @hf.function
    def f(x):
        y = x * v
        v.assign(v * 0.5 + 1)
        w.assign(w * 2)
        return y

    want = numbers(10)
    for _ in range(8):
        assert same_bits(f(x).numpy(), x.numpy() * want)
        want = want * np.float32(0.5) + 1
        places.append(v._tensor._array.data.ptr)
    assert same_bits(v.numpy(), want)
    assert any(before == after for before, after in pairwise(places[2:])) == is_in_place


def test_an_update_waits_for_reads_of_later_parts(emulated):  # noqa: F811
    v = variable(ZERO, numbers(40))

    @hf.function
    def f(x):
        there = (x * 2).to_device(ONE)
        product = (there + 1).to_device(ZERO) * v
        old = v.value().to_device(ONE)
        v.assign(x)  # which a part could do that comes before the last one which reads the old value
        return product, old

    before = numbers(40)
    for k in range(4):  # nobody reads the variable in between, so that it may be written in place
        x = numbers(40, seed=k)
        product, old = f(on(ZERO, x))
        assert same_bits(product.numpy(), (x * 2 + 1) * before) and same_bits(old.numpy(), before)
        before = x
    assert same_bits(v.numpy(), before)


def test_results_share_no_memory_with_variables(emulated):  # noqa: F811
    v = variable(ZERO, np.ones(40, np.float32))

    @hf.function
    def f(x):
        read = v.value()
        return read, read.to_device(ZERO), x.to_device(ZERO)

    @hf.function
    def change():
        v.assign_add(hf.ones(40))

    found = f(on(ONE, np.ones(40, np.float32)))
    for _ in range(3):
        change()
    assert [x.tolist() for x in found] == [[1.0] * 40] * 3 and v.numpy()[0] == 4


# ---- where values lie


def test_three_devices_and_back_with_sizes_that_vary(three):
    @hf.function
    def f(x):
        n = x.shape[0]
        with hf.device(ONE):
            y = x[:2].to_device(ONE) + hf.arange(float(n))[:2]
            z = hf.arange(float(n)) * hf.sum(y)
        w = z.to_device(TWO)[1:] * n
        return x[1:] + w.to_device(ZERO), y, w

    for n in (40, 41, 50, 60):
        x = numbers(n)
        y = x[:2] + np.arange(2, dtype=np.float32)
        w = (np.arange(n, dtype=np.float32) * (y[0] + y[1]))[1:] * np.float32(n)
        found = f(on(ZERO, x))
        assert [v.device for v in found] == [ZERO, ONE, TWO]
        assert all(map(same_bits, [v.numpy() for v in found], [x[1:] + w, y, w]))
    assert len(f.signatures()) <= 3


def test_nested_scopes_say_where_what_is_made_of_nothing_lies(three):
    def f(x):
        with hf.device(ONE):
            one = hf.zeros(40)
            with hf.device(TWO):
                two = hf.ones((40,)) * 3.0
            again = hf.full(40, 2.0) + one
        return one, two, again, x + 1.0, x * hf.sum(two)

    for call in (f, hf.function(f)):
        for _ in range(3):
            found = call(on(ZERO, np.ones(40, np.float32)))
            assert [x.device for x in found] == [ONE, TWO, ONE, ZERO, ZERO]
            assert [x.numpy()[0] for x in found] == [0, 3, 2, 2, 120]
            assert all(len(set(x.tolist())) == 1 for x in found)


def test_arguments_on_several_devices_need_no_transfer_where_they_do_not_meet(emulated):  # noqa: F811
    f = hf.function(lambda x, y: (x * 2, y + 1, hf.sum(x) * y))
    x, y = numbers(40), numbers(50)
    for first, second in ((ZERO, ONE), (ONE, "cpu"), (ZERO, ZERO), ("cpu", ZERO), (ZERO, ONE)):
        for _ in range(3):
            found = f(on(first, x), on(second, y))
            assert [v.device for v in found] == [first, second, second]
            assert same_bits(found[0].numpy(), x * 2) and same_bits(found[1].numpy(), y + np.float32(1))
            assert same_bits(found[2].numpy(), f(hf.asarray(x), hf.asarray(y))[2].numpy())


def test_parts_on_the_cpu(emulated):  # noqa: F811
    @hf.function
    def f(x):
        y = hf.cumulative_sum(x).to_device("cpu")
        return (hf.sort(y) * 2).to_device(ONE) + 1, y

    x = numbers(70)
    want = f(hf.asarray(x).to_device("cpu"))
    for device in (ZERO, ONE, "cpu", ZERO):
        found = f(on(device, x))
        assert [v.device for v in found] == [ONE, "cpu"]
        assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(found, want))


def test_control_flow_within_a_part(three):
    def f(x, w):
        h = hf.cond(hf.sum(x) > 0, lambda: x * 2, lambda: x - 1).to_device(ONE)
        for _ in range(2):
            h = h @ w
        total = hf.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, hf.tanh(h @ w)), (0, h))[1].to_device(TWO)
        if hf.sum(total) > 0:
            total = total + 1
        else:
            total = total * 2
        return total

    compiled = hf.function(f)
    for sign in (1, -1):
        x, w = sign * np.abs(numbers(7, 5)), numbers(5, 5, seed=3)
        for _ in range(2):
            found = compiled(on(ZERO, x), on(ONE, w))
            assert found.device == TWO
            assert same_bits(found.numpy(), f(on(ZERO, x), on(ONE, w)).numpy())
    with hf.GradientTape() as tape:
        x, w = on(ZERO, np.abs(numbers(7, 5))), on(ONE, numbers(5, 5, seed=3))
        tape.watch([x, w])
        found = compiled(x, w)
    gradients = tape.gradient(found, [x, w])
    with hf.GradientTape() as tape:
        tape.watch([x, w])
        want = f(x, w)
    assert [g.device for g in gradients] == [ZERO, ONE]
    assert all(same_bits(g.numpy(), e.numpy()) for g, e in zip(gradients, tape.gradient(want, [x, w])))


def test_random_numbers_are_those_of_one_device(emulated):  # noqa: F811
    @hf.function
    def f(x):
        noise = hf.random.normal((40,))
        return x + noise, x.to_device(ONE) * noise, hf.random.uniform((40,))

    results = []
    for device in ("cpu", ZERO):
        hf.random.set_seed(5)
        results.append([y.numpy() for _ in range(3) for y in f(on(device, np.ones(40, np.float32)))])
    assert all(map(same_bits, *results))


# ---- derivatives


def test_derivatives_of_any_order_go_back_over_transfers(emulated):  # noqa: F811
    x = numbers(20)

    def second(f, x):
        with hf.GradientTape() as outer:
            outer.watch(x)
            with hf.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            first = inner.gradient(y, x)
            total = hf.sum(first * first)
        return first, outer.gradient(total, x)

    def f(x):
        return hf.sum(hf.exp(hf.tanh(x).to_device(ONE)) ** 2)

    want = second(lambda x: hf.sum(hf.exp(hf.tanh(x)) ** 2), hf.asarray(x))
    for call in (f, hf.function(f)):
        found = second(call, on(ZERO, x))
        assert [g.device for g in found] == [ZERO, ZERO]
        assert all(same_bits(a.numpy(), b.numpy()) for a, b in zip(found, want))


def test_forward_mode_and_vmap(emulated):  # noqa: F811
    f = hf.function(lambda x: hf.tanh(x).to_device(ONE) * 3)
    x = on(ZERO, numbers(20))
    with hf.ForwardAccumulator(x, on(ZERO, np.ones(20, np.float32))) as forward:
        y = f(x)
    tangent = forward.jvp(y)
    assert tangent.device == ONE
    np.testing.assert_allclose(tangent.numpy(), 3 / np.cosh(x.numpy()) ** 2, rtol=1e-5)
    rows = hf.function(lambda x: hf.vmap(lambda row: row.to_device(ONE) + 1)(x))(on(ZERO, numbers(4, 20)))
    assert rows.device == ONE and same_bits(rows.numpy(), numbers(4, 20) + np.float32(1))


# ---- errors


def test_operands_on_different_devices_are_named_with_the_line(emulated):  # noqa: F811
    @hf.function
    def f(x, y):
        moved = x.to_device(ONE)
        return moved + y  # the sum

    x, y = on(ZERO, numbers(40)), on(ONE, numbers(40))
    assert f(x, y).device == ONE
    for _ in range(2):
        with pytest.raises(DeviceError, match=rf"f32\[40\] on gpu:1, f32\[40\] on gpu:0.*:{line_of(f, '# the sum')}\)"):
            f(x, x)
    assert f(x, y).device == ONE


def test_devices_that_do_not_exist(emulated):  # noqa: F811
    @hf.function
    def moves(x):
        return x.to_device("gpu:7")  # moves

    @hf.function
    def scopes(x):
        with hf.device("gpu:2"):  # scopes
            return x + hf.ones(3)

    for f, text in ((moves, "gpu:7"), (scopes, "gpu:2")):
        with pytest.raises(DeviceError, match=rf"there is no {text} here.*:{line_of(f, f'# {f.__name__}')}\)"):
            f(on(ZERO, numbers(40)))
    with pytest.raises(DeviceError, match="there is no gpu:9"):
        hf.ones(3).to_device("gpu:9")
    with pytest.raises(DeviceError, match="'gpux' is not a device"):
        hf.function(lambda x: x.to_device("gpux"))(hf.ones(3))


def test_branches_run_on_one_device(emulated):  # noqa: F811
    @hf.function
    def f(x):
        return hf.cond(hf.sum(x) > 0, lambda: x.to_device(ONE), lambda: x)  # cond

    with pytest.raises(DeviceError, match=rf"gpu:1, and that branch or loop runs on gpu:0.*:{line_of(f, '# cond')}\)"):
        f(on(ZERO, numbers(40)))
    assert f(on(ONE, numbers(40))).device == ONE


def test_failed_checks_are_raised_by_who_reads_on_another_device(emulated):  # noqa: F811
    v = variable(ZERO, np.zeros(40, np.float32))  # whose part comes first

    @hf.function
    def f(x, i):
        picked = hf.take(x, i).to_device(ZERO)  # the look-up
        v.assign_add(hf.ones(40))
        return picked * 2

    x = on(ONE, np.arange(40, dtype=np.float32))
    good, bad = (on(ONE, np.int64([*range(20), last])) for last in (39, 40))
    for _ in range(3):
        assert f(x, good).tolist() == [*range(0, 40, 2), 78]
    with pytest.raises(IndexRangeError, match=rf":{line_of(f, '# the look-up')}\)"):
        f(x, bad).numpy()
    assert v.numpy().tolist() == [3.0] * 40
    assert f(x, good).tolist() == [*range(0, 40, 2), 78]


def test_a_check_that_fails_on_another_gpu_leaves_state_as_it_was(emulated):  # noqa: F811
    """Where nothing is copied from there, and no state lies there, that would wait for it."""
    v = variable(ZERO, np.zeros(40, np.float32))

    @hf.function
    def f(x, i):
        picked = hf.take(x, i) * 2  # the look-up
        v.assign_add(hf.ones(40))
        return picked

    x = on(ONE, np.arange(40, dtype=np.float32))
    good, bad = (on(ONE, np.int64([*range(20), last])) for last in (39, 40))
    for _ in range(3):
        assert f(x, good).tolist() == [*range(0, 40, 2), 78]
    with pytest.raises(IndexRangeError, match=rf":{line_of(f, '# the look-up')}\)"):
        f(x, bad)
    assert v.numpy().tolist() == [3.0] * 40
    assert f(x, good).tolist() == [*range(0, 40, 2), 78] and v.numpy().tolist() == [4.0] * 40


# ---- copies


def test_copies_wait_for_what_they_copy_and_hold_it(emulated):  # noqa: F811
    f = hf.function(lambda x: (x * 2 + 1).to_device(ONE))
    x = numbers(3000)
    for _ in range(3):  # all is loaded, and nothing is left to be unloaded
        gc.collect()
        (f(on(ZERO, x)) * 3).numpy(), (on(ZERO, x) * 5).numpy()
    emulated.driver.held.add(0)
    found = f(on(ZERO, x))  # returns while neither GPU gets on
    after = found * 3
    later = on(ZERO, numbers(3000, seed=9)) * 5
    gc.collect()  # the memory that is copied from is held nevertheless
    emulated.driver.held.clear()
    emulated.driver.synchronize(0)
    assert same_bits(after.numpy(), (x * 2 + 1) * np.float32(3)) and same_bits(found.numpy(), x * 2 + 1)
    assert same_bits(later.numpy(), numbers(3000, seed=9) * np.float32(5))


def test_eager_copies_between_gpus_take_no_way_over_the_host(emulated):  # noqa: F811
    for value in (numbers(5, 7), np.float64(3.5), np.zeros((0, 4), np.int32), np.array([True, False])):
        x = on(ZERO, value)
        emulated.driver.calls.clear()
        y = x.to_device(ONE)
        assert y.device == ONE and y.dtype == x.dtype and y.shape == x.shape
        assert not {"cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2"} & set(emulated.driver.calls)
        assert same_bits(y.numpy(), x.numpy())


def test_what_is_copied_is_explained_with_the_line(emulated):  # noqa: F811
    table = hf.asarray(numbers(40))

    @hf.function
    def f(x):
        y = x * table
        return y.to_device(ONE) + table  # the sum

    for _ in range(2):
        f(on(ZERO, numbers(40)))
    text = str(f.explain(on(ZERO, numbers(40))))
    line = line_of(f, "# the sum")
    assert re.search(rf"f32\[40\] of multiply from gpu:0 \(test_several_devices.py:{line}\), 160 bytes, at each", text)
    assert len(re.findall(r"capture0 from cpu \(.*\), 160 bytes, once", text)) == 2
    assert "gpu:0: compiled" in text and "gpu:1: compiled" in text


def test_functions_within_functions(emulated):  # noqa: F811
    inner = hf.function(lambda x: hf.exp(x).to_device(ONE))
    concrete = inner.get_concrete_function(hf.TensorSpec([40], hf.float32))
    x = numbers(40)
    want = hf.exp(hf.asarray(x)).numpy() * np.float32(2)
    for body in (inner, concrete):
        found = hf.function(lambda x, body=body: body(x * 1) * 2)(on(ZERO, x))
        assert found.device == ONE and same_bits(found.numpy(), want)


def test_printing_between_parts(emulated, capsys):  # noqa: F811
    @hf.function
    def f(x):
        hf.print("first", x[0])
        y = (x * 2).to_device(ZERO)
        z = (y + 1).to_device("cpu")
        hf.print("then", z[0])
        return z

    for k in range(2):
        assert f(hf.full((40,), float(k))).tolist() == [2.0 * k + 1] * 40
    shown = capsys.readouterr()
    assert (shown.out + shown.err).split() == ["first", "0.0", "then", "1.0", "first", "1.0", "then", "3.0"]
