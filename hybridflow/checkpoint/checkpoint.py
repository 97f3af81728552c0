"""Checkpoints: the state of objects in a file, and back."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.checkpoint import files, object_graph, pieces
from hybridflow.checkpoint.deferred_restore import Waiting, check_fit
from hybridflow.core.context import suspended
from hybridflow.core.file_errors import CONTENT_ERRORS, reading
from hybridflow.core.stateful import Stateful
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, CheckpointError, DataError, HybridflowError

SUFFIX = ".safetensors"
_KIND, _VERSION = "hybridflow-checkpoint", 1


class Report:
    """What a restore did, by names.

    Args:
        restored: names whose values were restored.
        missing: names of objects that the file had nothing for.
        unused: names of the file that no object took.
        waiting: what is for layers that are not built yet, and is restored when they are.

    >>> hf.checkpoint.Report(["w"], [], ["b"])
    <Report 1 restored; unused of the file: b>
    """

    def __init__(
        self, restored: list[str], missing: list[str], unused: list[str], waiting: Waiting | None = None
    ) -> None:
        self.restored, self.missing, self.unused, self._waiting = restored, missing, unused, waiting

    @property
    def waiting(self) -> list[str]:
        """What still waits for its variable."""
        return [] if self._waiting is None else self._waiting.names

    def assert_consumed(self) -> Report:
        """Check that everything found its counterpart.

        Returns:
            This report.

        Raises:
            CheckpointError: where something did not.
        """
        if self.missing or self.unused or self.waiting:
            raise CheckpointError("checkpoint", f"not everything was restored. {self._describe()}")
        return self

    def assert_existing_objects_matched(self) -> Report:
        """Check that the file had values for all objects; it may hold more.

        Returns:
            This report.

        Raises:
            CheckpointError: where it had none for one of them.
        """
        if self.missing:
            raise CheckpointError("checkpoint", f"not everything was restored. {self._describe()}")
        return self

    def expect_partial(self) -> Report:
        """This report: TensorFlow's programs say so that something may be missing, and nothing warns of it here.

        Returns:
            This report.
        """
        return self

    def _describe(self) -> str:
        parts = [f"{len(self.restored)} restored"]
        kinds = ("missing in the file", "unused of the file", "waiting for layers to be built")
        for what, names in zip(kinds, (self.missing, self.unused, self.waiting)):
            if names:
                more = f" and {len(names) - 5} more" if len(names) > 5 else ""
                parts.append(f"{what}: {', '.join(names[:5])}{more}")
        return "; ".join(parts)

    def __repr__(self) -> str:
        return f"<Report {self._describe()}>"


class Checkpoint(object_graph.Group):
    """Checkpoint: objects whose state is saved to files and restored from them, each under a name.

    Arrays are kept in the safetensors format, so that others can read them.

    Args:
        **objects: variables, modules and models, optimizers, metrics, random generators, iterators of datasets,
            objects of yours with ``state_dict()`` and ``load_state_dict(state)``, and numbers and texts. Each becomes
            an attribute.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((2,)), hf.layers.Dense(1)])
    >>> checkpoint = hf.checkpoint.Checkpoint(model=model, optimizer=hf.optimizers.Adam(), epoch=3)
    >>> path = checkpoint.save(os.path.join(tempfile.mkdtemp(), "run"))
    >>> os.path.basename(path)
    'run-1.safetensors'
    >>> before = model.get_weights()[0]
    >>> model.set_weights([hf.zeros((2, 1)), hf.zeros((1,))])
    >>> checkpoint.restore(path)
    <Report 5 restored>
    >>> bool((model.get_weights()[0] == before).all())
    True
    """

    _awaits_all = False  # whether what the file alone has waits for objects that are given later

    def __init__(self, **objects: object) -> None:
        if "save_counter" in objects:
            raise ArgumentError("Checkpoint", "save_counter is the number of the checkpoint; take another name.")
        self._objects = dict(objects)
        self.save_counter = 0
        self._waiting: Waiting | None = None

    def __getattr__(self, name: str) -> Any:
        objects = self.__dict__.get("_objects", {})
        if name in objects:
            return objects[name]
        raise AttributeError(f"the checkpoint has no object {name!r}")

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_") or name == "save_counter":
            object.__setattr__(self, name, value)
        else:
            self._objects[name] = value
            if self._waiting is not None:
                self._waiting.look()

    def save(self, file_prefix: str | os.PathLike[str], *, sharded: bool = False) -> str:
        """Write ``{file_prefix}-{number}.safetensors``, numbered from 1.

        When this returns, the file is on the disk, whole.  Of several processes the first writes it.

        Args:
            file_prefix: the path without number and suffix.
            sharded: whether each process writes a piece, into the folder ``{path}.pieces``; any number of processes
                reads them.

        Returns:
            The path of the file.

        Raises:
            OSError: where it cannot be written.
        """
        self.save_counter += 1
        return self.write(f"{os.fspath(file_prefix)}-{self.save_counter}{SUFFIX}", sharded=sharded)

    def write(self, path: str | os.PathLike[str], *, sharded: bool = False) -> str:
        """Write a file of just that name.

        Args:
            path: the path of the file.
            sharded: whether each process writes a piece: see ``save``.

        Returns:
            The path of the file.

        Raises:
            OSError: where it cannot be written.
        """
        if sharded:
            begun = in_pieces(path, self._state(), self.save_counter)
            begun.write()
            begun.finish()
            return os.fspath(path)
        return write_state(path, self._state(), self.save_counter)

    def _state(self) -> object_graph.State:
        with suspended():
            return object_graph.state_of(self._objects)

    def read(self, path: str | os.PathLike[str], **options: Any) -> Report:
        """Give the objects the state of a file, as ``restore`` does.

        Args:
            path: the path of the file.
            **options: see ``restore``.

        Returns:
            What was restored.

        Raises:
            CheckpointError: where the file and the objects differ in what there is.
        """
        return self.restore(path, **options)

    def restore(
        self,
        path: str | os.PathLike[str] | None,
        *,
        partial: bool = False,
        rename: Mapping[str, str] | Callable[[str], str] | None = None,
    ) -> Report:
        """Give the objects the state of a file; the report says what was restored.

        Values for layers that have no variables yet are read now, and wait until these are made, at the first call.

        Args:
            path: the path of the file; None restores nothing, as in a first run.
            partial: whether what both have is restored where the file and the objects differ.
            rename: a dict of beginnings, ``{"encoder": "model.layers.0"}``, or a function: from names of the file to
                those of the objects.

        Returns:
            What was restored.

        Raises:
            CheckpointError: where the file and the objects differ in what there is; nothing is changed then.
        """
        if path is None:
            return Report([], sorted(object_graph.object_paths(self._objects)), [])
        file, plain, counter = opened(path)
        with suspended():
            report = self._restored(file, plain, partial, rename)
        self.save_counter = counter
        return report

    def _restored(self, file: files.File, plain: dict[str, Any], partial: bool, rename: object) -> Report:
        objects = object_graph.expanded(self._objects)
        names = object_graph.renamed([name for name in file.names if not name.startswith(object_graph.WITHIN)], rename)
        plans = object_graph.renamed(list(plain), rename)
        take_back = object_graph.built(objects, list(names.values()))
        try:
            return self._assign(file, plain, objects, names, plans, partial)
        except BaseException:
            take_back()
            raise

    def _assign(
        self,
        file: files.File,
        plain: dict[str, Any],
        objects: dict[str, Any],
        names: dict[str, str],
        plans: dict[str, str],
        partial: bool,
    ) -> Report:
        targets: dict[str, Variable] = {}
        seen: set[int] = set()
        for path, variable in {**object_graph.object_paths(objects), **object_graph.slots(objects)}.items():
            if id(variable) not in seen:  # one that several objects share is kept once
                seen.add(id(variable))
                targets[path] = variable
        stateful = {
            name
            for name, value in objects.items()
            if object_graph.has_state_dict(value) or isinstance(value, object_graph.PLAIN)
        }
        origins = {new: old for old, new in names.items()}
        shared = {new: old for new, old in _shared(file).items() if new not in origins}
        origins.update({new: old for new, old in shared.items() if new in targets})
        renamed = {new: old for new, old in origins.items() if new in targets}
        values = {new: old for old, new in plans.items() if new in stateful}
        missing = sorted((targets.keys() - renamed.keys()) | (stateful - values.keys()))
        left = [new for new in names.values() if new not in targets]
        awaited = [*left, *shared] if self._awaits_all else object_graph.awaited(objects, left)
        later = {new: origins.get(new) or shared[new] for new in awaited if new not in targets}
        taken = {*renamed.values()}
        unused = sorted(
            [old for old, new in names.items() if new not in targets and new not in later and old not in taken]
        )
        of_model = all(name in plain for name in object_graph.OF_MODELS)
        told = (*object_graph.OF_MODELS, *object_graph.OF_SOME_MODELS) if of_model else ()
        unused += sorted([old for old, new in plans.items() if new not in stateful and old not in told])
        waiting = Waiting(self._objects, file, later, keeps_file=self._awaits_all) if later else None
        report = Report(sorted([*renamed, *values]), missing, unused, waiting)
        if not partial and (missing or unused):
            self._refuse(file, report)
        for new, old in renamed.items():
            check_fit(file, old, new, targets[new], "checkpoint")
        read = file.tensors(renamed.values())  # all of them, before anything is changed
        with reading(CheckpointError, "checkpoint", file.path, ArgumentError, DataError):
            states = {new: object_graph.unpacked(plain[old], _reader(file)) for new, old in values.items()}
        for name, value in states.items():
            if object_graph.has_state_dict(objects[name]):
                _load(file, name, objects[name], value)
        for new, old in renamed.items():
            targets[new].assign(asarray(read[old], dtype=targets[new].dtype))
        for name, value in states.items():
            if not object_graph.has_state_dict(objects[name]):
                self._objects[name] = value
        if self._waiting is not None:
            self._waiting.end()
        self._waiting = waiting
        if waiting is not None:
            waiting.begin()
        return report

    def _refuse(self, file: files.File, report: Report) -> None:
        hint = "Give partial=True to restore what both have, or rename=... for other names."
        raise CheckpointError("checkpoint", f"{file.path} is of other objects: {report._describe()}. {hint}")

    def __repr__(self) -> str:
        return f"<Checkpoint of {', '.join(self._objects) or 'nothing'}>"


def _shared(file: files.File) -> dict[str, str]:
    """The further paths of variables that have several, with those under which the file has them."""
    try:
        told = json.loads(file.texts.get("shared", "{}"))
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise CheckpointError("checkpoint", f"{file.path} cannot be read: its description is damaged.")
    return {new: old for new, old in told.items() if old in file.names}


def _load(file: files.File, name: str, value: Stateful, state: object) -> None:
    """Give an object its state, which raises where that is of another dataset, say."""
    try:
        value.load_state_dict(state)
    except (ArgumentError, DataError):
        raise
    except (HybridflowError, *CONTENT_ERRORS) as error:
        text = f"{name} does not take the state that {file.path} has for it: {type(error).__name__}: {error!s:.300}"
        raise CheckpointError("checkpoint", text) from error


def _reader(file: files.File) -> Callable[[str], Tensor]:
    def read(name: str) -> Tensor:
        if name not in file.names:
            raise CheckpointError("checkpoint", f"{file.path} lacks the array {name!r} of an object's state.")
        return file.tensor(name)

    return read


def write_state(path: str | os.PathLike[str], state: object_graph.State, counter: int = 0) -> str:
    """Write a state into a file, and return its path."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.write(path, {name: _array(value) for name, value in state.arrays.items()}, _texts(state, counter))
    return os.fspath(path)


def in_pieces(path: str | os.PathLike[str], state: object_graph.State, counter: int) -> pieces.Writing:
    """What writes a state in pieces, one of each process."""
    arrays = {name: _array(value) for name, value in state.arrays.items()}
    return pieces.Writing(path, arrays, _texts(state, counter), state)


def _texts(state: object_graph.State, counter: int) -> dict[str, str]:
    return {
        "kind": _KIND,
        "version": str(_VERSION),
        "plain": json.dumps(state.plain),
        "counter": str(counter),
        **({"shared": json.dumps(state.shared)} if state.shared else {}),
    }


def opened(path: str | os.PathLike[str]) -> tuple[files.File, dict[str, Any], int]:
    """A file, the plain values in it, and its number.

    Raises CheckpointError for a file that is damaged, of another kind or of a later version.
    """
    file = files.File(located(path))
    if pieces.PIECES in file.texts:
        file = pieces.Pieces(file.path)
    try:
        version, counter = int(file.texts.get("version", "1")), int(file.texts.get("counter", "0"))
        plain = json.loads(file.texts.get("plain", "{}"))
    except (ValueError, RecursionError):
        raise CheckpointError("checkpoint", f"{path} cannot be read: its description is damaged.") from None
    if file.texts.get("kind", _KIND) != _KIND or not isinstance(plain, dict):
        raise CheckpointError("checkpoint", f"{path} holds no checkpoint, but {file.texts.get('kind')!r}.")
    if version > _VERSION:
        raise CheckpointError("checkpoint", f"{path} is of format {version}; this hybridflow reads up to {_VERSION}.")
    return file, plain, counter


def _array(value: object) -> np.ndarray:
    return value.numpy() if isinstance(value, (Tensor, Variable)) else np.asarray(value)


def save_arrays(path: str | os.PathLike[str], arrays: Mapping[str, Any]) -> None:
    """Write arrays, tensors and variables by name into one file, in the safetensors format.

    Args:
        path: the file; one that is there is replaced at once.
        arrays: a dict of arrays, tensors and variables.

    Returns:
        None.

    Raises:
        CheckpointError: for an array of a dtype that the format lacks.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "arrays.safetensors")
    >>> hf.checkpoint.save_arrays(path, {"x": hf.asarray([1.0, 2.0])})
    >>> hf.checkpoint.load_arrays(path)
    {'x': <Tensor f32[2] cpu> [1. 2.]}
    """
    files.write(path, {name: _array(value) for name, value in arrays.items()}, {})


def load_arrays(path: str | os.PathLike[str]) -> dict[str, Tensor]:
    """Read the arrays of a file in the safetensors format.

    Args:
        path: the file.

    Returns:
        A dict of tensors by name, with the shapes and dtypes that were saved.

    Raises:
        CheckpointError: where the file is damaged.
        FileNotFoundError: where there is none.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "arrays.safetensors")
    >>> hf.checkpoint.save_arrays(path, {"n": np.arange(3)})
    >>> hf.checkpoint.load_arrays(path)["n"]
    <Tensor i64[3] cpu> [0 1 2]
    """
    file = files.File(path)
    return file.tensors(file.names)


def written(path: str | os.PathLike[str]) -> str:
    """The file that is written for a path: names of formats that are not written get the ending of the one that is."""
    name = os.fspath(path)
    return f"{name}{SUFFIX}" if name.endswith((".h5", ".hdf5")) else name


def located(path: str | os.PathLike[str]) -> str:
    """The file that a path names, whose ending may be left out."""
    name = os.fspath(path)
    return f"{name}{SUFFIX}" if not os.path.exists(name) and os.path.exists(f"{name}{SUFFIX}") else name


def save_variables(path: str | os.PathLike[str], variables: Mapping[str, Variable]) -> None:
    """Write variables by name into one file, see ``written``."""
    files.write(written(path), {name: variable.numpy() for name, variable in variables.items()}, {"kind": "weights"})


def load_variables(path: str | os.PathLike[str], variables: Mapping[str, Variable], partial: bool, stage: str) -> None:
    """Assign what a file has for the variables.

    Raises CheckpointError, and assigns nothing, where names or shapes differ; with ``partial`` only for shapes.
    """
    file = files.File(located(path))
    missing = [name for name in variables if name not in file.names]
    unused = [name for name in file.names if name not in variables]
    if not partial and (missing or unused):
        report = repr(Report([], missing, unused))
        raise CheckpointError(stage, f"{path} is of another model, or this one is not built yet: {report}.")
    present = [name for name in variables if name not in missing]
    for name in present:
        check_fit(file, name, name, variables[name], stage)
    for name, array in file.tensors(present).items():
        variables[name].assign(asarray(array, dtype=variables[name].dtype))
