"""The Open Inference Protocol, version 2, over gRPC: the models of an application, asked beside its HTTP."""

from __future__ import annotations

import concurrent.futures
import importlib
import logging
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError
from hybridflow.serving import protocol
from hybridflow.serving.application import Application
from hybridflow.serving.endpoint import NAMES, Port
from hybridflow.serving.errors import RequestError
from hybridflow.serving.grpc_messages import METHODS, SERVICE, messages

_LOG = logging.getLogger("hybridflow.serving")
_THREADS = 64  # that read requests and wait for answers
_QUICK_THREADS = 2  # that say what there is, however many requests wait
_STATUS = {400: "INVALID_ARGUMENT", 404: "NOT_FOUND", 413: "RESOURCE_EXHAUSTED", 503: "UNAVAILABLE"}
# Where elements that are no bytes stand, by the kind and size of their dtype.
_CONTENTS = {"b1": "bools", "i1": "ints", "i2": "ints", "i4": "ints", "i8": "longs", "u1": "uints", "u2": "uints"}
_CONTENTS |= {"u4": "uints", "u8": "ulongs", "f4": "floats", "f8": "doubles"}


class GrpcServer:
    """A server of an application's models by gRPC.

    Args:
        application: what ``hf.serving.app`` returned; its models are loaded when it is started, and its end stops
            this server first.
        host: the address that is listened on.
        port: the port; 0 takes one that is free.

    Raises:
        ArgumentError: without the package ``grpcio``, and for a port that is taken.
    """

    def __init__(self, application: Application, host: str, port: int) -> None:
        try:
            self._grpc: Any = importlib.import_module("grpc")
            self._messages = messages()
        except ImportError:
            text = "gRPC needs grpcio and protobuf: pip install 'hybridflow[serve-grpc]'."
            raise ArgumentError("serve", text, "") from None
        self._application = application
        settings = application.settings
        options = [("grpc.max_receive_message_length", settings.max_body), ("grpc.max_send_message_length", -1)]
        options.append(("grpc.so_reuseport", 0))  # a port that another server listens on is taken
        self._pool = concurrent.futures.ThreadPoolExecutor(_THREADS, thread_name_prefix="hybridflow-grpc")
        self._quick_pool = concurrent.futures.ThreadPoolExecutor(_QUICK_THREADS, thread_name_prefix="hybridflow-grpc")
        self._server: Any = self._grpc.server(
            self._pool, options=options, maximum_concurrent_rpcs=settings.max_requests
        )
        methods = {name: self._handler(name, getattr(self, f"_{_snake(name)}")) for name in METHODS}
        handlers = self._grpc.method_handlers_generic_handler(SERVICE, methods)
        self._server.add_generic_rpc_handlers((handlers,))
        try:
            self.port: int = self._server.add_insecure_port(protocol.address(host, port))
        except RuntimeError:
            raise ArgumentError("serve", f"port {port} of {host} cannot be listened on by gRPC.", "") from None

    def start(self) -> None:
        """Answer requests; models that are not loaded yet are said to be unavailable."""
        self._application.stop_first(self.stop)
        self._server.start()

    def stop(self) -> None:
        """Take no more requests; returns when all are answered.  It may be stopped twice."""
        self._server.stop(5.0).wait()
        self._pool.shutdown()
        self._quick_pool.shutdown()

    def _handler(self, name: str, answer: Callable[[Any, Any], Any]) -> Any:
        def run(request: object, context: Any) -> Any:
            try:
                return answer(request, context)
            except RequestError as error:
                code = getattr(self._grpc.StatusCode, _STATUS.get(error.status, "INTERNAL"))
                text = str(error)
            except Exception:
                _LOG.exception("a request failed")
                code, text = self._grpc.StatusCode.INTERNAL, "the server failed; its log says why."
            return context.abort(code, text)

        if name != "ModelInfer":
            run.experimental_thread_pool = self._quick_pool  # type: ignore[attr-defined]  # grpc looks for it

        return self._grpc.unary_unary_rpc_method_handler(
            run,
            request_deserializer=self._messages[f"{name}Request"].FromString,
            response_serializer=self._messages[f"{name}Response"].SerializeToString,
        )

    def _server_live(self, request: object, context: object) -> Any:
        return self._messages["ServerLiveResponse"](live=True)

    def _server_ready(self, request: object, context: object) -> Any:
        return self._messages["ServerReadyResponse"](ready=self._application.repository.is_ready)

    def _model_ready(self, request: Any, context: object) -> Any:
        try:
            self._application.repository.find(request.name, request.version or None)
        except RequestError as error:
            if error.status != 503:
                raise
            return self._messages["ModelReadyResponse"](ready=False)
        return self._messages["ModelReadyResponse"](ready=True)

    def _server_metadata(self, request: object, context: object) -> Any:
        return self._messages["ServerMetadataResponse"](**self._application.described([]))

    def _model_metadata(self, request: Any, context: object) -> Any:
        version = ["versions", request.version] if request.version else []
        return self._messages["ModelMetadataResponse"](
            **self._application.described(["models", request.name, *version])
        )

    def _model_infer(self, request: Any, context: Any) -> Any:
        begin, code, application = time.perf_counter(), 500, self._application
        name, version = request.model_name, request.model_version or None
        try:
            served = application.repository.find(name, version)
            endpoint = served.endpoint
            arrays = _arrays(request, endpoint.inputs)
            wanted = _wanted(request, endpoint.outputs)
            endpoint.check(arrays)
            answering, future = application.submit(served, version, arrays)
            if not context.add_callback(future.cancel):  # of a client that goes away before it is computed
                future.cancel()
            outputs = future.result()
            response = self._messages["ModelInferResponse"](
                model_name=name, model_version=answering.version, id=request.id
            )
            for number in wanted:
                port, array = endpoint.outputs[number], outputs[number]
                response.outputs.add(name=port.name, datatype=NAMES[port.dtype], shape=array.shape)
                response.raw_output_contents.append(protocol.bytes_of(array, port))
            code = 200
        except concurrent.futures.CancelledError:
            code = 503
            raise RequestError(503, "the client went away.") from None
        except RequestError as error:
            code = error.status
            raise
        finally:
            application.count(name, code)
        application.metrics.observe("hf_request_seconds", time.perf_counter() - begin, model=name)
        return response


def _snake(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).removeprefix("_")


def _arrays(request: Any, inputs: list[Port]) -> list[np.ndarray]:
    """An array for each input.  Raises RequestError where they are others."""
    tensors = {one.name: (number, one) for number, one in enumerate(request.inputs)}
    raw = request.raw_input_contents
    if len(tensors) != len(request.inputs):
        raise RequestError(400, "an input comes twice.")
    if raw and len(raw) != len(tensors):
        raise RequestError(400, f"there are {len(raw)} raw contents for {len(tensors)} inputs.")
    names = [port.name for port in inputs]
    for name in tensors:
        if name not in names:
            raise RequestError(400, f"there is no input {name!r:.60}; the model has {', '.join(names)}.")
    result = []
    for port in inputs:
        if port.name not in tensors:
            raise RequestError(400, f"the input {port.name} is missing.")
        number, one = tensors[port.name]
        shape = protocol.shape_of({"shape": list(one.shape), "datatype": one.datatype}, port)
        if raw:
            content = raw[number]
            result.append(protocol.array_of_bytes(content, 0, len(content), shape, port))
        else:
            result.append(_of_contents(one.contents, shape, port))
    return result


def _of_contents(contents: object, shape: tuple[int, ...], port: Port) -> np.ndarray:
    field = _CONTENTS.get(f"{port.dtype.kind}{port.dtype.itemsize}")
    if field is None:
        raise RequestError(400, f"{port.name} is {NAMES[port.dtype]}, which is sent as raw contents.")
    elements = np.array(getattr(contents, field))
    result = elements.astype(port.dtype)
    if port.dtype.kind in "iu" and elements.size and (result != elements).any():
        raise RequestError(400, f"{port.name} does not fit {NAMES[port.dtype]}: a number is none of {port.dtype}'s.")
    try:
        return result.reshape(shape)
    except ValueError as error:
        raise RequestError(400, f"{port.name} does not fit {NAMES[port.dtype]}{list(shape)}: {error}.") from None


def _wanted(request: Any, outputs: list[Port]) -> list[int]:
    names = [port.name for port in outputs]
    for one in request.outputs:
        if one.name not in names:
            raise RequestError(400, f"there is no output {one.name!r:.60}; the model has {', '.join(names)}.")
    return [names.index(one.name) for one in request.outputs] or list(range(len(names)))
