"""A client of servers that speak the Open Inference Protocol, for Python programs and tests."""

from __future__ import annotations

import http.client
import json
import os
import threading
import urllib.parse
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError, HybridflowError
from hybridflow.serving.endpoint import DATATYPES, NAMES
from hybridflow.serving.protocol import HEADER

_STAGE = "serving.Client"


class Client:
    """Client of a server: ``client.infer(model, x)``, or ``client.model(x)``.

    Arrays go and come as bytes. Connections are kept, one for each thread.

    Args:
        url: of the server, such as ``http://127.0.0.1:8000``.
        timeout: seconds that an answer may take.

    >>> hf.serving.Client("http://127.0.0.1:8000")
    <Client of http://127.0.0.1:8000>
    """

    def __init__(self, url: str, timeout: float = 60.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError(_STAGE, f"{url!r:.80} is no address such as http://127.0.0.1:8000.")
        self._url, self._parts, self._timeout = url, parts, timeout
        self._local = threading.local()
        self._known: dict[tuple[str, str | None], dict[str, Any]] = {}

    def __repr__(self) -> str:
        return f"<Client of {self._url}>"

    def metadata(self, model: str, version: str | None = None) -> dict[str, Any]:
        """What a model takes and returns, as the server describes it.

        Args:
            model: the name of the model.
            version: its version; by default the server's choice.

        Returns:
            The server's answer as a dict.

        Raises:
            OSError: where the server does not answer.
        """
        key = model, version
        if key not in self._known:
            self._known[key] = json.loads(self._ask("GET", _address(model, version))[1])
        return self._known[key]

    def is_ready(self) -> bool:
        """Whether the server answers for all of its models.

        Returns:
            True or False.
        """
        try:
            self._ask("GET", "/v2/health/ready")
        except (OSError, HybridflowError):
            return False
        return True

    def infer(self, model: str, *arrays: object, version: str | None = None, **named: object) -> Any:
        """Ask a model.

        Args:
            model: its name.
            *arrays: the inputs in their order.
            version: of the model; the newest unless given.
            **named: inputs by name.

        Returns:
            An array of NumPy's; a dict of them by name where the model has several outputs.

        Raises:
            ArgumentError: for other inputs than the model's.
            HybridflowError: with the server's message, where it refuses.
        """
        try:
            inputs, tail = _content(self.metadata(model, version), model, arrays, named)
        except ArgumentError:
            self._known.pop((model, version), None)  # the model may have been replaced: next time it is asked for
            raise
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        headers, body = self._ask("POST", f"{_address(model, version)}/infer", head + tail, {HEADER: str(len(head))})
        return _outputs(headers, body)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arrays, **named: self.infer(name, *arrays, **named)

    def _ask(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> tuple[Any, bytes]:
        for attempt in range(2):
            connection = self._connection()
            try:
                connection.request(method, self._parts.path.rstrip("/") + path, body, headers or {})
                response = connection.getresponse()
                content = response.read()
                break
            except BaseException as error:  # Ctrl-C, too: an answer that was not read is nobody's
                connection.close()
                self._local.connection = None
                # The server closes connections that are idle; then it is asked again, once.
                if attempt or not isinstance(
                    error, (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError)
                ):
                    raise
        if response.status != 200:
            self._known.clear()  # the model may be another than the one that was described
            raise HybridflowError(_STAGE, f"{self._url}{path} answers {response.status}: {_message(content)}")
        return response.headers, content

    def _connection(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
        if connection is None or self._local.process != os.getpid():  # a fork shares its parent's sockets
            kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
            connection = kind(str(self._parts.hostname), self._parts.port, timeout=self._timeout)
            self._local.connection, self._local.process = connection, os.getpid()
        return connection


def _address(model: str, version: str | None) -> str:
    name = urllib.parse.quote(model, safe="")
    return f"/v2/models/{name}" + (f"/versions/{urllib.parse.quote(version, safe='')}" if version is not None else "")


def _content(
    told: dict[str, Any], model: str, arrays: tuple[Any, ...], named: dict[str, Any]
) -> tuple[list[dict[str, Any]], bytes]:
    """The inputs as a request describes them, and their bytes."""
    names = [one["name"] for one in told["inputs"]]
    arrays_by_name = dict(zip(names, arrays)) | named
    if len(arrays) > len(names) or set(arrays_by_name) != set(names):
        raise ArgumentError(
            _STAGE, f"{model} takes {', '.join(names)}; {', '.join(arrays_by_name) or 'nothing'} was given."
        )
    inputs, tail = [], b""
    for one in told["inputs"]:
        array = _array(arrays_by_name[one["name"]], one, model)
        content = np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
        inputs.append(
            {
                "name": one["name"],
                "shape": list(array.shape),
                "datatype": one["datatype"],
                "parameters": {"binary_data_size": len(content)},
            }
        )
        tail += content
    return inputs, tail


def _array(value: object, port: dict[str, Any], model: str) -> np.ndarray:
    """An input as the model takes it.  Raises ArgumentError for one that it does not take."""
    dtype = DATATYPES[port["datatype"]]
    array = np.asarray(value)
    if array.dtype != dtype:
        if not (array.dtype.kind == dtype.kind or (array.dtype.kind in "iu" and dtype.kind == "f")):
            raise ArgumentError(_STAGE, f"{port['name']} of {model} is {NAMES[dtype]}; {array.dtype} was given.")
        array = array.astype(dtype)
    fits = array.ndim == len(port["shape"]) and all(w in (-1, n) for w, n in zip(port["shape"], array.shape))
    if not fits:
        raise ArgumentError(
            _STAGE, f"{port['name']} of {model} has the shape {port['shape']}; not {list(array.shape)}."
        )
    return array


def _outputs(headers: Any, body: bytes) -> Any:
    length = int(headers.get(HEADER, len(body)))
    told, place, result = json.loads(body[:length]), length, {}
    for one in told["outputs"]:
        dtype = DATATYPES[one["datatype"]]
        size = one.get("parameters", {}).get("binary_data_size")
        if size is None:
            result[one["name"]] = np.array(one["data"], dtype).reshape(one["shape"])
        else:
            held = np.frombuffer(body, dtype.newbyteorder("<"), size // dtype.itemsize, place)
            result[one["name"]] = held.astype(dtype).reshape(one["shape"])
            place += size
    return next(iter(result.values())) if len(result) == 1 else result


def _message(content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return content[:200].decode(errors="replace")
