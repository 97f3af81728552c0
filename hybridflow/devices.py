"""Devices: where arrays lie, and ``hf.device``.

A device is named "cpu", or "gpu:0", "gpu:1" ...  An array itself says where it lies; nothing else is kept.
Operations run where their operands lie, and values made from nothing go to the device of the innermost scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridflow.context import current, enter_device
from hybridflow.errors import DeviceError

if TYPE_CHECKING:
    from hybridflow.tensor import Tensor

CPU = "cpu"

_NAME = re.compile(r"cpu|gpu:(0|[1-9]\d*)")


def parse(name: str) -> str:
    """The canonical name of a device; "gpu" is the first one.  Raises DeviceError for what names none."""
    if name == "gpu":
        return "gpu:0"
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise DeviceError("device", f"{name!r} is not a device. Devices are 'cpu', 'gpu:0', 'gpu:1' ...")
    return name


def number(device: str) -> int:
    """The number of a GPU."""
    return int(device.removeprefix("gpu:"))


class device:  # a lower-case name, because it reads as a statement
    """Put what is created inside the block onto a device: ``with hf.device("gpu:0"):``.

    Tensors that exist already stay where they are; inside a traced function a scope means nothing, because the whole
    function runs where its arguments lie.  Raises DeviceError where there is no such device.
    """

    __slots__ = ("_before", "name")

    def __init__(self, name: str) -> None:
        self.name = parse(name)
        if self.name != CPU:
            from hybridflow.runtime import cuda

            cuda.check_device(number(self.name))
        self._before: list[str | None] = []

    def __enter__(self) -> None:
        self._before.append(current.device)
        try:
            enter_device(self.name)
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


def list_devices() -> list[str]:
    """The devices of this process."""
    from hybridflow.runtime import cuda

    return [CPU, *(f"gpu:{k}" for k in range(cuda.count()))]


def scope() -> str:
    """The device of the innermost scope."""
    return current.device or CPU


def of(array: Any) -> str:
    """Where an array lies."""
    return CPU if isinstance(array, np.ndarray) else f"gpu:{array.device.id}"


def moved(array: Any, device: str) -> Any:
    """The array on a device: itself if it lies there, else a copy."""
    here = of(array)
    if here == device:
        return array
    if here != CPU:
        array = array.get()
    if device == CPU:
        return array
    from hybridflow.runtime import cuda

    return cuda.to_device(array, number(device))


def placed(array: np.ndarray) -> Any:
    """A fresh array on the device of the innermost scope."""
    return array if current.device is None else moved(array, current.device)


def common(stage: str, tensors: Iterable[Tensor]) -> str | None:
    """The device of all ``tensors``; None when there are none.  Raises DeviceError when they lie on several."""
    first: Tensor | None = None
    for tensor in tensors:
        if first is None:
            first = tensor
        elif tensor.device != first.device:
            raise DeviceError(
                stage,
                f"the operands lie on different devices: {first.type} on {first.device}, {tensor.type} on "
                f"{tensor.device}. Move one with x.to_device({first.device!r}), or create it inside `with "
                f"hf.device({first.device!r})`.",
            )
    return None if first is None else first.device


def meeting_place(stage: str, tensors: Iterable[Tensor], movable: int = 0) -> str:
    """The device on which ``tensors`` are to be combined.

    Scalars, and tensors of up to ``movable`` bytes, follow the others; alone, they meet on a GPU if one lies there.
    Raises DeviceError when the others lie on several devices.
    """
    tensors = list(tensors)
    large = common(stage, (t for t in tensors if t.ndim and t._array.nbytes > movable))
    if large is not None:
        return large
    return max((t.device for t in tensors), default=scope())  # "gpu" sorts after "cpu"
