"""hf.memory: what the pool keeps, what it gives back, and when."""

import subprocess
import sys

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import object_layout

pytestmark = pytest.mark.skipif(object_layout.problem() is not None, reason="there is no pool")
BYTES = np.dtype("u1")
MIB = 1 << 20


@pytest.fixture
def pool():
    made = memory_pool.pool()
    limit = hf.config.memory_limit()

    def forget():  # what earlier programs had in use
        hf.memory.trim()
        for name in ("peak", "peak_before"):
            made._state[name].value = 0

    forget()
    made.set_age(1000)
    yield made
    made.set_age(memory_pool.AGE)
    hf.config.memory_limit(limit)
    forget()


def kept():
    return hf.memory.stats().cached


def use(*sizes, at_once=1):
    """Take and drop blocks of so many bytes, a few at once."""
    held = []
    for size in sizes:
        held.append(memory_pool.empty((size,), BYTES))
        if len(held) > at_once - 1:
            held.pop(0)


def test_changing_sizes_do_not_add_up(pool):
    rng = np.random.default_rng(0)
    sizes = [int(size) for size in rng.uniform(1, 40, 200) * MIB]
    use(*sizes)
    assert kept() <= 1.25 * 1.13 * max(sizes)  # a quarter, and the rounding to a class
    sizes = [int(size) for size in rng.uniform(1, 40, 200) * MIB]
    use(*sizes, at_once=4)
    assert kept() <= 1.25 * 1.13 * sum(sorted(sizes)[-5:])


@pytest.mark.parametrize("at_once", [1, 2, 3, 8, 30])
@pytest.mark.parametrize("seed", range(5))
def test_steps_of_the_same_sizes_take_nothing_new(pool, at_once, seed):
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in 2 ** rng.uniform(14, 24, rng.integers(3, 200))]
    for _ in range(6):
        use(*sizes, at_once=at_once)
    misses = hf.memory.stats().misses
    for _ in range(10):
        use(*sizes, at_once=at_once)
    assert hf.memory.stats().misses == misses


def test_a_slightly_larger_block_is_taken(pool):
    use(10 * MIB)
    before = hf.memory.stats()
    held = memory_pool.empty((int(8.2 * MIB),), BYTES)
    assert hf.memory.stats().hits == before.hits + 1 and kept() == 0
    del held
    much_smaller = memory_pool.empty((5 * MIB,), BYTES)
    assert hf.memory.stats().misses == before.misses + 1 and kept() >= 10 * MIB
    del much_smaller


def test_what_nobody_uses_goes_in_time(pool):
    use(*[k * MIB for k in (8, 12, 20, 30)], at_once=4)
    assert kept() >= 70 * MIB
    pool.set_age(0)  # as if the time had passed
    use(100)
    assert pool.stats().cached >= 70 * MIB  # small ones do not look at the clock each time
    for _ in range(3000):
        use(100)
    assert pool.stats().cached < MIB
    pool.set_age(1000)
    use(8 * MIB)
    pool.set_age(0)
    assert kept() < MIB  # looking at the figures looks at the clock


def test_what_is_used_stays(pool):
    """Blocks age from their last use, not from their making."""
    clock = pool._state["looked"]
    use(8 * MIB, 16 * MIB, at_once=2)
    assert hf.memory.stats().misses and kept() >= 24 * MIB
    clock.value -= 2000  # the next look finds that time has passed; both were freed just now
    use(8 * MIB)
    assert kept() >= 24 * MIB


def test_the_limit(pool):
    assert hf.config.memory_limit() == memory_pool.limit()
    use(*[8 * MIB] * 10, at_once=10)
    assert kept() > 40 * MIB
    assert hf.config.memory_limit(20 * MIB) == 20 * MIB and kept() <= 20 * MIB
    use(*[8 * MIB] * 10, at_once=10)
    assert 8 * MIB < kept() <= 20 * MIB
    use(30 * MIB)  # more than may be kept at all
    assert kept() <= 20 * MIB
    hf.config.memory_limit(0)
    use(8 * MIB, 100)
    assert kept() == 0
    for bad in (-1, 2.0, None, "1", True, 1 << 70):
        if bad is not None:
            with pytest.raises(hf.errors.ArgumentError, match="memory_limit"):
                hf.config.memory_limit(bad)


def test_small_blocks_are_kept_up_to_a_total(pool):
    held = [memory_pool.empty((4000,), BYTES) for _ in range(10_000)]
    del held
    assert kept() <= 17 * MIB


def test_live_bytes_are_exact(pool):
    rng = np.random.default_rng(1)
    hf.memory.trim()
    before, held = hf.memory.stats().live, {}
    others = pool._state["held"].value  # the large ones among what is alive
    for k in range(5000):
        size = int(2 ** rng.uniform(0, 21))
        held[k % 37] = memory_pool.empty((size,), BYTES)
        held[k % 37][:] = k % 251
        if k % 11 == 0:
            assert all((array == array[0]).all() for array in held.values() if array.size)
        if k % 500 == 0:
            hf.memory.trim()
    held.clear()
    stats = hf.memory.stats()
    assert stats.live == before
    assert stats.cached == pool._state["held"].value - others + pool._state["small"].value
    hf.memory.trim()
    assert kept() == 0


def test_importing_and_setting_limits_loads_nothing():
    code = (
        "import hybridflow as hf, sys; hf.config.memory_limit(1 << 20); assert hf.config.memory_limit() == 1 << 20;"
        "assert 'llvmlite' not in sys.modules; hf.exp(hf.ones(1 << 19)); print(hf.memory.stats().cached <= 1 << 20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_system_gets_it_back():
    code = """
import numpy as np
import hybridflow as hf
from hybridflow.runtime.memory import memory_pool

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096 >> 20

memory_pool.empty((1,), np.dtype("u1"))
base = resident()
held = [memory_pool.empty((size,), np.dtype("u1")) for size in [1 << 20] * 100 + [10 << 20] * 20]
for array in held:
    array[:] = 1
assert resident() - base > 280
del held, array
hf.memory.trim()
assert resident() - base < 30, resident() - base
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


def test_statistics_are_no_constants_of_a_trace():
    step = hf.function(lambda x: x * float(hf.memory.stats().live), strict=True)
    with pytest.raises(errors.TraceError, match=r"calls hybridflow\.runtime\.memory\.memory_pool\.stats"):
        step(hf.ones(2))
