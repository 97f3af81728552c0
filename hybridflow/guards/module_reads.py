"""What the functions of ``module_parts`` read, noted at once: the steps of a loop over all attributes of all modules
would be most of what a training step records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from hybridflow import module_parts
from hybridflow.autograph.runtime.choices import Choice
from hybridflow.core.variable import Variable
from hybridflow.guards.attribute_reads import read_attribute
from hybridflow.guards.builtin_reads import get_attribute, iterate, note_class
from hybridflow.guards.container_reads import read_items
from hybridflow.guards.guard_builder import GuardBuilder


def _by_name(recording: GuardBuilder, attributes: dict[str, Any]) -> module_parts.Parts:
    recording.note(read_items, attributes)
    return module_parts.by_name(attributes)


def _trained_first(recording: GuardBuilder, attributes: dict[str, Any], without: Collection[str]) -> module_parts.Parts:
    recording.note(_note_ranks, attributes, without)
    return module_parts.trained_first(attributes, without)


def _note_ranks(recording: GuardBuilder, attributes: dict[str, Any], without: Collection[str]) -> None:
    read_items(recording, attributes)
    iterate(recording, without)
    for value in attributes.values():
        if isinstance(value, Variable):
            note_class(recording, value)
            read_attribute(recording, value, "trainable", value.trainable)


class _RecordedReader(module_parts.Reader):
    """Code of the user's that it comes upon is recorded as it runs."""

    def __init__(self, recording: GuardBuilder) -> None:
        self.recording = recording

    def attribute(self, value: object, name: str) -> Any:
        return get_attribute(self.recording, value, name)

    def call(self, value: object, name: str) -> Any:
        method = get_attribute(self.recording, value, name)
        return self.recording.note(self.recording.prepare, method)()

    def pairs(self, parts: object) -> Iterable[tuple[Any, Any]]:
        if isinstance(parts, (dict, list, tuple)):
            self.recording.note(iterate, parts)
            if isinstance(parts, dict) and type(parts) is not dict:
                self.recording.note(self.recording.prepare, parts.items)
        return super().pairs(parts)

    def is_one(self, value: object, kinds: tuple[type, ...]) -> bool:
        if type(value) is Choice and any(isinstance(option, kinds) for option in value.options):
            raise value.refused("the variables of a module have to be known")
        self.recording.note(note_class, value)
        return isinstance(value, kinds)


def _traverse(recording: GuardBuilder, root: object, module: type) -> Iterator[tuple[str, Any, bool]]:
    recording.note(note_class, root)
    return module_parts.traverse(root, module, _RecordedReader(recording))


NOTED: dict[Any, Callable[..., Any]] = {
    module_parts.by_name: _by_name,
    module_parts.trained_first: _trained_first,
    module_parts.traverse: _traverse,
}
