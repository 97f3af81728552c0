"""A callback that saves models while they are trained."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hybridflow.callbacks.stopping import Watching
from hybridflow.checkpoint import Checkpoint
from hybridflow.checkpoint.checkpoint import written
from hybridflow.errors import ArgumentError, ArgumentTypeError


class ModelCheckpoint(Watching):
    """Saves the model after each epoch, or every ``save_freq`` batches, into ``filepath``.

    The path may hold what is logged, ``"run/{epoch:02d}-{val_loss:.2f}.safetensors"``; epochs count from 1 there.  With
    ``save_best_only`` the model is saved when ``monitor`` is better than ever, and than ``initial_value_threshold``.
    With ``save_weights_only`` the file is for ``load_weights``, else for ``load_model``; ``hf.checkpoint.Checkpoint``
    restores ``model`` and ``optimizer`` from it too, and does so alone where the model's configuration cannot be kept.

    Args:
        filepath: a path.
        monitor: the name of a value in the logs.
        verbose: 1 prints messages, 0 is silent.
        save_best_only: whether to write only what is better than before.
        save_weights_only: whether to write the weights alone.
        mode: ``"min"``, ``"max"`` or ``"auto"``: what is better.
        save_freq: ``"epoch"``, or a number of batches.
        initial_value_threshold: a value that has to be passed before anything is written.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "best.safetensors")
    >>> save = hf.callbacks.ModelCheckpoint(path, monitor="loss", save_best_only=True, save_weights_only=True)
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[save], verbose=0)
    >>> model.load_weights(path)
    """

    def __init__(
        self,
        filepath: str | os.PathLike[str],
        monitor: str = "val_loss",
        verbose: int = 0,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: Any = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ArgumentError("ModelCheckpoint", f'save_freq is {save_freq!r}; it must be "epoch" or an int above 0.')
        self.filepath, self.verbose, self.save_freq = os.fspath(filepath), verbose, save_freq
        self.save_best_only, self.save_weights_only = save_best_only, save_weights_only
        self.best = self.worst() if initial_value_threshold is None else float(initial_value_threshold)
        self._epoch = self._batches = 0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self._batches += 1
        if self.save_freq != "epoch" and self._batches % self.save_freq == 0:
            self._save(self._epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if self.save_freq == "epoch":
            self._save(epoch, None, logs)

    def _save(self, epoch: int, batch: int | None, logs: dict[str, Any] | None) -> None:
        if self.save_best_only:
            value = self.get_monitor_value(logs)
            if value is None or not self.is_better(value, self.best):
                return
            self.best = value
        values = {**(logs or {}), "epoch": epoch + 1} | ({} if batch is None else {"batch": batch + 1})
        try:
            path = self.filepath.format(**values)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ArgumentError(
                "ModelCheckpoint", f"filepath is {self.filepath!r}: {error!r}; logged are {', '.join(values)}."
            ) from None
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        if self.save_weights_only:
            self.model.save_weights(path)
        else:
            try:
                self.model.save(path)
            except ArgumentTypeError:  # it is made of what no file can hold
                Checkpoint(model=self.model, optimizer=self.model.optimizer).write(written(path))
        if self.verbose:
            print(f"Epoch {epoch + 1}: saved {path}")
