"""Arrays to a GPU and from it, and what was found wrong there by the time that somebody looks."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.runtime.cuda import gpus
from hybridflow.runtime.cuda.device import device


def to_device(array: np.ndarray, number: int) -> Any:
    """A copy of a host array on a GPU, which is queued when this returns.  Raises DeviceError where it cannot be."""
    used = device(number)
    with gpus.on(number):
        return used.transfers.upload(np.ascontiguousarray(array).reshape(array.shape))


def to_host(array: Any) -> np.ndarray:
    """A copy of an array of a GPU on the host, when all that was queued before it is done.  Raises the error of a check
    that has failed in a program that ran there before."""
    number = array.device.id
    used = device(number)
    with gpus.on(number):
        if not array.flags.c_contiguous:
            array = gpus.cupy().ascontiguousarray(array)
        found = used.transfers.download(array)
        used.ledger.look()
    return found
