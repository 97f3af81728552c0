"""Callbacks that write down what is logged, or hand it on."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

from hybridflow.callbacks.callback import Callback
from hybridflow.errors import ArgumentTypeError


class CSVLogger(Callback):
    """Writes what is logged into a file, a row for each epoch.

    With ``append`` rows are added to a file that is there.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[hf.callbacks.CSVLogger(path)], verbose=0)
    >>> len(open(path).readlines()), open(path).readline().strip()
    (3, 'epoch,loss')
    """

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = filename, separator, append
        self._file: Any = None
        self._writer: Any = None

    def on_train_begin(self, logs: Any = None) -> None:
        self._file = open(self.filename, "a" if self.append else "w", newline="")  # noqa: SIM115  # until the end
        self._writer = None

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        found = {"epoch": epoch, **(logs or {})}
        if self._writer is None:
            self._writer = csv.DictWriter(self._file, list(found), delimiter=self.separator, extrasaction="ignore")
            if not self._file.tell():
                self._writer.writeheader()
        self._writer.writerow(found)
        self._file.flush()

    def on_train_end(self, logs: Any = None) -> None:
        self._file.close()
        self._file = self._writer = None


class LambdaCallback(Callback):
    """Functions as a callback, each under the name of the method that it is.

    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> say = hf.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: print("epoch", epoch))
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[say], verbose=0)
    epoch 0
    epoch 1
    """

    def __init__(self, **functions: Callable[..., Any]) -> None:
        for name, function in functions.items():
            if not (name.startswith("on_") and hasattr(Callback, name)):
                raise ArgumentTypeError("LambdaCallback", f"callbacks have no method {name!r}.")
            if not callable(function):
                raise ArgumentTypeError("LambdaCallback", f"{name} is {function!r}, which is no function.")
        self._functions = functions
        for name, function in functions.items():
            setattr(self, name, function)
