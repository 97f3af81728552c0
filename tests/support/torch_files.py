"""Files as PyTorch writes them, without PyTorch: the pickles name its classes, which need not be there."""

from __future__ import annotations

import io
import pickle
import sys
import types
import zipfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

_STORAGES = {"float32": "FloatStorage", "float64": "DoubleStorage", "int64": "LongStorage", "float16": "HalfStorage"}


class _Pickler(pickle.Pickler):
    """Writes arrays as tensors that refer to storages."""

    def __init__(self, file: Any, view_metadata: bool) -> None:
        super().__init__(file, protocol=2)
        self.storages: dict[str, np.ndarray] = {}
        self._old = view_metadata

    def persistent_id(self, value: Any) -> Any:
        if not isinstance(value, _Held):
            return None
        kind = getattr(sys.modules["torch"], _STORAGES[value.array.dtype.name])
        parts = ("storage", kind, value.key, "cpu", value.array.size)
        return (*parts, None) if self._old else parts

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return NotImplemented
        key = str(len(self.storages))
        self.storages[key] = value
        steps = [step // value.itemsize for step in value.strides]
        rebuild = sys.modules["torch._utils"]._rebuild_tensor_v2
        return rebuild, (_Held(key, value), 0, value.shape, tuple(steps), False, OrderedDict())


class _Held:
    def __init__(self, key: str, array: np.ndarray) -> None:
        self.key, self.array = key, array


def _class(name: str, module: str) -> type:
    return type(name, (), {"__module__": module})


@contextmanager
def _torch() -> Iterator[None]:
    """Within this there are modules of PyTorch's names, so that pickles can name what is in them."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
    for name in _STORAGES.values():
        setattr(torch, name, _class(name, "torch"))

    def _rebuild_tensor_v2(*args: Any) -> None: ...

    _rebuild_tensor_v2.__module__ = "torch._utils"
    _rebuild_tensor_v2.__qualname__ = "_rebuild_tensor_v2"
    utils._rebuild_tensor_v2 = _rebuild_tensor_v2  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in ("torch", "torch._utils")}
    sys.modules.update({"torch": torch, "torch._utils": utils})
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def write_new(path: Any, state: Mapping[str, Any]) -> None:
    """A file of PyTorch 1.6 and later."""
    with _torch():
        described = io.BytesIO()
        pickler = _Pickler(described, False)
        pickler.dump(OrderedDict(state))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", described.getvalue())
        archive.writestr("archive/byteorder", "little")
        for key, array in pickler.storages.items():
            archive.writestr(f"archive/data/{key}", array.ravel(order="K").tobytes())
        archive.writestr("archive/version", "3\n")


def write_old(path: Any, state: Mapping[str, Any]) -> None:
    """A file before PyTorch 1.6."""
    with _torch(), open(path, "wb") as file:
        pickle.dump(0x1950A86A20F9469CFC6C, file, protocol=2)
        pickle.dump(1001, file, protocol=2)
        pickle.dump({"protocol_version": 1001, "little_endian": True, "type_sizes": {}}, file, protocol=2)
        pickler = _Pickler(file, True)
        pickler.dump(OrderedDict(state))
        pickle.dump(list(pickler.storages), file, protocol=2)
        for array in pickler.storages.values():
            file.write(array.size.to_bytes(8, "little"))
            file.write(array.ravel(order="K").tobytes())
