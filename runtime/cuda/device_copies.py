"""Arrays to a GPU and from it, and what was found wrong there by the time that somebody looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.runtime.cuda import gpu_memory
from hybridflow.runtime.cuda.device import device


def to_device(array: np.ndarray, number: int) -> Any:
    """A copy of a host array on a GPU, which is queued when this returns.  Raises DeviceError where it cannot be."""
    used = device(number)
    with gpu_memory.on(number):
        return used.transfers.upload(np.ascontiguousarray(array).reshape(array.shape))


def settle(number: int) -> None:
    """Wait for the programs under way on a GPU that check something.  Raises the error of a check that has failed."""
    with gpu_memory.on(number):
        device(number).ledger.settle_all()


def between(array: Any, number: int) -> Any:
    """A copy of an array of a GPU on another one, which is queued there when this returns, behind all that is queued on
    the first.  Raises the error of a check that has failed in a program that ran there before, for which it waits: what
    is on the second is not asked for it."""
    source, target = device(array.device.id), device(number)
    with gpu_memory.on(array.device.id):
        source.ledger.settle_all()
        if not array.flags.c_contiguous:
            array = gpu_memory.cupy().ascontiguousarray(array)
        event = source.events.recorded(gpu_memory.stream())
    try:
        with gpu_memory.on(number):
            return target.transfers.fetch(array, event)
    finally:
        source.events.give(event)  # the wait is for what it stands for now


class PendingCopy:
    """A copy of a host array that is sent to a GPU beside what is queued there; ``arrive`` gives it, and has to be
    called once, also where nobody wants it any more.  Raises DeviceError where it cannot be sent."""

    def __init__(self, array: np.ndarray, number: int) -> None:
        used = device(number)
        self._number = number
        with gpu_memory.on(number):
            self._sent = used.transfers.send(np.ascontiguousarray(array).reshape(array.shape))

    def arrive(self) -> Any:
        with gpu_memory.on(self._number):
            return self._sent.arrive()


def to_host(array: Any) -> np.ndarray:
    """A copy of an array of a GPU on the host, when all that was queued before it is done.  Raises the error of a check
    that has failed in a program that ran there before."""
    number = array.device.id
    used = device(number)
    with gpu_memory.on(number):
        if not array.flags.c_contiguous:
            array = gpu_memory.cupy().ascontiguousarray(array)
        result = used.transfers.download(array)
        used.ledger.look()
    return result
