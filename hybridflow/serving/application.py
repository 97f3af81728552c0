"""The server as an ASGI application: the Open Inference Protocol, version 2, over HTTP."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any

from hybridflow import errors
from hybridflow.serving import protocol
from hybridflow.serving.errors import RequestError
from hybridflow.serving.metrics import Metrics
from hybridflow.serving.repository import Repository, Served, Settings

_LOG = logging.getLogger("hybridflow.serving")
_JSON = b"application/json"
_SHORT = 1 << 16  # bytes of JSON, and elements of results, that are dealt with at once, in the loop of events
_CLIENT_GONE = 499  # as other servers count a request whose client did not wait for the answer
_READ_SECONDS = 60.0  # from the first to the last byte of a request's body
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


def app(
    models: Mapping[str, Any],
    *,
    max_batch: int = 64,
    max_delay_ms: float = 0.0,
    workers: int = 1,
    queue: int = 1024,
    max_body: int = 64 << 20,
    deterministic: bool = False,
    max_requests: int = 1024,
) -> Application:
    """Serve models: an ASGI application, for ``uvicorn`` and as a part of others.

    It speaks the Open Inference Protocol (version 2) of KServe and Triton, arrays as JSON or as bytes. Requests of open
    batches are computed together: with a delay of 0 those that came while the batch before was computed.

    Args:
        models: what is served, by name: a file of ``hf.saved.save``, an ONNX or Keras model, a folder of numbered
            folders with such files, or an ``hf.function`` with an ``input_signature``.
        max_batch: rows that are computed at once, at most; 1: each request by itself.
        max_delay_ms: milliseconds that the first of a batch waits for others.
        workers: threads that compute, for each model.
        queue: requests of a model that may wait; more are answered 503 with Retry-After.
        max_body: bytes of a request, at most; more are answered 413 before they are read.
        deterministic: whether an answer may not depend on what else is asked: each request is computed by itself.
        max_requests: requests of all models that are read and answered at a time; more are answered 503 with
            Retry-After, before their bodies are read.

    Returns:
        The application. Models are loaded when it is started.

    Raises:
        ArgumentError: for numbers that make no sense, or a name with a slash.

    >>> import os, tempfile
    >>> model = hf.Sequential([hf.Input((3,)), hf.layers.Dense(2)])
    >>> path = hf.saved.save(model, os.path.join(tempfile.mkdtemp(), "digits.hf"))
    >>> hf.serving.app({"digits": path}, max_batch=32)
    <Application of digits>
    """
    for name, value, least in (
        ("max_batch", max_batch, 1),
        ("max_delay_ms", max_delay_ms, 0),
        ("workers", workers, 1),
        ("queue", queue, 1),
        ("max_body", max_body, 1),
        ("max_requests", max_requests, 1),
    ):
        if not value >= least:
            raise errors.ArgumentError("serving.app", f"{name} is {value!r}; it must be {least} or more.")
    if not models:
        raise errors.ArgumentError("serving.app", "there is no model.")
    settings = Settings(max_batch, max_delay_ms, workers, queue, max_body, deterministic, max_requests)
    return Application(models, settings)


class Application:
    """A server of models, as an ASGI application; ``hf.serving.app`` makes it.

    Args:
        models: what is served, by name.
        settings: how.

    >>> hf.serving.app({"twice": hf.function(lambda x: 2 * x)})
    <Application of twice>
    """

    def __init__(self, models: Mapping[str, Any], settings: Any) -> None:
        self.metrics = Metrics()
        self.settings: Settings = settings
        self.repository = Repository(models, settings, self.metrics)
        self._in_flight = 0
        self._beside: list[Callable[[], None]] = []

    def stop_first(self, stop: Callable[[], None]) -> None:
        """Have something stop before the models do, when the application ends: another way to ask them.

        Args:
            stop: a function without arguments.
        """
        self._beside.append(stop)

    def __repr__(self) -> str:
        return f"<Application of {', '.join(self.repository.names)}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or run from start to stop, as ASGI says."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1003, "reason": "HTTP is served."})
        else:
            raise errors.ArgumentError("serving", f"{scope['type']} is not served; HTTP is.")

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                try:
                    await asyncio.to_thread(self.repository.load_all)
                except Exception as error:
                    await send({"type": "lifespan.startup.failed", "message": str(error)})
                    return
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                for stop in (*self._beside, self.repository.close):
                    await asyncio.to_thread(stop)
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            status, headers, body = await self._answer(scope, receive)
        except RequestError as error:
            status, body = error.status, protocol.dumps({"error": str(error)})
            headers = [(b"content-type", _JSON)]
            if error.retry is not None:
                headers.append((b"retry-after", str(error.retry).encode()))
            if status in (408, 413):
                headers.append((b"connection", b"close"))
        except Exception:
            _LOG.exception("a request failed")
            status, headers = 500, [(b"content-type", _JSON)]
            body = protocol.dumps({"error": "the server failed; its log says why."})
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body if scope["method"] != "HEAD" else b""})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        path = [part for part in scope["path"].removeprefix(scope.get("root_path", "")).split("/") if part]
        method = scope["method"]
        if path == ["metrics"] and method == "GET":
            return 200, [(b"content-type", b"text/plain; version=0.0.4")], self.metrics.text().encode()
        if path[:1] != ["v2"]:
            raise RequestError(404, f"there is nothing at {scope['path']!r:.80}; the protocol begins with /v2.")
        if path[-1] == "infer" and path[1:2] == ["models"] and len(path) > 3:  # a model may have this name
            if method != "POST":
                raise RequestError(405, "inputs are sent by POST.")
            return await self._infer(path[2:-1], scope, receive)
        if method in ("GET", "HEAD"):
            return _json(self.described(path[1:]))
        if method == "POST" and path[1:2] == ["repository"]:
            await self._body(scope, receive)
            return _json(await self._changed(path[2:]))
        raise RequestError(404, f"there is nothing at {method} {scope['path']!r:.80}.")

    def described(self, path: list[str]) -> Any:
        """What is answered to GET behind /v2.

        Args:
            path: the parts of the address.

        Returns:
            What is sent as JSON.
        """
        if not path:
            extensions = ["binary_tensor_data", "model_repository"]
            return {"name": "hybridflow", "version": _version(), "extensions": extensions}
        if path == ["health", "live"]:
            return {"live": True}
        if path == ["health", "ready"]:
            if not self.repository.is_ready:
                raise RequestError(503, "not all models are loaded.", retry=1)
            return {"ready": True}
        if path[0] == "models" and len(path) >= 2:
            is_question = path[-1] == "ready" and len(path) > 2
            served = self.repository.find(*_name_and_version(path[1 : -1 if is_question else None]))
            if is_question:
                return {"name": served.name, "ready": True}
            return {
                "name": served.name,
                "versions": self.repository.versions(served.name),
                "platform": "hybridflow",
                "inputs": [port.metadata() for port in served.endpoint.inputs],
                "outputs": [port.metadata() for port in served.endpoint.outputs],
            }
        raise RequestError(404, "there is nothing at this address.")

    async def _changed(self, path: list[str]) -> Any:
        """What is answered to POST on the repository."""
        if path == ["index"]:
            return self.repository.index()
        if len(path) == 3 and path[0] == "models" and path[2] in ("load", "unload"):
            change = self.repository.load if path[2] == "load" else self.repository.unload
            try:
                await asyncio.to_thread(change, path[1])
            except RequestError:
                raise
            except Exception as error:
                raise RequestError(400, f"{path[1]} cannot be loaded: {error}") from None
            return {}
        raise RequestError(404, "there is nothing at this address.")

    async def _infer(
        self, path: list[str], scope: Scope, receive: Receive
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        begin = time.perf_counter()
        name, version = _name_and_version(path)
        code = 500
        self._in_flight += 1
        try:
            if self._in_flight > self.settings.max_requests:
                raise RequestError(503, f"{self.settings.max_requests} requests are being answered.", retry=1)
            served = self.repository.find(name, version)
            body = await self._body(scope, receive)
            begin = time.perf_counter()
            length = _json_length(scope)
            endpoint = served.endpoint
            arguments = (body, length, endpoint.inputs, endpoint.outputs)
            if (len(body) if length is None else length) > _SHORT:  # others are answered while it is parsed
                request = await asyncio.to_thread(protocol.parse, *arguments)
            else:
                request = protocol.parse(*arguments)
            endpoint.check(request.arrays)
            answering, at_once = served, served.batcher.answer_at_once(request.arrays)
            if at_once is None:
                answering, future = self.submit(served, version, request.arrays)
                outputs = await asyncio.wrap_future(future)
            else:
                outputs = at_once
            told = (name, answering.version, request, endpoint.outputs, outputs)
            if sum(getattr(one, "size", 0) for one in outputs) > _SHORT:
                text, json_length = await asyncio.to_thread(protocol.answer, *told)
            else:
                text, json_length = protocol.answer(*told)
            code = 200
        except RequestError as error:
            code = error.status
            raise
        except asyncio.CancelledError:
            code = _CLIENT_GONE
            raise
        finally:
            self._in_flight -= 1
            self.count(name, code)
        self.metrics.observe("hf_request_seconds", time.perf_counter() - begin, model=name)
        if json_length is None:
            return 200, [(b"content-type", _JSON)], text
        headers = [
            (b"content-type", b"application/octet-stream"),
            (protocol.HEADER.encode(), str(json_length).encode()),
        ]
        return 200, headers, text

    def submit(self, served: Served, version: str | None, arrays: Any) -> tuple[Served, Future[list[Any]]]:
        """Hand in a request: to the model that was found for it, or to that which has just replaced it.

        Args:
            served: the model.
            version: the version that was asked for, or None.
            arrays: the inputs.

        Returns:
            The model that answers, and a future of its outputs.
        """
        try:
            return served, served.batcher.submit(arrays)
        except RequestError:
            current = self.repository.find(served.name, version)
            before, now = served.endpoint, current.endpoint
            # The request was read for these inputs, and its answer names these outputs.
            is_alike = (before.inputs, before.outputs) == (now.inputs, now.outputs)
            if current.batcher is served.batcher or not is_alike:
                raise
            return current, current.batcher.submit(arrays)

    def count(self, name: str, code: int) -> None:
        """Note that a request for a model was answered.

        Args:
            name: the name of the model.
            code: the HTTP status of the answer.
        """
        known = name if name in self.repository.names else "unknown"
        self.metrics.add("hf_requests_total", model=known, code=str(code))

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """The body of a request, whose length is checked before it is read."""
        most = self.settings.max_body
        said = _header(scope, b"content-length")
        if said is not None and (not said.isdigit() or int(said) > most):
            raise RequestError(413, f"a request has {said.decode(errors='replace')} bytes; {most} are allowed.")
        try:
            async with asyncio.timeout(_READ_SECONDS):
                return await _received(receive, most)
        except TimeoutError:
            raise RequestError(408, f"the request did not come within {_READ_SECONDS:g} s.") from None


async def _received(receive: Receive, most: int) -> bytes:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise RequestError(_CLIENT_GONE, "the client went away.")
        part = message.get("body", b"")
        size += len(part)
        if size > most:
            raise RequestError(413, f"a request has more than {most} bytes.")
        parts.append(part)
        if not message.get("more_body"):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _version() -> str:
    return str(sys.modules["hybridflow"].__version__)


def _json(value: object) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    return 200, [(b"content-type", _JSON)], protocol.dumps(value)


def _name_and_version(path: list[str]) -> tuple[str, str | None]:
    """``NAME`` or ``NAME/versions/VERSION``."""
    match path:
        case [name]:
            return name, None
        case [name, "versions", version]:
            return name, version
    raise RequestError(404, "there is nothing at this address.")


def _header(scope: Scope, name: bytes) -> bytes | None:
    header: bytes | None = next((value for key, value in scope["headers"] if key.lower() == name), None)
    return header


def _json_length(scope: Scope) -> int | None:
    said = _header(scope, protocol.HEADER.encode())
    if said is None:
        return None
    if not said.isdigit() or len(said) > 18:
        raise RequestError(400, f"{protocol.HEADER} is {said[:40]!r}.")
    return int(said)
