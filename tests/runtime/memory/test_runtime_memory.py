"""The pool: alignment, reuse, bounds, ownership, poison, and the path without native code."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from hybridflow import flags
from hybridflow.runtime.dtypes import NUMPY
from hybridflow.runtime.memory import memory_pool
from hybridflow.runtime.native import object_layout
from tests.support.paths import ROOT

F32 = np.dtype("f4")


@pytest.fixture
def pool():
    made = memory_pool.pool()
    if made is None:
        pytest.skip(object_layout.problem())
    made.trim()
    yield made
    made.set_poison(bool(flags.POISON.value))
    made.set_limit(memory_pool.default_limit())
    made.trim()


@pytest.fixture(params=["pool", "numpy"])
def path(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(memory_pool, "pool", lambda: None)
    elif object_layout.problem() is not None:
        pytest.skip(object_layout.problem())
    return request.param


@pytest.mark.parametrize("dtype", NUMPY.values(), ids=NUMPY.keys())
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 5), (2, 0, 4), (1000, 33), (1,) * 20])
def test_empty(path, shape, dtype):
    array = memory_pool.empty(shape, dtype)
    assert type(array) is np.ndarray and array.shape == shape and array.dtype is dtype
    assert array.ctypes.data % 64 == 0 or array.size == 0
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
    array[...] = 1
    assert (array == np.ones(shape, dtype)).all()


def test_bad_shapes(path):
    with pytest.raises(ValueError, match="negative"):
        memory_pool.empty((2, -1), F32)
    with pytest.raises(TypeError):
        memory_pool.empty((2.5,), F32)
    assert memory_pool.empty((np.int64(2), True), F32).shape == (2, 1)
    for shape in ((1 << 45,), (1 << 62,), (1 << 40, 1 << 40), (1 << 63,)):
        with pytest.raises((MemoryError, ValueError), match=r"\d"):  # says how much, or which shape
            memory_pool.empty(shape, F32)


def test_blocks_are_reused(pool):
    array = memory_pool.empty((1 << 20,), F32)
    address = array.ctypes.data
    before = memory_pool.stats()
    del array
    after = memory_pool.stats()
    assert after.cached > before.cached and after.live < before.live
    again = memory_pool.empty((1 << 20,), F32)
    assert again.ctypes.data == address and memory_pool.stats().hits == after.hits + 1
    other = memory_pool.empty((1 << 20,), F32)
    assert other.ctypes.data != address


def test_live_blocks_never_overlap(pool):
    rng = np.random.default_rng(0)
    held: list[tuple[np.ndarray, int]] = []
    for k in range(2000):
        size = int(2 ** rng.uniform(0, 18))
        array = memory_pool.empty((size,), np.dtype("u1"))
        array[:] = k % 251
        held.append((array, k % 251))
        if len(held) > 30:
            old, value = held.pop(int(rng.integers(len(held))))
            assert (old == value).all()
            del old
    assert all((array == value).all() for array, value in held)
    base = memory_pool.stats().live
    held.clear()
    del array
    assert memory_pool.stats().live < base


def test_kept_memory_is_bounded(pool):
    pool.set_limit(1 << 20)
    arrays = [memory_pool.empty((1 << 18,), np.dtype("u1")) for _ in range(12)]
    del arrays
    assert memory_pool.stats().cached <= 1 << 20
    big = memory_pool.empty((1 << 22,), np.dtype("u1"))
    del big  # larger than the limit: given back at once
    assert memory_pool.stats().cached <= 1 << 20
    memory_pool.trim()
    assert memory_pool.stats().cached == 0
    pool.set_limit(0)
    del_me = memory_pool.empty((100,), F32)
    del del_me
    assert memory_pool.stats().cached == 0


def test_ownership(pool):
    gc.collect()  # what earlier tests left behind
    live = memory_pool.stats().live
    array = memory_pool.empty((100,), F32)
    array[:] = 7
    view = array[10:20].reshape(2, 5)
    buffer = memoryview(array)
    del array
    gc.collect()
    assert memory_pool.stats().live > live and (view == 7).all() and buffer[99] == 7
    del view, buffer
    gc.collect()
    assert memory_pool.stats().live == live


def test_numpy_may_resize(pool):
    live = memory_pool.stats().live
    array = memory_pool.empty((10,), F32)
    array[:] = np.arange(10)
    array.resize(100_000, refcheck=False)
    np.testing.assert_array_equal(array[:10], np.arange(10))
    array.resize(3, refcheck=False)
    np.testing.assert_array_equal(array, np.arange(3))
    del array
    assert memory_pool.stats().live == live


def test_poison(pool):
    pool.set_poison(True)
    pool.trim()
    fresh = memory_pool.empty((3, 1000), F32)
    assert np.isnan(fresh).all()
    fresh[:] = 1
    del fresh
    assert np.isnan(memory_pool.empty((3, 1000), F32)).all()  # freed, poisoned, and handed out again
    pool.set_poison(False)
    again = memory_pool.empty((3, 1000), F32)
    again[:] = 2
    address = again.ctypes.data
    del again
    kept = memory_pool.empty((3, 1000), F32)
    assert kept.ctypes.data == address and (kept == 2).all()


def test_poison_from_the_environment():
    code = """
import numpy as np
from hybridflow.runtime.memory import memory_pool
print(np.isnan(memory_pool.empty((64,), np.dtype('f4'))).all())
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "HF_POISON": "1"},
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    assert done.stdout.strip() == "True"


def test_arrays_may_outlive_everything():
    """An array that a module global still holds at interpreter exit is freed through native code."""
    code = """
import atexit, sys
import numpy as np
from hybridflow.runtime.memory import memory_pool
held = [memory_pool.empty((n,), np.dtype('f4')) for n in (1, 1000, 1 << 20)]
sys.modules['numpy'].held = held
class Late:
    def __init__(self): self.array = memory_pool.empty((1 << 16,), np.dtype('f4'))
    def __del__(self): self.array = None
builtins_late = Late()
atexit.register(lambda: memory_pool.empty((5,), np.dtype('f4')))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0 and done.stderr == ""


def test_fork(pool):
    array = memory_pool.empty((1 << 16,), F32)
    array[:] = 3
    child = os.fork()
    if child == 0:
        ok = (array == 3).all()
        del array
        ok = ok and memory_pool.empty((1 << 16,), F32).shape == (1 << 16,)
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0 and (array == 3).all()


def test_threads(pool):
    failures = []
    live = memory_pool.stats().live

    def work(k):
        try:
            for i in range(200):
                array = memory_pool.empty((i * 37 % 5000,), F32)
                array[:] = k
                assert (array == k).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and memory_pool.stats().live == live


def test_layout_refuses_what_it_does_not_know(monkeypatch):
    check = object_layout.problem.__wrapped__
    if object_layout.problem() is not None:
        pytest.skip("already refused")
    assert check() is None
    with monkeypatch.context() as patch:
        patch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
        assert "free-threaded" in check()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "gettotalrefcount", lambda: 0, raising=False)
        assert "debug" in check()
    for name in ("ARRAY_DATA", "ARRAY_FLAGS", "ARRAY_HANDLER", "TUPLE_ITEMS", "BYTES_DATA", "TYPE", "ARRAY_DESCR"):
        with monkeypatch.context() as patch:
            patch.setattr(object_layout, name, getattr(object_layout, name) + 8)
            assert "lies elsewhere" in check(), name
    with pytest.raises(TypeError, match="not a slot"):
        object_layout.slot_offset(Plain, "attribute")


class Plain:
    attribute = 3
