"""Comparisons are fair only where the other side runs as it would by itself."""

from __future__ import annotations

import os
import sys

# Forces OpenBLAS, and so NumPy's products, onto the kernels of an older CPU.  It is read when NumPy is loaded.
_OVERRIDES = ("OPENBLAS_CORETYPE",)


def environment() -> dict[str, str]:
    """The environment without what would slow a peer down: for processes that measure."""
    return {name: value for name, value in os.environ.items() if name not in _OVERRIDES}


def restart_without_blas_overrides() -> None:
    """Start this process anew, if NumPy was loaded under an override: only then does it choose for itself."""
    if any(name in os.environ for name in _OVERRIDES):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment())
