"""The server over gRPC: answers, refusals, what it says of itself."""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.serving import grpc_messages, grpc_server, protocol
from tests.serving.test_application import during

grpc = pytest.importorskip("grpc")
pytest.importorskip("google.protobuf")

from hybridflow.serving.grpc_server import GrpcServer  # noqa: E402

MESSAGES = grpc_messages.messages()


def pair(x: Any, n: Any) -> Any:
    return {"total": hf.sum(x * 2, axis=1), "taken": hf.take(hf.constant([5, 6, 7]), n)}


def asked(talk: Callable[[Any], Any]) -> Any:
    """What ``talk`` returns, which is given a function that asks."""
    signature = [hf.TensorSpec(["n", 3]), hf.TensorSpec(["n"], hf.int8)]
    app = hf.serving.app({"pair": hf.function(pair, input_signature=signature)})
    server = GrpcServer(app, "127.0.0.1", 0)
    server.start()

    def ask(method: str, **fields: Any) -> Any:
        given, answer = MESSAGES[f"{method}Request"], MESSAGES[f"{method}Response"]
        path = f"/{grpc_messages.SERVICE}/{method}"
        return channel.unary_unary(path, given.SerializeToString, answer.FromString)(given(**fields), timeout=60)

    async def whole() -> Any:
        return await asyncio.to_thread(talk, ask)

    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            assert ask("ServerLive").live and not ask("ServerReady").ready  # nothing is loaded yet
            assert not ask("ModelReady", name="pair").ready
            return during(app, whole)
    finally:
        server.stop()


def tensor(name: str, datatype: str, shape: list[int], **contents: Any) -> Any:
    return MESSAGES["InferInputTensor"](name=name, datatype=datatype, shape=shape, contents=contents or None)


X = np.array([[1, 2, 3], [4, 5, np.inf]], np.float32)
INPUTS = [tensor("x", "FP32", [2, 3], floats=X.ravel()), tensor("n", "INT8", [2], ints=[0, -1])]


def test_answers_are_the_functions_by_elements_and_as_bytes() -> None:
    def talk(ask: Any) -> None:
        raw = [X.tobytes(), np.array([0, -1], np.int8).tobytes()]
        bare = [tensor("x", "FP32", [2, 3]), tensor("n", "INT8", [2])]
        for fields in ({"inputs": INPUTS}, {"inputs": bare, "raw_input_contents": raw}):
            response = ask("ModelInfer", model_name="pair", id="seven", **fields)
            assert (response.model_name, response.model_version, response.id) == ("pair", "1", "seven")
            ports = [(port.name, port.datatype, list(port.shape)) for port in response.outputs]
            assert ports == [("taken", "INT64", [2]), ("total", "FP32", [2])]
            taken, total = response.raw_output_contents
            np.testing.assert_array_equal(np.frombuffer(total, "<f4"), [12, np.inf])
            np.testing.assert_array_equal(np.frombuffer(taken, "<i8"), [5, 7])
        wanted = [MESSAGES["InferRequestedOutputTensor"](name="taken")]
        one = ask("ModelInfer", model_name="pair", model_version="1", inputs=INPUTS, outputs=wanted)
        assert [port.name for port in one.outputs] == ["taken"] and len(one.raw_output_contents) == 1

    asked(talk)


def test_what_there_is() -> None:
    def talk(ask: Any) -> None:
        assert ask("ServerReady").ready and ask("ModelReady", name="pair", version="1").ready
        assert ask("ServerMetadata").name == "hybridflow"
        found = ask("ModelMetadata", name="pair")
        assert (found.name, list(found.versions), found.platform) == ("pair", ["1"], "hybridflow")
        assert [(one.name, one.datatype, list(one.shape)) for one in found.inputs] == [
            ("x", "FP32", [-1, 3]),
            ("n", "INT8", [-1]),
        ]

    asked(talk)


def test_what_is_no_request_is_refused_and_the_server_goes_on() -> None:
    x, n = INPUTS
    bad: list[tuple[str, str, dict[str, Any]]] = [
        ("NOT_FOUND", "no model 'none'", {"model_name": "none", "inputs": INPUTS}),
        ("NOT_FOUND", "no version '7'", {"model_version": "7", "inputs": INPUTS}),
        ("INVALID_ARGUMENT", "n is missing", {"inputs": [x]}),
        ("INVALID_ARGUMENT", "comes twice", {"inputs": [x, x, n]}),
        ("INVALID_ARGUMENT", "no input 'y'", {"inputs": [x, n, tensor("y", "FP32", [1])]}),
        ("INVALID_ARGUMENT", "the model takes FP32", {"inputs": [tensor("x", "FP64", [2, 3]), n]}),
        ("INVALID_ARGUMENT", "BYTES", {"inputs": [tensor("x", "BYTES", [2, 3]), n]}),
        ("INVALID_ARGUMENT", "list of extents", {"inputs": [tensor("x", "FP32", [-2, 3], floats=[1]), n]}),
        ("INVALID_ARGUMENT", "list of extents", {"inputs": [tensor("x", "FP32", [2**62, 3], floats=[1]), n]}),
        ("INVALID_ARGUMENT", "does not fit", {"inputs": [tensor("x", "FP32", [2, 3], floats=[1, 2]), n]}),
        ("INVALID_ARGUMENT", "none of int8's", {"inputs": [x, tensor("n", "INT8", [2], ints=[1, 300])]}),
        ("INVALID_ARGUMENT", "1 raw contents for 2", {"inputs": INPUTS, "raw_input_contents": [b""]}),
        ("INVALID_ARGUMENT", "does not have 3 bytes", {"inputs": INPUTS, "raw_input_contents": [b"abc", b"ab"]}),
        ("INVALID_ARGUMENT", "out of range", {"inputs": [x, tensor("n", "INT8", [2], ints=[1, 9])]}),
        ("INVALID_ARGUMENT", "other numbers of rows", {"inputs": [x, tensor("n", "INT8", [1], ints=[1])]}),
        ("INVALID_ARGUMENT", "no output 'z'",
         {"inputs": INPUTS, "outputs": [MESSAGES["InferRequestedOutputTensor"](name="z")]}),
    ]  # fmt: skip

    def talk(ask: Any) -> None:
        for code, text, fields in bad:
            with pytest.raises(grpc.RpcError) as caught:
                ask("ModelInfer", **{"model_name": "pair"} | fields)
            assert (caught.value.code().name, text in caught.value.details()) == (code, True), caught.value.details()
        assert len(ask("ModelInfer", model_name="pair", inputs=INPUTS).outputs) == 2

    asked(talk)


def test_a_port_that_is_taken_and_a_missing_package_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    app = hf.serving.app({"pair": hf.function(pair)})
    server = GrpcServer(app, "127.0.0.1", 0)
    server.start()
    try:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            with pytest.raises(hf.errors.ArgumentError, match="cannot be listened on"):
                GrpcServer(app, "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(hf.errors.ArgumentError, match="cannot be listened on"):
            GrpcServer(app, "127.0.0.1", server.port)  # it would get some of the requests
    finally:
        server.stop()
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(hf.errors.ArgumentError, match=r"hybridflow\[serve-grpc\]"):
        GrpcServer(app, "127.0.0.1", 0)


def test_who_waits_for_an_answer_keeps_nobody_from_asking_for_health_and_may_go_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grpc_server, "_THREADS", 1)
    app = hf.serving.app({"pair": hf.function(pair, input_signature=[hf.TensorSpec(["n", 3])] * 2)})
    waiting, counted, codes = threading.Event(), threading.Event(), []

    def submit(served: Any, version: Any, arrays: Any) -> Any:
        waiting.set()
        return served, Future()  # nobody computes it

    def count(name: str, code: int) -> None:
        codes.append(code)
        counted.set()

    class Endpoint:
        inputs: tuple[()] = ()
        outputs: tuple[()] = ()
        check = staticmethod(lambda arrays: None)

    class Served:
        endpoint = Endpoint

    monkeypatch.setattr(app, "submit", submit)
    monkeypatch.setattr(app, "count", count)
    monkeypatch.setattr(app.repository, "find", lambda name, version: Served)
    server = GrpcServer(app, "127.0.0.1", 0)
    server.start()
    try:
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:

            def method(name: str) -> Any:
                given, answer = MESSAGES[f"{name}Request"], MESSAGES[f"{name}Response"]
                path = f"/{grpc_messages.SERVICE}/{name}"
                return channel.unary_unary(path, given.SerializeToString, answer.FromString)

            asked = method("ModelInfer").future(MESSAGES["ModelInferRequest"](model_name="pair"))
            assert waiting.wait(60)
            assert method("ServerLive")(MESSAGES["ServerLiveRequest"](), timeout=60).live
            asked.cancel()
            assert counted.wait(60) and codes == [503]
    finally:
        server.stop()


def test_the_end_of_the_application_stops_the_server_first() -> None:
    app = hf.serving.app({"one": hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec([1])])})
    monitored = []
    app.stop_first(lambda: monitored.append(app.repository.is_stopping))
    server = GrpcServer(app, "127.0.0.1", 0)
    server.start()

    async def nothing() -> None:
        pass

    request, path = MESSAGES["ServerLiveRequest"], f"/{grpc_messages.SERVICE}/ServerLive"
    try:
        during(app, nothing)
        assert monitored == [False]
        with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel, pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path, request.SerializeToString)(request(), timeout=60)
        assert caught.value.code().name == "UNAVAILABLE"
    finally:
        server.stop()  # once more, as the command does


def test_addresses_have_brackets_around_colons() -> None:
    assert [protocol.address(host, 80) for host in ("a.b", "::1")] == ["a.b:80", "[::1]:80"]
