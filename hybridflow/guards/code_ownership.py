"""Whose code it is: the user's, which may read anything, or a library's, which is known not to change.

Only the standard library, hybridflow and a few numeric libraries by name count as libraries.  A package that was
installed into ``site-packages`` is the user's like a module in a folder: what it reads is recorded all the same.
"""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import types
from typing import Any

from hybridflow.errors import is_internal

NUMERIC = frozenset(
    (
        "numpy",
        "ml_dtypes",
        "llvmlite",
        "cupy",
        "scipy",
        "jax",
        "jaxlib",
        "torch",
        "tensorflow",
        "numba",
        "pandas",
        "sklearn",
    )
)
# Modules of the standard library whose Python code is followed like the user's, because it hands on what it is given:
# containers, descriptors, wrappers.
_FOLLOWED = frozenset(
    (
        "_collections_abc",
        "_weakrefset",
        "argparse",
        "collections",
        "contextlib",
        "copy",
        "functools",
        "os",
        "string",
        "types",
        "typing",
        "weakref",
    )
)
# Rooms of hybridflow whose code is followed too, because its objects hold what the user sets.
_FOLLOWED_ROOMS = ("hybridflow.layers", "hybridflow.losses", "hybridflow.metrics", "hybridflow.models")
_FOLLOWED_FILES = (os.path.join(os.sep, "hybridflow", "module.py"),)
_STDLIB = tuple({os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib")})
_ROOM_FOLDERS = tuple(os.sep + room.replace(".", os.sep) + os.sep for room in _FOLLOWED_ROOMS)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

USER, FOLLOWED, LIBRARY = "user", "followed", "library"


@functools.lru_cache(4096)
def owner_of(filename: str) -> str:
    """USER for code of the user's files, FOLLOWED for a library's that is recorded all the same, else LIBRARY."""
    if is_internal(filename):
        is_followed = filename.endswith(_FOLLOWED_FILES) or any(room in filename for room in _ROOM_FOLDERS)
        return FOLLOWED if is_followed else LIBRARY
    if filename.startswith("<frozen "):
        return FOLLOWED if filename[8:-1].partition(".")[0] in _FOLLOWED else LIBRARY
    if os.sep not in filename:
        return USER
    path = os.path.realpath(filename)
    for folder in _INSTALLED:
        if folder in path:
            top = path.rpartition(folder)[2].partition(os.sep)[0]
            return LIBRARY if top.removesuffix(".py") in NUMERIC else USER
    for folder in _STDLIB:
        if path.startswith(folder):
            top = path[len(folder) :].partition(os.sep)[0]
            return FOLLOWED if top.removesuffix(".py") in _FOLLOWED else LIBRARY
    return USER


def is_recorded(code: types.CodeType) -> bool:
    """Whether what the code reads is recorded."""
    return owner_of(code.co_filename) != LIBRARY


def is_users_function(value: Any) -> bool:
    """Whether a value is a Python function of the user's."""
    return isinstance(value, types.FunctionType) and owner_of(value.__code__.co_filename) == USER


def is_library_module(name: str) -> bool:
    """Whether a module, given by its name, belongs to a library."""
    top = name.partition(".")[0]
    if top == "hybridflow":
        return not name.startswith(_FOLLOWED_ROOMS)
    return top in NUMERIC or (top in sys.stdlib_module_names and top != "__main__")


def is_ours(kind: type) -> bool:
    """Whether a class is hybridflow's own, and none of a room whose code is followed."""
    module = kind.__module__ or ""
    return module.partition(".")[0] == "hybridflow" and is_library_module(module)


def is_users_class(kind: type) -> bool:
    """Whether a class was written by the user: its instances and its methods may do anything."""
    return bool(kind.__flags__ & _HEAP_TYPE) and not is_library_module(kind.__module__ or "")


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's object.h
