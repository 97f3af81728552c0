"""Datasets that go on with the next element where a function of the user's raised: ``Dataset.ignore_errors``."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from typing import Any

from hybridflow.data import elements
from hybridflow.data.map_filter import Filter, Map
from hybridflow.data.pipeline import INFINITE, UNKNOWN, Elements, Node, PipelineIterator, Stepwise
from hybridflow.data.threads import Prefetch
from hybridflow.errors import ArgumentError


class _Skipped(elements.Nested):
    """In the place of an element whose call raised, from the map to what leaves it out."""

    __slots__ = ()


class _Tolerant:
    """A function that gives ``instead`` where it raises."""

    def __init__(self, function: Callable[..., Any], instead: object, is_told: bool, text: str) -> None:
        self.function, self.instead, self.is_logged, self.text = function, instead, is_told, text

    def __call__(self, *args: object) -> Any:
        try:
            return elements.converted(self.function(*args), self.text)
        except Exception as error:
            if self.is_logged:
                logging.getLogger("hybridflow").warning("[%s] an element is left out: %r", self.text, error)
            return self.instead


def tolerant(node: Node, is_told: bool) -> Node:
    """The elements of maps and filters, one upon the other, less those of which a function raises.

    Raises ArgumentError for another node: what it had begun with would be lost.
    """
    result = _without(node, is_told)
    if result is node:
        raise ArgumentError(
            "Dataset.ignore_errors",
            f"it follows {type(node).__name__}, and works behind map and filter: put it right behind the map whose "
            "calls may raise.",
        )
    return result


def _without(node: Node, is_told: bool) -> Node:
    if not isinstance(node, (Map, Filter, Prefetch)) or (isinstance(node, Filter) and node.ends):
        return node
    copied = copy.copy(node)
    copied.source = _without(node.source, is_told)
    if isinstance(copied, Filter):
        copied.predicate = _Tolerant(copied.predicate, False, is_told, copied.text)
    if isinstance(copied, Map):
        copied.function = _Tolerant(copied.function, _Skipped(), is_told, copied.text)
        return Ignored(copied)
    return node if isinstance(node, Prefetch) and copied.source is node.source else copied


class Ignored(Node):
    """The elements of a map less those of which its function raised."""

    def __init__(self, source: Map) -> None:
        self.source = source

    def runner(self) -> PipelineIterator:
        return IgnoredRun(self.source)

    def spec(self) -> Any:
        for element in self.runner().run():
            return elements.spec_of(element)
        raise ArgumentError("Dataset.ignore_errors", "there is no element, so it is unknown of which kind they are.")

    def cardinality(self) -> int:
        return INFINITE if self.source.cardinality() == INFINITE else UNKNOWN


class IgnoredRun(Stepwise):
    def run(self) -> Elements:
        for element in self.source.run():
            if not isinstance(element, _Skipped):
                yield element
