"""The callback that writes what TensorBoard shows."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np

from hybridflow import summary
from hybridflow.callbacks.callback import Callback
from hybridflow.errors import ArgumentError
from hybridflow.summary.events import Node


class TensorBoard(Callback):
    """Writes what is logged into ``log_dir/train`` and ``log_dir/validation``, for TensorBoard (extra ``tensorboard``).

    Curves are called ``epoch_loss`` and so on, at the epochs; with ``update_freq="batch"``, or each how many batches,
    there are ``batch_loss`` ones too, at the batches.  Each ``histogram_freq`` epochs histograms of the weights are
    written, and pictures of them with ``write_images``; ``write_graph`` writes the graph of the layers, and the table
    of ``model.summary()``.  ``write_steps_per_second`` writes how many batches there were in a second.

    ``profile_batch``, ``embeddings_freq`` and ``embeddings_metadata`` are there for programs that give them, as 0 and
    None: TensorBoard's profiler and projector are for what TensorFlow writes.

    Args:
        log_dir: the folder of the event files.
        histogram_freq: after how many epochs histograms of weights are written; 0 for never.
        write_graph: whether the graph is written.
        write_images: whether weights are written as pictures.
        write_steps_per_second: whether the speed is written.
        update_freq: ``"epoch"``, ``"batch"``, or a number of batches.
        profile_batch: has no effect: see ``f.profile``.
        embeddings_freq: after how many epochs embeddings are written.
        embeddings_metadata: labels of embeddings.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> board = hf.callbacks.TensorBoard(folder)
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[board], verbose=0)
    >>> os.listdir(folder)
    ['train']
    """

    _of_first_process = True

    def __init__(
        self,
        log_dir: str | os.PathLike[str] = "logs",
        histogram_freq: int = 0,
        write_graph: bool = True,
        write_images: bool = False,
        write_steps_per_second: bool = False,
        update_freq: Any = "epoch",
        profile_batch: object = 0,
        embeddings_freq: int = 0,
        embeddings_metadata: object = None,
    ) -> None:
        if update_freq not in ("epoch", "batch") and not (isinstance(update_freq, int) and update_freq > 0):
            raise ArgumentError(
                "TensorBoard", f"update_freq is {update_freq!r}; it must be 'epoch', 'batch' or an int."
            )
        if profile_batch or embeddings_freq or embeddings_metadata is not None:
            raise ArgumentError(
                "TensorBoard",
                "profile_batch, embeddings_freq and embeddings_metadata must be 0 and None: there is no profile and no "
                "projection to write; see hybridflow's own profiles, `python -m hybridflow profile`.",
            )
        self.log_dir = os.fspath(log_dir)
        self.histogram_freq, self.write_graph, self.write_images = histogram_freq, write_graph, write_images
        self.write_steps_per_second = write_steps_per_second
        self.update_freq = 1 if update_freq == "batch" else update_freq
        self._writers: dict[str, summary.SummaryWriter] = {}
        self._batches = self._first = 0  # done, and those of earlier epochs
        self._begun = 0.0
        self._has_shown = False

    def _writer(self, kind: str) -> summary.SummaryWriter:
        if kind not in self._writers:
            self._writers[kind] = summary.create_file_writer(os.path.join(self.log_dir, kind))
        return self._writers[kind]

    def _write(self, kind: str, prefix: str, logs: dict[str, Any], step: int, suffix: str = "") -> None:
        with self._writer(kind).as_default():
            for name, value in logs.items():
                if np.ndim(value) == 0:
                    summary.scalar(f"{prefix}{name}{suffix}", value, step)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._batches = self._first = 0
        self._begun = time.perf_counter()
        if self.write_graph and self.model.built:
            self._show_model()
            self._has_shown = True

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._batches += 1
        if self.update_freq != "epoch" and self._batches % self.update_freq == 0:
            self._write("train", "batch_", logs or {}, self._batches)

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        optimizer = self.model.optimizer
        if logs and optimizer is not None and self._writers:
            self._write("validation", "evaluation_", logs, int(optimizer.iterations), "_vs_iterations")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        values = dict(logs or {})
        seen = {name.removeprefix("val_"): values.pop(name) for name in list(values) if name.startswith("val_")}
        if self.model.optimizer is not None:
            values["learning_rate"] = float(self.model.optimizer.learning_rate)
        if self.write_steps_per_second:
            now = time.perf_counter()
            values["steps_per_second"] = (self._batches - self._first) / (now - self._begun)
            self._first, self._begun = self._batches, now
        self._write("train", "epoch_", values, epoch)
        if seen:
            self._write("validation", "epoch_", seen, epoch)
        if self.write_graph and not self._has_shown:
            self._show_model()
            self._has_shown = True
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            self._show_weights(epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers, self._has_shown = {}, False

    def _show_model(self) -> None:
        writer = self._writer("train")
        writer.file().add_graph(_nodes(self.model))
        lines: list[str] = []
        self.model.summary(print_fn=lines.append)
        with writer.as_default():
            summary.text("model", "\n".join(f"    {line}" for line in "\n".join(lines).split("\n")), step=0)

    def _show_weights(self, epoch: int) -> None:
        with self._writer("train").as_default():
            for name, variable in self.model.named_variables().items():
                label = name.replace(".", "/")
                summary.histogram(f"{label}/histogram", variable, epoch)
                if self.write_images:
                    summary.image(f"{label}/image", _picture(variable.numpy()), epoch)


def _nodes(model: Any) -> list[Node]:
    """The layers of a model: of a graph of them as they are connected, of others one after another."""
    calls = getattr(model, "_graph", None)
    if calls is None:
        names = [getattr(layer, "name", "function") for layer in model.layers]
        names = _unique(names)
        kinds = [type(layer).__name__ for layer in model.layers]
        return [
            Node(name, kind, tuple(names[i - 1 : i]) if i else ()) for i, (name, kind) in enumerate(zip(names, kinds))
        ]
    names = _unique([call.layer.name for call in calls])
    by_call = {id(call): name for call, name in zip(calls, names)}
    return [
        Node(
            name, type(call.layer).__name__, tuple(by_call[id(x.call)] for x in call.inputs() if id(x.call) in by_call)
        )
        for call, name in zip(calls, names)
    ]


def _unique(names: list[str]) -> list[str]:
    """The names, with numbers behind those that come again."""
    return [name if names.index(name) == i else f"{name}_{names[:i].count(name)}" for i, name in enumerate(names)]


def _picture(weight: np.ndarray) -> np.ndarray:
    """A weight as pictures ``[k, height, width, 1]``, from its least element, black, to its largest."""
    weight = np.nan_to_num(np.asarray(weight, np.float32))
    low, high = float(weight.min(initial=0)), float(weight.max(initial=0))
    scaled = (weight - low) / ((high - low) or 1.0)
    if scaled.ndim < 2:
        return scaled.reshape(1, 1, -1, 1)
    return np.moveaxis(scaled.reshape(*scaled.shape[:2], -1), -1, 0)[..., None]
