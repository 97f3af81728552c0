"""What is larger than the caches: results are written past them, and chunks are read in turn.

The bits are the same, at any address."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.pipeline import compile_graph
from hybridflow.compiler.target import AARCH64, AVX2, AVX512, SSE2, Target
from hybridflow.runtime.machine import host_target
from hybridflow.runtime.memory import memory_pool
from tests.support.bits import same_bits

TINY = 1 << 10  # bytes of a last cache that next to nothing stays in


def numbers(*shape: int, dtype: str = "f4") -> np.ndarray:
    made = np.random.default_rng(7).normal(size=shape) * 50
    return made.astype(dtype)


WAYS: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "one loop": (lambda x: x + 1, (numbers(5003),)),
    "lines": (lambda x, y: x * y, (numbers(48, 64), numbers(64))),
    "rows that end anywhere": (lambda x, b: x + b, (numbers(7, 1501), numbers(1501))),
    "bytes": (lambda x: hf.minimum(x, 9).astype("uint8"), (numbers(10_007, dtype="u1"),)),
    "truth": (lambda x: x > 0, (numbers(10_007),)),
    "wider": (lambda x: x.astype("float64"), (numbers(3001),)),
    "bfloat16": (lambda x: x.astype("bfloat16") * 2, (numbers(3001),)),
    "two results": (lambda x: (x + 1, x * 2), (numbers(3001),)),
    "three results": (lambda x: (x + 1, x * 2, x - 1), (numbers(3001),)),
    "backwards": (lambda x: x[::-1] * 2, (numbers(3001),)),
    "colours": (lambda x, m: x * m, (numbers(64, 16, 3), numbers(3))),
    "colours to planes": (lambda x: hf.permute_dims(x, (2, 0, 1)) + 1, (numbers(64, 16, 3),)),
    "softmax": (lambda x: hf.nn.softmax(x), (numbers(19, 256),)),
    "softmax, odd": (lambda x: hf.nn.softmax(x), (numbers(9, 1111),)),
    "rows, kept": (lambda x: (hf.exp(x), hf.exp(x) / hf.sum(hf.exp(x), axis=1, keepdims=True)), (numbers(9, 256),)),
    "norms of three": (lambda x: x / hf.sqrt(hf.sum(x * x, axis=1, keepdims=True)), (numbers(999, 3),)),
    "joined": (lambda x, y: hf.concat([x + 1, y], axis=0), (numbers(2000), numbers(1001))),
    "joined rows": (lambda x, y: hf.concat([x, y], axis=1), (numbers(19, 64), numbers(19, 1030))),
    "padded": (lambda x: hf.pad(x, [(1, 2), (3, 1100)]), (numbers(9, 1100),)),
}


def small_caches() -> Target:
    return host_target.target().with_(l3=TINY)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("way", WAYS)
def test_bits_are_the_same(way: str, threads: int) -> None:
    function, arrays = WAYS[way]
    before = hf.config.get_num_threads()
    try:
        hf.config.set_num_threads(threads)
        with host_target.use(small_caches()):
            found = hf.function(function)(*arrays)
    finally:
        hf.config.set_num_threads(before)
    expected = function(*map(hf.asarray, arrays))
    for one, other in zip(hf.tree.leaves(found), hf.tree.leaves(expected), strict=True):
        assert same_bits(one.numpy(), other.numpy())


def text_of(function: Callable[..., Any], arrays: tuple[np.ndarray, ...], target: Target) -> str:
    return compile_graph(hf.function(function).get_concrete_function(*arrays).graph, target).text


@pytest.mark.parametrize(
    "way", ["one loop", "lines", "rows that end anywhere", "colours", "softmax", "joined", "two results", "wider"]
)
def test_large_results_are_streamed(way: str) -> None:
    function, arrays = WAYS[way]
    assert "!nontemporal" in (text := text_of(function, arrays, small_caches()))
    assert text.count("fence") >= 1
    assert "!nontemporal" not in text_of(function, arrays, host_target.target())


def test_what_does_not_pay_is_not() -> None:
    for way in ("three results", "colours to planes"):  # more streams than a core can gather lines of
        function, arrays = WAYS[way]
        assert "!nontemporal" not in text_of(function, arrays, small_caches())
    short = numbers(1000, 9)  # rows of parts of lines, of which neighbours are written later
    assert "!nontemporal" not in text_of(lambda x, b: x + b, (short, numbers(9)), small_caches())
    # A small result of much that is read: it stays in the caches.
    assert "!nontemporal" not in text_of(lambda x: x[::64] + 1, (numbers(64 * 50),), small_caches())


def test_a_pass_that_reads_a_result_finds_it_in_the_cache() -> None:
    function, arrays = WAYS["rows, kept"]
    text = text_of(function, arrays, small_caches())
    assert text.count("!nontemporal") <= 2  # of the second result: vectors of a turn, and single ones


@pytest.mark.parametrize("target", [SSE2, AVX2, AVX512, AARCH64], ids=lambda target: target.cpu)
def test_other_machines(target: Target) -> None:
    function, arrays = WAYS["one loop"]
    assert "!nontemporal" in text_of(function, arrays, target.with_(l3=TINY))


def test_memory_begins_anywhere() -> None:
    """A donated array is written where it lies: streaming stores would trap at what is no multiple of a vector."""
    with host_target.use(small_caches()):
        f = hf.function(lambda x, y: hf.reshape(y[::-1] + 1, (30, 100)), donate_argnums=(0,))
        given = [hf.zeros((30, 100)) + hf.asarray(numbers(30, 100)) for _ in range(64)]
        given += [hf.asarray(numbers(30, 100)) for _ in range(64)]  # in memory of NumPy's, which is so small
        other, places = hf.asarray(numbers(3000)), set()
        while given:
            found = f(given.pop(), other).numpy()
            places.add(found.ctypes.data % 64)
            np.testing.assert_array_equal(found, numbers(3000)[::-1].reshape(30, 100) + 1)
    assert len(places) > 1


def test_state_is_updated_where_it_lies() -> None:
    with host_target.use(small_caches()):
        v = hf.Variable(numbers(3001))

        @hf.function
        def step(x: Any) -> None:
            v.assign_add(x)

        step(numbers(3001))
        step(numbers(3001))
    np.testing.assert_array_equal(v.numpy(), numbers(3001) + numbers(3001) + numbers(3001))


@pytest.mark.parametrize("size", [4096, 1 << 20, 3 << 20])
def test_copies_of_large_arrays_lie_at_lines(size: int) -> None:
    made = hf.asarray(np.arange(size, dtype=np.float32).reshape(4, -1)[:, ::-1])
    array = made.numpy()
    assert array.ctypes.data % 64 == 0
    np.testing.assert_array_equal(array, np.arange(size, dtype=np.float32).reshape(4, -1)[:, ::-1])
    assert array.flags.c_contiguous


def test_a_copy_is_a_copy() -> None:
    given = np.ones((2000, 7), np.float64, order="F")
    for copy in (memory_pool.copied(given), memory_pool.copied(given[:3]), memory_pool.copied(np.float32(3))):
        assert not np.shares_memory(copy, given) and copy.flags.c_contiguous and copy.flags.writeable
    given[:] = 2
    assert type(memory_pool.copied(np.ma.masked_array(given))) is np.ndarray


@pytest.mark.parametrize("size", [4097, 8192, 4096 * 4, 4096 * 5 + 77, 70_001, 262_144 + 4096 + 5])
@pytest.mark.parametrize("way", ["sum", "max", "mean", "logsumexp", "norm"])
def test_chunks_that_are_read_in_turn_fold_to_the_same_bits(way: str, size: int) -> None:
    function = {
        "sum": hf.sum,
        "max": hf.max,
        "mean": lambda x: (hf.mean(x), hf.sum(x)),
        "logsumexp": hf.logsumexp,
        "norm": lambda x: hf.sqrt(hf.sum(x * x)),
    }[way]
    array = numbers(size)
    array[size // 2] = -0.0
    with host_target.use(small_caches()):
        found = hf.function(function)(array)
    expected = function(hf.asarray(array))
    for one, other in zip(hf.tree.leaves(found), hf.tree.leaves(expected), strict=True):
        assert same_bits(one.numpy(), other.numpy())


def test_several_chunks_are_read_in_turn_from_memory_alone() -> None:
    array = numbers(70_001)
    assert text_of(hf.sum, (array,), small_caches()) != text_of(hf.sum, (array,), host_target.target())
    pair = array, array
    assert text_of(lambda x, y: hf.sum(x * y), pair, small_caches()) == text_of(
        lambda x, y: hf.sum(x * y), pair, host_target.target()
    )
