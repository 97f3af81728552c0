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

from hybridflow import code_traits
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
        "keras",
        "optree",
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
_STDLIB = tuple({os.path.join(os.path.realpath(sysconfig.get_path(name)), "") for name in ("stdlib", "platstdlib")})
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

USER, FOLLOWED, LIBRARY = "user", "followed", "library"


@functools.lru_cache(4096)
def owner_of(filename: str) -> str:
    """USER for code of the user's files, FOLLOWED for a library's that is recorded all the same, else LIBRARY."""
    if is_internal(filename):
        return FOLLOWED if "followed" in code_traits.of_file(filename) else LIBRARY
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


def is_users_function(value: object) -> bool:
    """Whether a value is a Python function of the user's."""
    return isinstance(value, types.FunctionType) and owner_of(value.__code__.co_filename) == USER


def is_library_module(name: str) -> bool:
    """Whether a module, given by its name, belongs to a library."""
    top = name.partition(".")[0]
    if top == "hybridflow":
        return "followed" not in code_traits.of_module(name)
    return top in NUMERIC or (top in sys.stdlib_module_names and top != "__main__")


def is_of_hybridflow(kind: type) -> bool:
    """Whether a class is hybridflow's own."""
    return (kind.__module__ or "").partition(".")[0] == "hybridflow"


def is_ours(kind: type) -> bool:
    """Whether a class is hybridflow's own, and its code is not followed."""
    return is_of_hybridflow(kind) and is_library_module(kind.__module__)


def is_users_class(kind: type) -> bool:
    """Whether a class was written by the user: its instances and its methods may do anything."""
    return bool(kind.__flags__ & _HEAP_TYPE) and not is_library_module(kind.__module__ or "")


_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE of CPython's object.h
