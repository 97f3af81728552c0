"""A callback that lets training go on after the end of its processes."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from hybridflow.array.random import global_generator
from hybridflow.callbacks.callback import Callback
from hybridflow.checkpoint import Checkpoint
from hybridflow.checkpoint.checkpoint import SUFFIX
from hybridflow.core import processes
from hybridflow.errors import ArgumentError

_LOOK = 0.1  # seconds between two looks whether another process was told to end


class BackupAndRestore(Callback):
    """Lets a ``fit`` that was interrupted go on as if nothing had been.

    After each epoch, or every ``save_freq`` batches, the state is saved: the model, its optimizer, the global random
    generator, the place in the data, and the metrics of the epoch. It is restored when ``fit`` begins again, which
    goes on there.

    On SIGTERM (preemption) ``fit`` finishes its batch, saves, and raises SystemExit with code 75. Processes of
    ``hybridflow run`` do so after the same batch, whichever of them got the signal, within a tenth of a second. A
    program that has a handler of its own keeps it.

    The place in the data is known of arrays and datasets. What else can be iterated over repeatedly is gone through
    again up to there; an iterator goes on with what it gives next. The file is deleted when ``fit`` ends, unless
    ``delete_checkpoint`` is False.

    Args:
        backup_dir: the folder to keep the state in.
        save_freq: ``"epoch"``, or a number of batches.
        delete_checkpoint: whether the state is removed at the end of training.

    >>> import tempfile
    >>> model = hf.Sequential([hf.Input((2,)), hf.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> backup = hf.callbacks.BackupAndRestore(tempfile.mkdtemp(), save_freq=100)
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[backup], verbose=0)
    """

    def __init__(
        self, backup_dir: str | os.PathLike[str], save_freq: Any = "epoch", delete_checkpoint: bool = True
    ) -> None:
        is_count = isinstance(save_freq, int) and not isinstance(save_freq, bool) and save_freq > 0
        if save_freq != "epoch" and not is_count:
            raise ArgumentError(
                "BackupAndRestore", f'save_freq is {save_freq!r}; it must be "epoch" or an int above 0.'
            )
        self._path = Path(backup_dir) / f"backup{SUFFIX}"
        self.save_freq, self.delete_checkpoint = save_freq, delete_checkpoint
        self._epoch = self._last = self._unsaved = 0
        self._is_saved = False  # the place where it is now
        self._place: Any = None
        self._notice: _Notice | None = None

    def _make_checkpoint(self, epoch: int) -> Checkpoint:
        """All that goes on after ``epoch`` epochs, and some batches of the next."""
        model = self.model
        place = self._place = _Place(model, self._unsaved)
        return Checkpoint(model=model, optimizer=model.optimizer, random=global_generator(), data=place, epoch=epoch)

    def _save(self, epoch: int) -> None:
        self._make_checkpoint(epoch).write(self._path)
        self._is_saved = True

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._notice = _Notice()
        if any(number for (number,) in processes.say("looking for a backup", [self._path.exists()])):
            self.model._build_for_data()  # restoring needs variables
            saved = self._make_checkpoint(0)
            saved.restore(self._path)
            self.model._run.first_epoch = saved.epoch
            self._unsaved = self._place.unsaved

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch, self._last = epoch, self.model._run.source.taken

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        count = batch + 1 - self._last
        self._last, self._unsaved, self._is_saved = batch + 1, self._unsaved + count, False
        if self.save_freq != "epoch" and self._unsaved >= self.save_freq:
            self._unsaved = 0
            self._save(self._epoch)
        if self._notice is not None and self._notice.is_given(count):
            self._end(self._epoch, f"epoch {self._epoch + 1}, batch {batch + 1}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._is_saved = False
        if self.save_freq == "epoch":
            self._unsaved = 0
            self._save(epoch + 1)
        if self._notice is not None and self._notice.is_given(None):
            self._end(epoch + 1, f"epoch {epoch + 1}")

    def _end(self, epoch: int, place: str) -> None:
        if not self._is_saved:
            self._save(epoch)
        if processes.is_first():
            print(f"[fit] SIGTERM: ends after {place}; {self._path} has the state.", file=sys.stderr, flush=True)
        raise SystemExit(processes.COME_AGAIN)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.delete_checkpoint:
            processes.once("removing the backup", lambda: self._path.unlink(missing_ok=True))

    def _close(self) -> None:
        if self._notice is not None:
            self._notice.close()
            self._notice = None


class _Notice:
    """Whether SIGTERM told this process, or another that shares the replicas out, to end."""

    def __init__(self) -> None:
        self._told, self._process = False, os.getpid()
        self._left, self._interval, self._since = 1, 1, time.monotonic()  # until all look at it together
        main = threading.current_thread() is threading.main_thread()
        self._is_listening = main and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
        if self._is_listening:
            signal.signal(signal.SIGTERM, self._tell)

    def _tell(self, number: int, frame: object) -> None:
        if os.getpid() == self._process:
            self._told = True
        else:  # it was forked from the one that trains, which may end it so
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    def is_given(self, count: int | None) -> bool:
        """After so many steps more, or at once: the same for all processes, who must do the same steps.

        They ask each other now and then only: the first of them says after how many steps.
        """
        if processes.is_alone():
            return self._told
        self._left -= count or 0
        if self._left > 0 and count is not None:
            return False
        passed = time.monotonic() - self._since
        fitting = int(self._interval * _LOOK / max(passed, 1e-6))
        wanted = max(1, min(fitting, 2 * self._interval)) if count is not None else self._interval
        said = processes.say("asking who was told to end", [self._told, wanted])
        self._left = self._interval = said[0][1]
        self._since = time.monotonic()
        return any(told for told, _ in said)

    def close(self) -> None:
        if self._is_listening:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


class _Place:
    """Where ``fit`` is in its data, how many batches ago a backup was due, and what metrics say of the epoch so far."""

    def __init__(self, model: Any, unsaved: int) -> None:
        self._model, self.unsaved = model, unsaved

    def _variables(self) -> list[Any]:
        return [variable for metric in self._model.metrics for variable in metric.variables]

    def state_dict(self) -> Any:
        source = self._model._run.source
        metrics = [variable.numpy() for variable in self._variables()] if source.taken else []
        return {**source.state_dict(), "metrics": metrics, "unsaved": self.unsaved}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._model._run.source.load_state_dict(state)
        self.unsaved = state.get("unsaved", 0)
        values, variables = state.get("metrics", []), self._variables()
        if not values:
            return
        if [value.shape for value in values] != [tuple(variable.shape) for variable in variables]:
            warnings.warn(
                "the metrics are not those of the backup: of this epoch they say what comes from here on", stacklevel=2
            )
            return
        for variable, value in zip(variables, values):
            variable.assign(value)
