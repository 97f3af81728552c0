"""``import tensorflow`` and ``import keras`` answered by ``hybridflow.compat``, so that files run as they are."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from hybridflow.errors import ArgumentError

_TF, _V1, _KERAS = "hybridflow.compat.tf", "hybridflow.compat.v1", "hybridflow.compat.tf.keras"
# Names of packages, each with what answers; the first that fits a module's name counts.
_ALWAYS = {
    "tensorflow.compat.v1": _V1,
    "tensorflow.compat.v2": _TF,
    "tensorflow.python": _TF,
    "tf_keras": _KERAS,
    "keras": _KERAS,
}
_BY_VERSION = {1: {**_ALWAYS, "tensorflow": _V1}, 2: {**_ALWAYS, "tensorflow": _TF}}
_PACKAGES = ("tensorflow", "keras", "tf_keras")


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of TensorFlow and Keras among those of hybridflow."""

    def __init__(self, version: int) -> None:
        self.version = version
        self.specs: dict[str, Any] = {}  # of modules while they are entered under a second name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in _PACKAGES:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = self._module(spec.name)
        self.specs[spec.name] = module.__spec__
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """The module has run already; its own description comes back, which importing replaced."""
        name = module.__spec__.name if module.__spec__ is not None else ""
        module.__spec__ = self.specs.pop(name, module.__spec__)

    def _module(self, name: str) -> types.ModuleType:
        answers = _BY_VERSION[self.version]
        known = next(package for package in answers if name == package or name.startswith(f"{package}."))
        rest = name.removeprefix(known)
        start = answers[known] if not rest or answers[known] != _V1 else _TF  # rooms of both are those of the second
        try:
            return importlib.import_module(start + rest)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith(start):
                raise
        room, _, last = (start + rest).removeprefix(_TF).lstrip(".").rpartition(".")
        answer = importlib.import_module(f"{_TF}.names").missing(room or ".", last)
        raise ModuleNotFoundError(f"No module named {name!r}: {answer}", name=name)


def install(version: int = 2) -> None:
    """Let ``import tensorflow`` and ``import keras`` in this process give hybridflow's modules of these names.

    It is off unless this is called.  Call it before anything imports TensorFlow, also where TensorFlow is installed.

    Args:
        version: What ``import tensorflow`` gives: 2, or 1 for programs with placeholders and sessions.
            ``tensorflow.compat.v1`` is there in both.

    Raises:
        ArgumentError: For another version.
        ImportError: If TensorFlow or Keras itself is imported already.

    Example:
        >>> import hybridflow as hf
        >>> hf.compat.install()
        >>> from tensorflow.keras.layers import Dense
        >>> Dense is hf.layers.Dense
        True
        >>> hf.compat.uninstall()
    """
    if version not in _BY_VERSION or isinstance(version, bool):
        raise ArgumentError("compat.install", f"version is {version!r}; it must be 1 or 2.")
    uninstall()
    for package in _PACKAGES:
        if package in sys.modules:
            raise ImportError(
                f"{package} is imported already, from {getattr(sys.modules[package], '__file__', None)}; "
                "call hybridflow.compat.install() before."
            )
    sys.meta_path.insert(0, _Finder(version))


def uninstall() -> None:
    """Let imports of TensorFlow and Keras find what is installed again; names that were imported stay what they are.

    Example:
        >>> import hybridflow as hf
        >>> hf.compat.uninstall()
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        return
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, _Finder)]
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES and getattr(module, "__name__", "").startswith("hybridflow."):
            del sys.modules[name]
    vars(sys.modules.get(_TF, types.ModuleType(_TF))).pop("python", None)
