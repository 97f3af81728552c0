"""Devices: where arrays lie, and ``hf.device``.

A device is named "cpu", or "gpu:0", "gpu:1" ...  An array itself says where it lies; nothing else is kept.
Operations run where their operands lie, and values made from nothing go to the device of the innermost scope.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from hybridflow.core.context import current, enter_device
from hybridflow.errors import DeviceError, entered

CPU = "cpu"

_NAME = re.compile(r"cpu|gpu:(0|[1-9]\d*)")


def parse(name: str) -> str:
    """The canonical name of a device; "gpu" is the first one.  Raises DeviceError for what names none."""
    if isinstance(name, str) and name == "gpu":
        return "gpu:0"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeviceError("device", f"{name!r} is not a device. Devices are 'cpu', 'gpu:0', 'gpu:1' ...")
    return name


def number(device: str) -> int:
    """The number of a GPU."""
    return int(device.removeprefix("gpu:"))


class _Traced(str):
    """The name of a device in a scope of code that is traced, whose programs obey it."""

    __slots__ = ()


class device:  # a lower-case name, because it reads as a statement
    """Device scope: tensors created inside ``with hf.device("gpu:0"):`` are placed on that device.

    Existing tensors are not moved. Operations run on the device of their operands, in compiled functions too. A
    function that uses several devices is compiled into a program for each.

    Args:
        name: a device, such as "cpu", "gpu:0" or "gpu" for the first one.

    Raises:
        DeviceError: where there is no such device.

    >>> with hf.device("cpu"):
    ...     x = hf.ones(2)
    >>> x.device
    'cpu'
    """

    __slots__ = ("_before", "name")
    is_wish = True  # of the user, whom programs obey

    @entered
    def __init__(self, name: str) -> None:
        self.name = parse(name)
        if self.name != CPU:
            from hybridflow.runtime.cuda import gpu_memory

            gpu_memory.check_device(number(self.name))
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        self._before.append(current.device)
        try:
            enter_device(_Traced(self.name) if self.is_wish and current.trace is not None else self.name)
        except BaseException:  # of a signal handler: there will be no ``__exit__``
            self.__exit__()
            raise

    def __exit__(self, *error: object) -> None:
        try:
            enter_device(self._before[-1])
        except BaseException:
            enter_device(self._before[-1])
            raise
        finally:
            self._before.pop()


class placing(device):
    """A scope of the product's own, which follows what is there."""

    __slots__ = ()
    is_wish = False


def list_devices() -> list[str]:
    """The devices of this process.

    Returns:
        A list of names: "cpu", then "gpu:0" and so on.

    >>> hf.list_devices()[0]
    'cpu'
    """
    from hybridflow.runtime.cuda import gpu_memory

    return [CPU, *(f"gpu:{k}" for k in range(gpu_memory.count()))]


def scope() -> str:
    """The device of the innermost scope."""
    return current.device or CPU


def traced_scope() -> str | None:
    """The device of the innermost scope, where that is in code that is traced: what programs make there lies there."""
    device = current.device
    return str(device) if isinstance(device, _Traced) and current.trace is not None else None


def of(array: np.ndarray) -> str:
    """Where an array lies."""
    return CPU if isinstance(array, np.ndarray) else f"gpu:{array.device.id}"


def moved(array: np.ndarray, device: str) -> Any:
    """The array on a device: itself if it lies there, else a copy."""
    here = of(array)
    if here == device:
        return array
    from hybridflow.runtime.cuda import device_copies

    if device == CPU:
        return device_copies.to_host(array)
    return (
        device_copies.to_device(array, number(device)) if here == CPU else device_copies.between(array, number(device))
    )


def settle(device: str) -> None:
    """Wait for programs under way that check something.  Raises the error of a check that has failed."""
    if device != CPU:
        from hybridflow.runtime.cuda import device_copies

        device_copies.settle(number(device))


def placed(array: np.ndarray) -> Any:
    """A fresh array on the device of the innermost scope."""
    return array if current.device is None else moved(array, current.device)
