"""Values of a checkpoint that wait for their variables to be made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybridflow.array.creation import asarray
from hybridflow.checkpoint import files, object_graph
from hybridflow.compiler.ir import dtypes
from hybridflow.core.context import suspended
from hybridflow.core.variable import Variable
from hybridflow.errors import CheckpointError


class Waiting:
    """Arrays of a file for variables of ``objects`` that layers are still to make.

    ``names`` says which array is for which path.  They are read when waiting begins, as the file may be gone later,
    unless it ``keeps_file``.
    """

    def __init__(
        self, objects: Mapping[str, Any], file: files.File, names: Mapping[str, str], keeps_file: bool = False
    ) -> None:
        self._objects, self._file, self._left, self._keeps_file = objects, file, dict(names), keeps_file
        self._values: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The paths of variables that are still waited for."""
        return sorted(self._left)

    def begin(self) -> None:
        """Read the arrays, and have each layer that is built say so."""
        if not self._keeps_file:
            self._values = self._file.tensors({*self._left.values()})
        self._listen()

    def end(self) -> None:
        """Wait no longer."""
        self._left, self._values = {}, {}
        for layer in object_graph.unbuilt(self._objects).values():
            if getattr(layer._when_built, "__self__", None) is self:
                layer._when_built = None

    def look(self) -> None:
        """Assign what waits for variables that are there now, and the slots of optimizers for these.

        Raises CheckpointError where an array does not fit its variable.
        """
        with suspended():
            objects = object_graph.expanded(self._objects)
            object_graph.built(objects, list(self._left))
            targets = {**object_graph.object_paths(objects), **object_graph.slots(objects)}
            present = {path: name for path, name in self._left.items() if path in targets}
            for path, name in present.items():
                check_fit(self._file, name, path, targets[path], "checkpoint")
            values = self._file.tensors({*present.values()}) if self._keeps_file else self._values
            for path, name in present.items():
                targets[path].assign(asarray(values[name], dtype=targets[path].dtype))
                del self._left[path]
            self._values = {name: self._values[name] for name in self._left.values() if name in self._values}
        self._listen()

    def _listen(self) -> None:
        """Layers that were made meanwhile, and are not built, are listened to as well."""
        if not self._left:
            return self.end()
        for layer in object_graph.unbuilt(self._objects).values():
            layer._when_built = self.look


def check_fit(file: files.File, old: str, new: str, variable: Variable, stage: str) -> None:
    """Raise CheckpointError unless an array of a file is one for a variable: of its shape, and a float for floats."""
    if file.shape(old) != tuple(variable.shape):
        raise CheckpointError(
            stage,
            f"{new} is {file.shape(old)} in {file.path} and {tuple(variable.shape)} here: it is of another model.",
        )
    stored, wanted = file.dtype(old), variable.dtype
    if stored != wanted and not (dtypes.is_float(stored) and dtypes.is_float(wanted)):
        raise CheckpointError(stage, f"{new} is {stored} in {file.path} and {wanted} here: it is of another model.")
