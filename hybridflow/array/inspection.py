"""What the array API standard lets code ask of the namespace as a whole."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridflow.array.datatypes import isdtype
from hybridflow.compiler.ir import dtypes
from hybridflow.core import devices
from hybridflow.core.promotion import default_float, default_int

# Those of the standard: float16 and bfloat16 are ours alone.
_STANDARD = (dtypes.bool_, *dtypes.INTEGERS, dtypes.float32, dtypes.float64, *dtypes.COMPLEX)


class NamespaceInfo:
    """Capabilities, devices and dtypes; see the array API standard's inspection API."""

    __slots__ = ()

    def capabilities(self) -> dict[str, Any]:
        """What code may rely on: masks as indices and sizes that depend on values, outside of traced functions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> str:
        """Where new tensors lie: the device of the innermost ``hf.device`` block, else the CPU."""
        return devices.scope()

    def devices(self) -> list[str]:
        """The devices of this process."""
        return list(devices.list_devices())

    def default_dtypes(self, *, device: str | None = None) -> dict[str, np.dtype[Any]]:
        """The dtypes of Python numbers and of positions."""
        _check(device)
        return {
            "real floating": default_float,
            "complex floating": dtypes.complex64,
            "integral": default_int,
            "indexing": default_int,
        }

    def dtypes(
        self, *, device: str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, np.dtype[Any]]:
        """The standard's dtypes of a ``kind`` (as for ``hf.isdtype``; None for all), by their names.

        Raises ArgumentError for a kind that does not exist.
        """
        _check(device)
        return {str(dtype): dtype for dtype in _STANDARD if kind is None or isdtype(dtype, kind)}


def _check(device: str | None) -> None:
    if device is not None:
        devices.parse(device)


def namespace_info() -> NamespaceInfo:
    """The array API standard's ``__array_namespace_info__``."""
    return NamespaceInfo()
