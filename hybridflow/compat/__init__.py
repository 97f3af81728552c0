"""Other libraries' names over what is here, so that their programs run after changing one import, or none."""

__traits__ = ("compat",)

import importlib as _importlib
from typing import Any as _Any

from hybridflow.compat.import_hook import install as install, uninstall as uninstall

__all__ = ["install", "tf", "uninstall", "v1"]


def __getattr__(name: str) -> _Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}")
    return _importlib.import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return __all__
