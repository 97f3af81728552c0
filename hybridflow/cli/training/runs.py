"""One run of training in its folder: what goes on after it was killed, and what is there at the end."""

from __future__ import annotations

import csv
import glob
import json
import os
import re
import signal
import threading
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf
from hybridflow.array.random import global_generator
from hybridflow.callbacks import BackupAndRestore, Callback, CSVLogger, History, TensorBoard
from hybridflow.checkpoint import Checkpoint
from hybridflow.cli.training import signatures
from hybridflow.cli.training.config import Config, dumped
from hybridflow.cli.training.datasets import KINDS, Data, Table, parameters as data_parameters, parts_of
from hybridflow.cli.training.models import PARAMETERS as MODEL, model_of
from hybridflow.errors import ArgumentError, HybridflowError

if TYPE_CHECKING:
    from hybridflow.models.model import Model


CONFIG, WEIGHTS, LOG, CLASSES = "config.toml", "weights.safetensors", "log.csv", "classes.json"
INTERRUPTED, EPOCHS = "interrupted.safetensors", "epochs"
_EXPORTS = ("hf", "keras", "onnx", "c")
_OF_LOOPS = ("x", "y", "verbose", "validation_split", "validation_data", "sample_weight", "initial_epoch")


def _output(
    folder: str = "run",
    export: list = ("hf",),  # type: ignore[assignment]
    tensorboard: bool = False,
    report: bool = True,
    keep: int = 0,
) -> None:
    """What ``[output]`` takes."""


_COMPILE = {n: p for n, p in signatures.parameters(hf.Model.compile).items() if n != "jit_compile"}
_FIT = {n: p for n, p in signatures.parameters(hf.Model.fit).items() if n not in _OF_LOOPS}
OUTPUT = signatures.parameters(_output)
TABLES = {"data": {}, "model": MODEL, "training": {**_COMPILE, **_FIT}, "output": OUTPUT}


def schema() -> dict[str, Any]:
    """JSON Schema of the files."""
    return signatures.schema(TABLES, {kind: data_parameters(kind) for kind in KINDS})


class Run:
    """A configuration, with its data and its model."""

    def __init__(self, config: Config, folder: str | None = None) -> None:
        for name in config.values:
            if name not in (*TABLES, "seed"):
                raise config.unknown((name,), name, (*TABLES, "seed"))
        self.config = config
        self.seed = config.values.get("seed", 0)
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or not 0 <= self.seed < 1 << 63:
            raise config.error(("seed",), f"{self.seed!r:.40} is no seed; it must be an integer, 0 or more.")
        output = signatures.checked(config, ("output",), config.values.get("output", {}), OUTPUT, "[output]")
        self.export = output.get("export", ["hf"])
        for place, kind in enumerate(self.export):
            if kind not in _EXPORTS:
                raise config.unknown(("output", "export", place), str(kind), _EXPORTS)
        self.keep = output.get("keep", 0)
        if self.keep < 0:
            raise config.error(("output", "keep"), f"{self.keep} is no number of epochs; it must be 0 or more.")
        self.tensorboard, self.report = output.get("tensorboard", False), output.get("report", True)
        self.folder = config.absolute(output.get("folder", "run")) if folder is None else folder
        classes = None
        if folder is not None and os.path.exists(self.path(CLASSES)):
            with open(self.path(CLASSES), encoding="utf-8") as file:
                classes = json.load(file)
        self.data = Data(config, classes)

    def path(self, name: str) -> str:
        """A file of the run."""
        return os.path.join(self.folder, name)

    def model(self, table: Table) -> Any:
        """The model, compiled as the file says, with the random numbers of the seed."""
        hf.random.set_seed(self.seed)
        model = model_of(self.config, table.x)
        config, place = self.config, ("training",)
        value = config.values.get("training")
        if value is None:
            raise config.error((), "there is no [training].")
        arguments = signatures.checked(config, place, value, TABLES["training"], "[training]")
        ready = {name: part for name, part in arguments.items() if name in _COMPILE}
        for name, family in (("optimizer", "optimizers"), ("loss", "losses")):
            if name in ready:
                ready[name] = self._of_outputs((*place, name), ready[name], family)
        for name in ("metrics", "weighted_metrics"):
            if name in ready:
                ready[name] = self._metrics((*place, name), ready[name])
        signatures.called(config, place, model.compile, ready)
        return model

    def _of_outputs(self, path: Any, value: object, family: str) -> Any:
        """One object, or those of several outputs: an array, or a table by their names."""
        if isinstance(value, list):
            return [self._of_outputs((*path, k), part, family) for k, part in enumerate(value)]
        is_object = isinstance(value, dict) and len(value) == 1 and next(iter(value))[:1].isupper()
        if isinstance(value, dict) and not is_object:
            return {name: self._of_outputs((*path, name), part, family) for name, part in value.items()}
        return signatures.named(self.config, path, value, family)

    def _metrics(self, path: Any, value: Any) -> Any:
        if isinstance(value, list) or (isinstance(value, dict) and value):
            return self._of_outputs(path, value, "metrics")
        raise self.config.error(path, f'{value!r:.40} is no array of metrics; write ["accuracy"].')

    def _callbacks(self) -> list[Any]:
        tables = self.config.values["training"].get("callbacks", [])
        if not isinstance(tables, list):
            raise self.config.error(("training", "callbacks"), "give an array of callbacks.")
        callbacks = []
        for place, one in enumerate(tables):
            placed = signatures.in_folder(one, self.folder)
            callbacks.append(signatures.made(self.config, ("training", "callbacks", place), placed, "callbacks"))
        return callbacks

    def try_out(self) -> Any:
        """All but the training: the data are read, the model made, and one batch goes through it."""
        table, validation = self.data.split(self.seed)
        model = self.model(table)
        self._callbacks()
        few = _first(table)
        model.evaluate(few.x, few.y, verbose=0)
        return model, table, validation

    def train(self, resume: str | None, verbose: object) -> tuple[Any, History, int]:
        """Train, and leave the folder with all that is asked for.

        The third result is 0, or the number of the signal that has ended the run early.
        """
        table, validation = self.data.split(self.seed)
        model = self.model(table)
        self._begin(resume)
        history, callbacks = History(), self._callbacks()
        log = CSVLogger(self.path(LOG), append=True)
        if self.tensorboard:
            callbacks.append(signatures.called(self.config, ("output", "tensorboard"), TensorBoard, self._events()))
        state = State(self.folder, [history, *callbacks])
        arguments = {name: part for name, part in self.config.values["training"].items() if name in _FIT}
        arguments.pop("callbacks", None)
        if isinstance(arguments.get("class_weight"), dict):
            arguments["class_weight"] = {int(name): part for name, part in arguments["class_weight"].items()}
        held = None if validation is None else (validation.x, validation.y)
        with state.signals():
            try:
                model.fit(
                    table.x,
                    table.y,
                    validation_data=held,
                    verbose=verbose,
                    callbacks=[history, *callbacks, log, *self._keeping(), state],
                    **arguments,
                )
            except Stopped:
                model.save_weights(self.path(INTERRUPTED))
                return model, history, state.signal
        self._finish(model, history)
        return model, history, 0

    def _keeping(self) -> list[Any]:
        return [Keep(self.path(EPOCHS), self.keep)] if self.keep else []

    def _events(self) -> dict[str, Any]:
        return {"log_dir": self.path("events")}

    def _begin(self, resume: str | None) -> None:
        """The folder, with what the run is made of; an earlier run is kept or removed, as ``resume`` says."""
        there = [name for name in (State.FILE, WEIGHTS) if os.path.exists(self.path(name))]
        if there and resume is None:
            message = f"{self.folder} has a run: --resume auto goes on with it, --resume never begins anew."
            raise ArgumentError("train", message, "")
        os.makedirs(self.folder, exist_ok=True)
        if resume != "auto" or State.FILE not in there:
            for name in (*there, LOG, INTERRUPTED):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
            for path in _checkpoint_files(self.path(EPOCHS)):
                os.unlink(path)
        self._write(CONFIG, dumped(self._absolute()))
        if self.data.classes is not None:
            self._write(CLASSES, json.dumps(self.data.classes, ensure_ascii=False))

    def _absolute(self) -> dict[str, Any]:
        """The values of the configuration, with paths that mean the same from anywhere."""
        values = {name: dict(part) if isinstance(part, dict) else part for name, part in self.config.values.items()}
        paths = (("data", "path"), ("data", "test"), ("data", "validation"), ("output", "folder"))
        for table, name in (*paths, ("model", "file"), ("model", "trunk"), ("model", "weights")):
            part = values.get(table, {})
            if isinstance(part, dict) and isinstance(part.get(name), str):
                part[name] = self.config.absolute(part[name])
        values.setdefault("output", {})["folder"] = self.folder
        return values

    def _write(self, name: str, text: str) -> None:
        with open(self.path(f".{name}"), "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self.path(f".{name}"), self.path(name))

    def _finish(self, model: Model, history: History) -> None:
        model.save_weights(self.path(WEIGHTS))
        if os.path.exists(self.path(INTERRUPTED)):
            os.unlink(self.path(INTERRUPTED))
        if self.report and history.epoch:
            history.report(self.path("report.html"))
        for place, kind in enumerate(self.export):
            try:
                _export(model, kind, self.path(f"model.{kind}"))
            except (HybridflowError, ImportError) as error:
                path = ("output", "export", place)
                raise self.config.error(path, f"the model is trained, and not exported: {error}") from None

    def trained(self, table: Table) -> Any:
        """The model of a finished run, with its weights; of an interrupted one it has none."""
        model = self.model(table)
        if not os.path.exists(self.path(WEIGHTS)):
            raise ArgumentError(
                "train", f"{self.folder} has no {WEIGHTS}: the run did not end. Go on by --resume auto.", ""
            )
        model.load_weights(self.path(WEIGHTS))
        return model


def _export(model: Model, kind: str, path: str) -> None:
    if kind == "hf":
        hf.saved.save(model, path)
    elif kind == "keras":
        model.save(path)
    elif kind == "c":
        os.makedirs(path, exist_ok=True)
        hf.aot.compile(model, os.path.join(path, "model"))
    else:
        hf.onnx.save(model, path)


def _first(table: Table, count: int = 2) -> Table:
    def cut(value: Any) -> Any:
        return {n: part[:count] for n, part in value.items()} if isinstance(value, dict) else value[:count]

    return Table(cut(table.x), cut(table.y))


def rows_of(value: object) -> int:
    """How many rows the arrays of a table have."""
    return len(parts_of(value)[0])


class Keep(Callback):
    """Keeps the weights of the last epochs, a file for each.

    Args:
        folder: where they are.
        count: how many epochs.
    """

    def __init__(self, folder: str, count: int) -> None:
        super().__init__()
        self._folder, self._count = folder, count

    def on_epoch_end(self, epoch: int, logs: object = None) -> None:
        os.makedirs(self._folder, exist_ok=True)
        self.model.save_weights(os.path.join(self._folder, f"{epoch + 1:04}.safetensors"))
        for path in _checkpoint_files(self._folder)[: -self._count]:
            os.unlink(path)


def _checkpoint_files(folder: str) -> list[str]:
    """The files of ``Keep`` in a folder, in the order of epochs."""
    if not os.path.isdir(folder):
        return []
    numbers = [int(name[:-12]) for name in os.listdir(folder) if re.fullmatch(r"\d{4,}\.safetensors", name)]
    return [os.path.join(folder, f"{number:04}.safetensors") for number in sorted(numbers)]


class Stopped(Exception):
    """A signal ends the run after a step."""


class State(BackupAndRestore):
    """Keeps what a run needs to go on to the same bits: also what callbacks have counted, and what was logged.

    It stands last: what it keeps of an epoch is what all others have made of it.
    """

    FILE = "backup.safetensors"

    def __init__(self, folder: str, others: Sequence[Any]) -> None:
        super().__init__(folder, delete_checkpoint=False)
        self._folder, self._others = folder, others
        self._told = ""
        self.signal = 0

    def _make_checkpoint(self, epoch: int) -> Checkpoint:
        model = self.model
        return Checkpoint(
            model=model,
            optimizer=model.optimizer,
            random=global_generator(),
            data=model._run.source,
            epoch=epoch,
            callbacks=self._told,
        )

    def on_train_begin(self, logs: object = None) -> None:
        if not self._path.exists():
            return
        self.model._build_for_data()
        saved = self._make_checkpoint(0)
        saved.restore(self._path)
        states = json.loads(saved.callbacks)
        if states["kinds"] != self._kinds():
            message = (
                f"the run has other callbacks, {', '.join(states['kinds'][1:]) or 'none'}; --resume never begins anew."
            )
            raise ArgumentError("train", message, "")
        arrays = self._arrays(saved.epoch)
        held = np.load(arrays) if os.path.exists(arrays) else {}
        for place, one in enumerate(self._others):
            vars(one).update(states["plain"][place])
            for name, count in states["arrays"][place].items():
                setattr(one, name, [held[f"{place}.{name}.{k}"] for k in range(count)])
        stays = saved.epoch if not states["stopped"] else self.params["epochs"]
        self.model._run.first_epoch = stays
        _cut_log(os.path.join(self._folder, LOG), saved.epoch)

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        plain, counts = [], []
        arrays: dict[str, Any] = {}
        for place, one in enumerate(self._others):
            kind: object = type(one)
            settings = (*_OF_FIT, *signatures.parameters(kind))  # which may be others when the run goes on
            state = {name: value for name, value in vars(one).items() if name not in settings}
            plain.append({name: value for name, value in state.items() if _is_plain(value)})
            lists = {n: v for n, v in state.items() if isinstance(v, list) and v and _is_arrays(v)}
            counts.append({name: len(value) for name, value in lists.items()})
            arrays |= {f"{place}.{n}.{k}": part for n, v in lists.items() for k, part in enumerate(v)}
        stopped = bool(self.model.stop_training)
        self._told = json.dumps({"plain": plain, "arrays": counts, "stopped": stopped, "kinds": self._kinds()})
        path = self._arrays(epoch + 1)
        if arrays:
            with open(path, "wb") as file:
                np.savez(file, **arrays)
        super().on_epoch_end(epoch, logs)
        for old in glob.glob(os.path.join(glob.escape(self._folder), "callbacks-*.npz")):
            if old != path:
                os.unlink(old)

    def _kinds(self) -> list[str]:
        return [type(one).__name__ for one in self._others]

    def _arrays(self, epoch: int) -> str:
        """The file of arrays that callbacks hold, such as the best weights: the checkpoint says whose it is."""
        return os.path.join(self._folder, f"callbacks-{epoch}.npz")

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        if self.signal:
            raise Stopped

    def signals(self) -> _Signals:
        """Within this, the first signal to stop lets the step end; the second one stops at once."""
        return _Signals(self)


_OF_FIT = ("model", "params", "_begun")  # of a callback: what ``fit`` gives it, and a time of this process


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return isinstance(value, list) and all(map(_is_plain, value))
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(part) for name, part in value.items())
    return value is None or type(value) in (bool, int, float, str)


def _is_arrays(value: list[Any]) -> bool:
    return all(isinstance(part, np.ndarray) for part in value)


def _cut_log(path: str, epoch: int) -> None:
    """The log without epochs that are run again: it may be ahead of the checkpoint by one."""
    if not os.path.exists(path):
        return
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    place = rows[0].index("epoch") if rows and "epoch" in rows[0] else 0
    remaining = [
        row for row in rows[1:] if len(row) == len(rows[0]) and row[place].isdecimal() and int(row[place]) < epoch
    ]
    with open(f"{path}.new", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([*rows[:1], *remaining])
    os.replace(f"{path}.new", path)


class _Signals:
    """Handlers of SIGINT and SIGTERM, in the main thread alone."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._stop)

    def _stop(self, number: int, frame: types.FrameType | None) -> None:
        if self._state.signal:
            raise KeyboardInterrupt
        self._state.signal = number

    def __exit__(self, *about: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
