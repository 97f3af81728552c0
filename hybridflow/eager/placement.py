"""On which device tensors are combined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hybridflow.core.devices import CPU, scope
from hybridflow.core.tensor import Tensor
from hybridflow.errors import DeviceError


def shared(tensors: Sequence[Tensor]) -> str | None:
    """The device on which all ``tensors`` lie; None where that is not one, or there are none.  What every call asks."""
    if not tensors:
        return None
    first = tensors[0]._array
    if type(first) is np.ndarray:
        return CPU if all(type(x._array) is np.ndarray for x in tensors) else None
    here = first.device.id
    for x in tensors:
        array = x._array
        if type(array) is np.ndarray or array.device.id != here:
            return None
    return f"gpu:{here}"


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


def common_device(tensors: Iterable[Tensor], movable: int = 0) -> str | None:
    """The device on which ``tensors`` are to be combined; None where that is not one.

    Scalars, and tensors of up to ``movable`` bytes, follow the others; alone, they meet on a GPU if one lies there.
    """
    tensors = list(tensors)
    large = {t.device for t in tensors if t.ndim and t._array.nbytes > movable}
    if large:
        return large.pop() if len(large) == 1 else None
    return max((t.device for t in tensors), default=scope())  # "gpu" sorts after "cpu"


def device_to_meet_on(stage: str, tensors: Iterable[Tensor]) -> str:
    """The same; raises DeviceError where it is not one device."""
    tensors = list(tensors)
    return common_device(tensors) or common(stage, (t for t in tensors if t.ndim)) or scope()
