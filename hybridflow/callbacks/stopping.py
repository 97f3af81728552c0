"""Callbacks that end training, or slow it down, by what is logged."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.callbacks.callback import Callback
from hybridflow.core.variable import Variable
from hybridflow.errors import ArgumentError, ArgumentTypeError

_MODES = "auto", "min", "max"
_GROWING = "acc", "accuracy", "auc", "precision", "recall", "f1", "fbeta", "iou", "r2", "similarity"


class Watching(Callback):
    """What watches one quantity, that should fall ("min") or grow ("max").

    ``mode`` "auto": accuracies, areas under curves, precision, recall and scores should grow, all else should fall.
    """

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        if mode not in _MODES:
            raise ArgumentError(type(self).__name__, f"mode is {mode!r}; it must be one of {', '.join(_MODES)}.")
        self.monitor, self.mode, self.min_delta = monitor, mode, abs(min_delta)
        words = monitor.lower()
        self._grows = mode == "max" or (mode == "auto" and any(word in words for word in _GROWING))
        self._warned = False

    def worst(self) -> float:
        """What anything is better than.

        Returns:
            Infinity, or minus infinity for a quantity that is to grow.
        """
        return -math.inf if self._grows else math.inf

    def is_better(self, value: float, than: float) -> bool:
        """Whether a value is better by more than ``min_delta``.

        Args:
            value: the value.
            than: what it is compared with.

        Returns:
            True or False.
        """
        return value - self.min_delta > than if self._grows else value + self.min_delta < than

    def get_monitor_value(self, logs: dict[str, Any] | None) -> float | None:
        """The quantity that is monitored; where it is not logged, a warning says so once.

        Args:
            logs: what is logged, by name.

        Returns:
            A float, or None where it is not logged.
        """
        value = (logs or {}).get(self.monitor)
        if value is None and not self._warned:
            self._warned = True
            names = ", ".join(logs or {})
            warnings.warn(f"{type(self).__name__}: {self.monitor!r} is not logged; there are {names}", stacklevel=2)
        return None if value is None else float(value)


class EarlyStopping(Watching):
    """Ends ``fit`` when ``monitor`` has not got better, by more than ``min_delta``, for ``patience`` epochs.

    ``baseline`` is what has to be beaten.  ``restore_best_weights``: at the end the weights are those of the best
    epoch.  The first ``start_from_epoch`` epochs do not count.

    Args:
        monitor: the name of a value in the logs.
        min_delta: the least change that counts.
        patience: after how many epochs without a change for the better it acts.
        verbose: 1 prints messages, 0 is silent.
        mode: ``"min"``, ``"max"`` or ``"auto"``: what is better.
        baseline: a value that has to be passed.
        restore_best_weights: whether the model gets the weights of the best epoch.
        start_from_epoch: the first epoch that counts.

    >>> stop = hf.callbacks.EarlyStopping(monitor="loss", patience=2)
    >>> model = hf.Sequential([hf.layers.Dense(1, kernel_initializer="zeros")])
    >>> model.compile(hf.optimizers.SGD(0.0), "mse")
    >>> history = model.fit(np.ones((4, 2)), np.ones(4), epochs=50, callbacks=[stop], verbose=0)
    >>> len(history.epoch)
    3
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: int = 0,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        self.patience, self.verbose, self.baseline = patience, verbose, baseline
        self.restore_best_weights, self.start_from_epoch = restore_best_weights, start_from_epoch
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best: float = self.worst()
        self.best_weights: Any = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.wait = self.stopped_epoch = self.best_epoch = 0
        self.best, self.best_weights = self.worst(), None

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        value = self.get_monitor_value(logs)
        if value is None or epoch < self.start_from_epoch:
            return
        if self.restore_best_weights and self.best_weights is None:
            self.best_weights, self.best_epoch = self.model.get_weights(), epoch
        self.wait += 1
        if self.is_better(value, self.best):
            self.best, self.best_epoch = value, epoch
            if self.restore_best_weights:
                self.best_weights = self.model.get_weights()
            if self.baseline is None or self.is_better(value, self.baseline):
                self.wait = 0
                return
        if self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            self.model.stop_training = True

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        if self.stopped_epoch and self.verbose:
            print(f"Epoch {self.stopped_epoch + 1}: early stopping")
        if self.best_weights is not None:
            if self.verbose:
                print(f"Restoring the weights of epoch {self.best_epoch + 1}")
            self.model.set_weights(self.best_weights)


class TerminateOnNaN(Callback):
    """Ends ``fit`` as soon as the loss is NaN or infinite; with ``raise_error`` by a RuntimeError.

    Args:
        raise_error: whether to raise rather than to stop training.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(hf.optimizers.SGD(0.1), "mse")
    >>> stop = hf.callbacks.TerminateOnNaN()
    >>> history = model.fit(np.full((4, 2), np.inf), np.ones(4), epochs=5, callbacks=[stop], verbose=0)
    Batch 0: the loss is nan, training ends
    >>> len(history.epoch)
    1
    """

    def __init__(self, raise_error: bool = False) -> None:
        super().__init__()
        self.raise_error = bool(raise_error)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        loss = (logs or {}).get("loss")
        if loss is not None and not np.isfinite(loss):
            if self.raise_error:
                raise RuntimeError(f"the loss of batch {batch} is {loss}")
            print(f"Batch {batch}: the loss is {loss}, training ends")
            self.model.stop_training = True


def _rate(model: Any, stage: str) -> Variable:
    rate = model.optimizer.learning_rate
    if not isinstance(rate, Variable):
        raise ArgumentTypeError(stage, "the optimizer has a schedule as its learning rate; give it a number.")
    return rate


def _most_arguments(function: Callable[..., Any]) -> int:
    """How many of two arguments a function takes."""
    try:
        inspect.signature(function).bind(None, None)
    except TypeError:
        return 1
    except ValueError:  # it does not say
        return 2
    return 2


class LearningRateScheduler(Callback):
    """Sets the learning rate before each epoch to ``schedule(epoch, learning_rate)``, or ``schedule(epoch)``.

    Args:
        schedule: a function of the epoch and the present learning rate.
        verbose: 1 prints messages, 0 is silent.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(hf.optimizers.SGD(0.1), "mse")
    >>> halve = hf.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    >>> history = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[halve], verbose=0)
    >>> history.history["learning_rate"]
    [0.05, 0.025]
    """

    def __init__(self, schedule: Callable[..., Any], verbose: int = 0) -> None:
        self.schedule, self.verbose = schedule, verbose

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = _rate(self.model, "LearningRateScheduler")
        arguments = (epoch, float(rate))
        new = self.schedule(*arguments[: _most_arguments(self.schedule)])
        if not isinstance(new, (int, float)) and getattr(new, "size", 0) != 1:
            raise ArgumentTypeError("LearningRateScheduler", f"the schedule returned {new!r}; it must be a number.")
        rate.assign(float(new))
        if self.verbose:
            print(f"Epoch {epoch + 1}: the learning rate is {float(new):.6g}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if logs is not None:
            logs["learning_rate"] = float(_rate(self.model, "LearningRateScheduler"))


class ReduceLROnPlateau(Watching):
    """Multiplies the learning rate by ``factor`` when ``monitor`` has not got better for ``patience`` epochs.

    It stays at ``min_lr`` or more, and after each time ``cooldown`` epochs do not count.

    Args:
        monitor: the name of a value in the logs.
        factor: what the learning rate is multiplied with.
        patience: after how many epochs without a change for the better it acts.
        verbose: 1 prints messages, 0 is silent.
        mode: ``"min"``, ``"max"`` or ``"auto"``: what is better.
        min_delta: the least change that counts.
        cooldown: how many epochs to wait after a change.
        min_lr: the least learning rate.

    >>> model = hf.Sequential([hf.layers.Dense(1, kernel_initializer="zeros")])
    >>> model.compile(hf.optimizers.SGD(0.5), "mse")
    >>> reduce = hf.callbacks.ReduceLROnPlateau(monitor="loss", factor=0.5, patience=1, min_delta=1e9)
    >>> history = model.fit(np.ones((4, 2)), np.ones(4), epochs=3, callbacks=[reduce], verbose=0)
    >>> history.history["learning_rate"]
    [0.5, 0.5, 0.25]
    """

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: int = 0,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if not 0 <= factor < 1:
            raise ArgumentError("ReduceLROnPlateau", f"factor is {factor!r}; it must be at least 0 and less than 1.")
        self.factor, self.patience, self.verbose, self.cooldown, self.min_lr = (
            factor,
            patience,
            verbose,
            cooldown,
            min_lr,
        )
        self.best = self.worst()
        self.wait = self._resting = 0

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.best, self.wait, self._resting = self.worst(), 0, 0

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        rate = _rate(self.model, "ReduceLROnPlateau")
        value = self.get_monitor_value(logs)
        if logs is not None:
            logs["learning_rate"] = float(rate)
        if value is None:
            return
        if self._resting:
            self._resting, self.wait = self._resting - 1, 0
        if self.is_better(value, self.best):
            self.best, self.wait = value, 0
        elif not self._resting:
            self.wait += 1
            if self.wait >= self.patience and float(rate) > self.min_lr:
                rate.assign(max(float(rate) * self.factor, self.min_lr))
                self._resting, self.wait = self.cooldown, 0
                if self.verbose:
                    print(f"Epoch {epoch + 1}: the learning rate is {float(rate):.6g}")
