"""The callbacks of one run of ``fit``, ``evaluate`` or ``predict``."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from hybridflow import spans
from hybridflow.callbacks.callback import Callback, History
from hybridflow.callbacks.progress import Progress
from hybridflow.core import processes
from hybridflow.core.tensor import Tensor
from hybridflow.errors import ArgumentError, ArgumentTypeError

_OF_BATCHES = (
    "on_train_batch_begin",
    "on_train_batch_end",
    "on_test_batch_begin",
    "on_test_batch_end",
    "on_predict_batch_begin",
    "on_predict_batch_end",
)


class CallbackList:
    """The callbacks of one run, with those that belong to each: the history, and the progress that is shown.

    Only callbacks that define a method are called, so that a run without any costs nothing for each batch.  ``fit`` and
    its kin make one; so do loops of your own that tell callbacks of their course, with ``params`` as keywords too:

    Args:
        callbacks: a list of callbacks.
        model: a model.
        verbose: 1 prints messages, 0 is silent.
        params: what ``fit`` tells of the run.
        history: whether there is a History.
        add_history: whether to add a History.
        add_progbar: whether to add a progress bar.
        **more_params: further parameters of the run.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> told = hf.callbacks.CallbackList([hf.callbacks.History()], model=model, epochs=1)
    >>> told.on_train_begin()
    >>> told.on_epoch_begin(0)
    >>> told.on_epoch_end(0, {"loss": 0.5})
    >>> told.history.history
    {'loss': [0.5]}
    """

    def __init__(
        self,
        callbacks: object = None,
        model: object = None,
        verbose: object = 0,
        params: dict[str, Any] | None = None,
        history: bool = True,
        add_history: bool | None = None,
        add_progbar: bool = False,
        **more_params: object,
    ) -> None:
        """``add_history`` and ``add_progbar`` are Keras's: the one is ``history`` by another name, with the other a bar
        is shown as the parameter ``verbose`` says."""
        params = {"verbose": verbose, "epochs": 1, "steps": None, **(params or {}), **more_params}
        self.callbacks = [
            one for one in _listed(callbacks) if processes.is_first() or not getattr(one, "_of_first_process", False)
        ]
        self.params, self.model = params, model
        self.history = next((one for one in self.callbacks if isinstance(one, History)), None) or History()
        if (history if add_history is None else add_history) and self.history not in self.callbacks:
            self.callbacks.append(self.history)
        self._progress = Progress(_level(params["verbose"] if add_progbar else verbose), params)
        self._quiet = self._progress.level == 0
        self._is_run = False
        self.last_logs: dict[str, Any] = {}
        for one in self.callbacks:
            one.set_params(params)
            if model is not None:
                one.set_model(model)
        self._of_batches = {name: self._defined(name) for name in _OF_BATCHES}

    def append(self, callback: Callback) -> None:
        """One more callback, told last.

        Args:
            callback: the callback.
        """
        self.callbacks.append(callback)
        callback.set_params(self.params)
        if self.model is not None:
            callback.set_model(self.model)
        self._of_batches = {name: self._defined(name) for name in _OF_BATCHES}

    def set_params(self, params: dict[str, Any]) -> None:
        """Tell all callbacks the numbers of epochs and steps.

        Args:
            params: "epochs", "steps" and "verbose".
        """
        self.params = params
        for one in self.callbacks:
            one.set_params(params)

    def set_model(self, model: object) -> None:
        """Tell all callbacks the model.

        Args:
            model: the model that is trained.
        """
        self.model = model
        for one in self.callbacks:
            one.set_model(model)

    def _defined(self, name: str) -> list[Any]:
        plain = getattr(Callback, name)
        methods = [getattr(one, name) for one in self.callbacks if hasattr(one, name)]
        return [method for method in methods if getattr(method, "__func__", method) is not plain]

    def _tell(self, name: str, *args: object) -> None:
        """Call the method of all callbacks; the last argument are the logs, if there are any."""
        *places, logs = args
        logs = {} if logs is None else logs
        for one in self.callbacks:
            if spans.recorder is None:
                getattr(one, name)(*places, logs)
            else:
                with spans.span(f"{type(one).__name__}.{name}", "callback"):
                    getattr(one, name)(*places, logs)

    def _tell_batch(self, name: str, batch: int, logs: dict[str, Any] | None) -> None:
        methods = self._of_batches[name]
        if methods:
            logs = {} if logs is None else _plain(logs)
            with spans.span(name, "callback"):
                for method in methods:
                    method(batch, logs)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that ``fit`` begins.

        Args:
            logs: what is logged, by name.
        """
        self._tell("on_train_begin", logs)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that ``fit`` ends.

        Args:
            logs: what is logged, by name.
        """
        self._tell("on_train_end", logs)

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that an epoch begins.

        Args:
            epoch: the number of the epoch, from 0.
            logs: what is logged, by name.
        """
        self._progress.begin(epoch)
        self._tell("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that an epoch ends.

        Args:
            epoch: the number of the epoch, from 0.
            logs: what is logged, by name.
        """
        logs = {} if logs is None else logs
        self.last_logs = logs
        self._tell("on_epoch_end", epoch, logs)
        self._progress.end(logs)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of training begins.

        Args:
            batch: the number of the batch in its epoch, from 0.
            logs: what is logged, by name.
        """
        self._tell_batch("on_train_batch_begin", batch, logs)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of training ends.

        Args:
            batch: the number of the batch in its epoch, from 0.
            logs: what is logged, by name.
        """
        logs = {} if logs is None else logs
        self._tell_batch("on_train_batch_end", batch, logs)
        if not self._quiet:
            self._progress.step(batch, logs)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that an evaluation begins.

        Args:
            logs: what is logged, by name.
        """
        self._is_run = not self._progress.is_open
        if self._is_run:
            self._progress.begin(None)
        self._tell("on_test_begin", logs)

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that an evaluation ends.

        Args:
            logs: what is logged, by name.
        """
        logs = {} if logs is None else logs
        self._tell("on_test_end", logs)
        if self._is_run:
            self._progress.end(logs)

    def on_test_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of evaluation begins.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """
        self._tell_batch("on_test_batch_begin", batch, logs)

    def on_test_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of evaluation ends.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """
        logs = {} if logs is None else logs
        self._tell_batch("on_test_batch_end", batch, logs)
        if self._is_run and not self._quiet:
            self._progress.step(batch, logs)

    def on_predict_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that ``predict`` begins.

        Args:
            logs: what is logged, by name.
        """
        self._progress.begin(None)
        self._tell("on_predict_begin", logs)

    def on_predict_end(self, logs: dict[str, Any] | None = None) -> None:
        """Tell all callbacks that ``predict`` ends.

        Args:
            logs: what is logged, by name.
        """
        self._tell("on_predict_end", logs)
        self._progress.end({})

    def on_predict_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of prediction begins.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """
        self._tell_batch("on_predict_batch_begin", batch, logs)

    def on_predict_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Tell those callbacks that ask for it that a batch of prediction ends.

        Args:
            batch: the number of the batch, from 0.
            logs: what is logged, by name.
        """
        logs = {} if logs is None else logs
        for method in self._of_batches["on_predict_batch_end"]:
            method(batch, logs)
        if not self._quiet:
            self._progress.step(batch, {})

    def close(self) -> None:
        """The run has ended, be it by an error."""
        self._progress.close()
        for one in self.callbacks:
            if isinstance(one, Callback):
                one._close()


def _plain(logs: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value.item() if isinstance(value, Tensor) and value.size == 1 else value for name, value in logs.items()
    }


def _listed(callbacks: object) -> list[Any]:
    if callbacks is None:
        return []
    if isinstance(callbacks, Callback):
        return [callbacks]
    if isinstance(callbacks, Iterable):
        result = list(callbacks)
        wrong = [one for one in result if isinstance(one, type) or not hasattr(one, "set_model")]
        if not wrong:
            return result
        callbacks = wrong[0]
    raise ArgumentTypeError("fit", f"{callbacks!r} is no callback; give a list of hf.callbacks.Callback.")


def _level(verbose: object) -> int:
    if verbose == "auto":
        return 1 if getattr(sys.stdout, "isatty", bool)() else 2
    if verbose in (0, 1, 2):
        return int(verbose)
    raise ArgumentError("fit", f'verbose is {verbose!r}; it must be 0, 1, 2 or "auto".')
