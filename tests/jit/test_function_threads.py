"""One Function, many threads."""

import threading
import time

import numpy as np
import pytest

import hybridflow as hf


def run_all(jobs):
    """Start every job at once in a thread of its own; re-raise the first error."""
    barrier, errors = threading.Barrier(len(jobs)), []

    def run(job):
        try:
            barrier.wait(300)
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(job,), daemon=True) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not any(thread.is_alive() for thread in threads), "deadlock"
    if errors:
        raise errors[0]


def test_each_signature_is_traced_once(traced):
    traced.seconds = 0.002  # long enough for others to arrive

    @hf.function(reduce_retracing=False)
    def f(x, k):
        return x * x + k

    def job(seed):
        order = np.random.default_rng(seed).permutation(8)

        def work():
            for n in order:
                x = np.full(n + 1, float(seed))
                for k in (1.0, 2.0):
                    assert np.array_equal(f(x, k), x * x + k)

        return work

    run_all([job(seed) for seed in range(16)])
    assert len(traced.keys) == len(set(traced.keys)) == len(f.signatures()) == 16


def test_threads_do_not_see_each_others_tapes_and_traces():
    f = hf.function(lambda x: hf.sum(x * x * x))

    def with_tape():
        for n in range(1, 6):
            x = hf.asarray(np.arange(float(n)))
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            assert np.array_equal(tape.gradient(y, x), 3.0 * x.numpy() ** 2)

    def without():
        for n in range(1, 6):
            x = np.arange(float(n))
            assert float(f(x)) == float((x * x * x).sum())

    def eager():
        for n in range(1, 50):
            x = hf.asarray(np.arange(float(n)))
            assert type(x + x) is hf.Tensor

    run_all([with_tape, without, eager] * 5)


def test_a_variable_made_in_the_body_is_made_by_one_thread():
    made = []

    class Layer:
        w = None

        @hf.function
        def call(self, x):
            if self.w is None:
                time.sleep(0.01)
                self.w = hf.Variable(2.0)
                made.append(self.w)
            return x * self.w

    layer = Layer()

    def job(n):
        return lambda: [layer.call(hf.ones(n)) for _ in range(3)]

    run_all([job(n) for n in range(1, 9)])
    assert made == [layer.w]


def test_an_error_in_one_thread_lets_the_others_try(traced):
    class Settings:
        fails = True

    @hf.function
    def f(x):
        if Settings.fails:
            Settings.fails = False
            raise ValueError("the first attempt fails")
        return x + 1.0

    traced.seconds = 0.01

    outcomes = []

    def job():
        try:
            outcomes.append(float(f(hf.constant(1.0))))
        except ValueError:
            outcomes.append("failed")

    run_all([job] * 8)
    assert sorted(map(str, outcomes)) == ["2.0"] * 7 + ["failed"]
    assert len(traced.keys) == 3  # the first begins again with the permit, as it sets what other threads see


def test_eviction_under_contention():
    f = hf.function(lambda x, n: x + n, cache_size=2)

    def job():
        for n in range(12):
            assert float(f(hf.constant(1.0), n % 5)) == 1.0 + n % 5

    run_all([job] * 6)
    assert len(f.signatures()) <= 2


@pytest.mark.parametrize("wrap", [lambda f: f, hf.function], ids=["eager", "compiled"])
def test_custom_gradients_in_threads(wrap):
    @hf.custom_gradient
    def twice(x):
        return x * 2.0, lambda g: g * 3.0

    f = wrap(lambda x: hf.sum(twice(x)))

    def job():
        for _ in range(5):
            x = hf.asarray(np.ones(4))
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            assert np.array_equal(tape.gradient(y, x), np.full(4, 3.0))

    run_all([job] * 6)


@pytest.mark.parametrize("recorded", [False, True])
def test_no_update_is_lost(recorded):
    threads, steps = 8, 150
    total, weight = hf.Variable(0.0), hf.Variable([1.0, 2.0])

    @hf.function
    def step(x):
        total.assign_add(1.0)
        return hf.sum(weight * x)

    x = hf.constant([3.0, 4.0])

    def job():
        for _ in range(steps):
            if recorded:
                with hf.GradientTape() as tape:
                    loss = step(x)
                assert tape.gradient(loss, weight).tolist() == [3.0, 4.0]
            else:
                assert step(x).item() == 11.0

    def add_eagerly():
        for _ in range(steps):
            total.assign_add(1.0)

    run_all([job] * threads + [add_eagerly] * 2)
    assert total.item() == (threads + 2) * steps


def test_threads_draw_different_numbers():
    generator = hf.random.Generator(1)
    draw = hf.function(lambda: generator.bits((4,)))
    drawn = []

    def eager():
        for _ in range(100):
            drawn.append(tuple(generator.bits((4,)).tolist()))

    def traced():
        for _ in range(100):
            drawn.append(tuple(draw().tolist()))

    run_all([eager] * 4 + [traced] * 4)
    reference = hf.random.Generator(1)
    assert sorted(drawn) == sorted(tuple(reference.bits((4,)).tolist()) for _ in range(800))
