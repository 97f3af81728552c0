"""Walks: lists of steps that native code hands to the driver (see ``command_buffer_code``)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from hybridflow import flags
from hybridflow.runtime import uninterruptible
from hybridflow.runtime.cuda import cublaslt
from hybridflow.runtime.cuda.command_words import COOPERATIVE, COPY, GRAPH, LAUNCH, LIST, PRODUCT, WORDS, ZERO
from hybridflow.runtime.cuda.driver import WALKED, Driver, failure
from hybridflow.runtime.native import native_functions

_KINDS = (
    "launch of a kernel",
    "copy",
    "copy to the host",
    "memset",
    "event",
    "wait for an event",
    "launch of a graph",
    "product by a library",
    "launch of blocks that wait for each other",
)

Step = tuple[int, ...]
Address = tuple[int, int]  # a base, and bytes behind it


def launch(
    function: int,
    blocks: int,
    threads: int,
    stream: int,
    number: int | None,
    words: int = -1,
    together: bool = False,
    memory: int = 0,
) -> Step:
    """``together``: the blocks wait for each other.  Each asks for so many bytes of ``memory``."""
    kind = COOPERATIVE if together else LAUNCH
    return kind, function, blocks, threads, stream, number is not None, number or 0, words, memory


def copy(target: Address, source: Address, size: int, kind: int = COPY) -> Step:
    return kind, *target, *source, size, 0, 0, 0


def zero(target: Address, count: int) -> Step:
    return ZERO, *target, count, 0, 0, 0, 0, 0


def event(kind: int, at: Address, stream: int) -> Step:
    return kind, *at, 0, 0, 0, stream, 0, 0


def graph(handle: int) -> Step:
    return GRAPH, handle, 0, 0, 0, 0, 0, 0, 0


def product(words: Any) -> Step:
    """A product by a library; ``words``, an array that has to live as long as the walk, are what it is told."""
    return PRODUCT, words.ctypes.data, 0, 0, 0, 0, 0, 0, 0


@uninterruptible.loaded
def _code() -> ModuleType:
    from hybridflow.runtime.cuda import command_buffer_code  # only where the disk cache has no machine code for it

    return command_buffer_code


@uninterruptible.once
def _native_launcher() -> Callable[..., int]:
    checked = bool(flags.VERIFY.value)
    address = native_functions.load(lambda: _code().build(checked), ("walk", WALKED, checked), ("walk",), {})["walk"]
    return ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3)(address)  # gives up Python's lock meanwhile


class CommandBuffer:
    """Steps, and the ``words`` that launches among them are told by value; those at ``addresses`` have the base of that
    number added."""

    def __init__(
        self,
        driver: Driver,
        steps: Sequence[Step],
        words: Sequence[int] = (),
        addresses: Sequence[tuple[int, int]] = (),
    ) -> None:
        assert all(len(step) == WORDS for step in steps)
        self.steps = tuple(steps)
        kept: list[Any] = [
            np.array([word for step in steps for word in step], np.int64),
            np.array(words, np.int64),
            np.array([word for pair in addresses for word in pair], np.int64),
            driver.table,
        ]
        starts = [array.ctypes.data for array in kept[:3]]
        self._kept = kept
        self._list = (ctypes.c_int64 * len(LIST))(
            starts[0], len(steps), starts[1], len(words), starts[2], len(addresses), ctypes.addressof(driver.table)
        )
        self._address = ctypes.addressof(self._list)
        self._walk = _native_launcher()

    def __call__(self, bases: Any, streams: Any) -> None:
        """Hand all steps to the driver; ``bases`` and ``streams`` are arrays of 64-bit words.  Raises DeviceError where
        it refuses one."""
        status = self._walk(self._address, bases, streams)
        if status:
            kind, number = self.steps[status >> 32][0], status & 0xFFFFFFFF
            raise cublaslt.failure(number) if kind == PRODUCT else failure(number, _KINDS[kind])
