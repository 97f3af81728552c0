"""Callbacks that write down what is logged, or hand it on."""

from __future__ import annotations

import csv
import json
import os
import warnings
from collections.abc import Callable
from typing import Any

from hybridflow.callbacks.callback import Callback
from hybridflow.errors import ArgumentError, ArgumentTypeError, writing_to


class CSVLogger(Callback):
    """Writes what is logged into a file, a row for each epoch: ``NA`` where a column has nothing, as those of
    validation have without one.

    With ``append`` rows are added to a file that is there.

    Args:
        filename: the file to write.
        separator: what stands between values.
        append: whether to write behind what is there.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.layers.Dense(1)])
    >>> model.compile(loss="mse")
    >>> path = os.path.join(tempfile.mkdtemp(), "log.csv")
    >>> _ = model.fit(np.ones((4, 2)), np.ones(4), epochs=2, callbacks=[hf.callbacks.CSVLogger(path)], verbose=0)
    >>> len(open(path).readlines()), open(path).readline().strip()
    (3, 'epoch,loss,val_loss')
    """

    _of_first_process = True

    def __init__(self, filename: str | os.PathLike[str], separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = filename, separator, append
        self._names: list[str] = []

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._names = []
        if self.append and os.path.exists(self.filename):
            self._names = self._rows()[0]
        else:
            self._write([])

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        row = {"epoch": epoch, **(logs or {})}
        names = ["epoch", *sorted(logs or ())]
        if not any(name.startswith("val_") for name in names):
            names += [f"val_{name}" for name in names[1:]]  # later epochs may be validated
        new = [name for name in names if name not in self._names]
        if new and (not self._names or not set(row) <= set(self._names)):
            _, rows = self._rows()
            self._names += new
            self._write([*rows, row])
            return
        with writing_to(self.filename), open(self.filename, "a", newline="") as file:
            self._writer(file).writerow(row)

    def _rows(self) -> tuple[list[str], list[dict[str, Any]]]:
        """The names in the first line, and the rows below."""
        with open(self.filename, newline="") as file:
            reader = csv.DictReader(file, delimiter=self.separator)
            return list(reader.fieldnames or ()), [{k: v for k, v in row.items() if v is not None} for row in reader]

    def _write(self, rows: list[dict[str, Any]]) -> None:
        with writing_to(self.filename), open(self.filename, "w", newline="") as file:
            if self._names:
                writer = self._writer(file)
                writer.writeheader()
                writer.writerows(rows)

    def _writer(self, file: Any) -> csv.DictWriter[str]:
        return csv.DictWriter(file, self._names, restval="NA", delimiter=self.separator)


class LambdaCallback(Callback):
    """Functions as a callback, each under the name of the method that it is.

    Args:
        **functions: functions by the names of the events.

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


class RemoteMonitor(Callback):
    """Sends what is logged to a server after each epoch, by POST to ``root + path``.

    JSON is in the form's ``field``, or the whole body with ``send_as_json``. A server that cannot be reached is a
    warning.

    Args:
        root: the address of the server.
        path: the path on the server.
        field: the field that the logs are sent as.
        headers: headers to send.
        send_as_json: whether to send JSON rather than a form.

    >>> hf.callbacks.RemoteMonitor(root="http://localhost:9000").path
    '/publish/epoch/end/'
    """

    _of_first_process = True

    def __init__(
        self,
        root: str = "http://localhost:9000",
        path: str = "/publish/epoch/end/",
        field: str = "data",
        headers: dict[str, str] | None = None,
        send_as_json: bool = False,
    ) -> None:
        if not root.startswith(("http://", "https://")):
            raise ArgumentError("RemoteMonitor", f"root is {root!r}; it must be the address of a server, http://...")
        self.root, self.path, self.field = root, path, field
        self.headers, self.send_as_json = headers, send_as_json

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        from http.client import HTTPException  # which nobody else needs
        from urllib import parse, request

        text = json.dumps({"epoch": epoch, **(logs or {})}, default=float)
        kind = "application/json" if self.send_as_json else "application/x-www-form-urlencoded"
        body = text if self.send_as_json else parse.urlencode({self.field: text})
        headers = {"Content-Type": kind, **(self.headers or {})}
        try:
            request.urlopen(request.Request(self.root + self.path, body.encode(), headers), timeout=10).close()
        except (OSError, HTTPException):  # what is wrong with the address, the way, or the answer
            warnings.warn(f"RemoteMonitor could not reach the server at {self.root}", stacklevel=2)
