"""What modules, packages and functions of hybridflow say of their code to what looks at code: guards, and errors.

A module says it in ``__traits__``, a tuple of the words below, ahead of its imports; what a package says holds for its
modules too.  A function is marked by ``declare``.  So it moves with the code: no table elsewhere names a file.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any, Literal, TypeVar

Trait = Literal["followed", "impure", "quiet", "makes tensors", "between", "compat", "stands in", "records", "a step"]
MEANINGS: dict[Trait, str] = {
    "followed": "its objects hold what the user sets: guards record what it reads, like the user's own code",
    "impure": "its functions read or change more than their arguments",
    "quiet": "its functions call nothing of the user's but what they are given as arguments",
    "makes tensors": "its functions make tensors of the arrays that they are given, and look at nothing else",
    "between": "it runs between what the user called and an op: errors name none of its functions",
    "compat": "its classes have another library's names for classes of hybridflow",
    "stands in": "it does what the user's code did before that was converted: its errors are those of the user's code",
    "records": "it runs between lines of the user's, to record what they read: tracebacks pass over it",
    "a step": "it is traced for a training step, in which Keras computes from arguments and variables alone",
}

_F = TypeVar("_F", bound=Callable[..., Any])

PACKAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "")
# The folders of the package; in a clone two of its packages are links to others.
FOLDERS = {PACKAGE: "hybridflow"} | {
    os.path.join(os.path.realpath(PACKAGE + name), ""): f"hybridflow.{name}" for name in ("compiler", "runtime")
}


def declare(trait: Trait) -> Callable[[_F], _F]:
    """Say a trait of one function: what wraps it by ``functools.wraps`` has it as well."""

    def mark(function: _F) -> _F:
        function.__dict__["__traits__"] = (*function.__dict__.get("__traits__", ()), trait)
        return function

    return mark


@functools.lru_cache(4096)
def of_module(name: str) -> frozenset[str]:
    """The traits of a module of hybridflow that was imported, with those of the packages around it; none of others."""
    if name.partition(".")[0] != "hybridflow":
        return frozenset()
    traits: frozenset[str] = frozenset()
    while name:
        names = getattr(sys.modules.get(name), "__dict__", {}).get("__traits__", ())
        if not MEANINGS.keys() >= set(names):
            raise ValueError(f"{name}.__traits__ is {names}; there are {tuple(MEANINGS)}")
        traits |= frozenset(names)
        name = name.rpartition(".")[0]
    return traits


@functools.lru_cache(4096)
def of_file(filename: str) -> frozenset[str]:
    """The traits of the module that code is from, by the file's name; none of code that is not hybridflow's."""
    folders = [folder for folder in FOLDERS if filename.startswith(folder)]
    if not folders:
        return frozenset()
    folder = max(folders, key=len)
    parts = filename.removeprefix(folder).removesuffix(".py").split(os.sep)
    return of_module(".".join((FOLDERS[folder], *parts)))


def of_function(function: object) -> tuple[str, ...]:
    """The traits that one function was declared to have, besides those of its module."""
    result: tuple[str, ...] = getattr(function, "__dict__", {}).get("__traits__", ())
    return result
