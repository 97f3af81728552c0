"""Which variables and modules a module holds, in order: in its attributes, and in the containers and modules there.

This is apart from ``module``, whose code is recorded step by step while it is traced.  What these functions read is
noted at once (see ``guards.module_reads``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hybridflow.array.random import Generator
from hybridflow.core.variable import Variable

Parts = list[tuple[str, Any]]


def by_name(attributes: dict[str, Any]) -> Parts:
    """Attributes in the order of their names."""
    return sorted(attributes.items(), key=lambda pair: pair[0])


def trained_first(attributes: dict[str, Any], without: Collection[str]) -> Parts:
    """Attributes but for some: variables that are trained, other variables, the others; each in the order in which
    they were set."""
    return sorted([pair for pair in attributes.items() if pair[0] not in without], key=_rank)


def _rank(pair: tuple[str, Any]) -> int:
    value = pair[1]
    return 2 if not isinstance(value, Variable) else 0 if value.trainable else 1


class Reader:
    """How ``traverse`` reads objects."""

    def attribute(self, value: object, name: str) -> Any:
        return getattr(value, name)

    def call(self, value: Any, name: str) -> Any:
        """What a method returns."""
        return getattr(value, name)()

    def pairs(self, parts: Any) -> Iterable[tuple[Any, Any]]:
        """Keys or positions of a container, with its items; else what is given."""
        if isinstance(parts, dict):
            return parts.items()
        return enumerate(parts) if isinstance(parts, (list, tuple)) else parts

    def is_one(self, value: object, kinds: tuple[type, ...]) -> bool:
        return isinstance(value, kinds)


def traverse(root: object, module: type, reader: Reader | None = None) -> Iterator[tuple[str, Any, bool]]:
    """The variables and modules in one of the class ``module``: with their paths, and whether all around are
    trainable."""
    holders = Generator, Variable, module, list, tuple, dict
    return _traverse_part(root, "", True, set(), module, holders, reader or Reader())


def _traverse_part(
    value: object, path: str, free: bool, seen: set[int], module: type, holders: tuple[type, ...], reader: Reader
) -> Iterator[tuple[str, Any, bool]]:
    if isinstance(value, Generator):
        value = reader.attribute(value, "state")
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Variable):
        yield path, value, free
        return
    parts = value
    if isinstance(value, module):
        free = free and reader.attribute(value, "trainable")
        yield path, value, free
        parts = reader.call(value, "_attributes")
    for name, part in reader.pairs(parts):
        if reader.is_one(part, holders):
            inner = f"{path}.{name}" if path else str(name)
            yield from _traverse_part(part, inner, free, seen, module, holders, reader)
