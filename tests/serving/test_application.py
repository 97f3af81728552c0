"""The server, asked in this process: answers, batches, refusals, reloads."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.cli import serve
from hybridflow.serving.application import Application
from hybridflow.serving.batching import Batcher
from hybridflow.serving.endpoint import Endpoint, of_function
from hybridflow.serving.metrics import Metrics


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: Application, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None
) -> Answer:
    """One request, as a server of ASGI hands it in."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    given = [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()]
    messages = [{"type": "http.request", "body": content[:7], "more_body": True}]
    messages.append({"type": "http.request", "body": content[7:], "more_body": False})
    sent: list[dict[str, Any]] = []

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app({"type": "http", "method": method, "path": path, "headers": given}, receive, send)
    found = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    assert int(found["content-length"]) == len(sent[1]["body"])
    return Answer(sent[0]["status"], found, sent[1]["body"])


def during(app: Application, talk: Callable[[], Awaitable[Any]]) -> Any:
    """What ``talk`` returns while the application runs."""

    async def whole() -> Any:
        messages: asyncio.Queue[Any] = asyncio.Queue()
        sent: asyncio.Queue[Any] = asyncio.Queue()
        running = asyncio.create_task(app({"type": "lifespan"}, messages.get, sent.put))
        await messages.put({"type": "lifespan.startup"})
        started = await sent.get()
        if started["type"] != "lifespan.startup.complete":
            raise RuntimeError(started["message"])
        try:
            return await asyncio.wait_for(talk(), 60)
        finally:
            await messages.put({"type": "lifespan.shutdown"})
            await running

    return asyncio.run(whole())


def _model() -> hf.models.Model:
    return hf.Sequential([hf.Input((3,)), hf.layers.Dense(4, "tanh"), hf.layers.Dense(2)])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "digits.hf"
    hf.saved.save(_model(), path)
    return path


def _json_input(x: np.ndarray, name: str = "inputs", datatype: str = "FP32") -> dict[str, Any]:
    return {"name": name, "shape": list(x.shape), "datatype": datatype, "data": x.ravel().tolist()}


def _name(app: Application) -> str:
    return app.repository.find("digits").endpoint.inputs[0].name


def test_answers_are_the_functions(path: Path) -> None:
    app = hf.serving.app({"digits": path})
    expected = hf.saved.load(path)
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)

    async def talk() -> None:
        name = _name(app)
        for rows in (0, 1, 2, 5):
            part = x[:rows]
            want = expected(part).numpy()
            body = {"id": "a", "inputs": [_json_input(part, name)]}
            answer = await ask(app, "POST", "/v2/models/digits/infer", body)
            assert answer.status == 200, answer.body
            assert answer.json["id"] == "a"
            (output,) = answer.json["outputs"]
            assert (output["datatype"], output["shape"]) == ("FP32", [rows, 2])
            assert np.array(output["data"], np.float32).tobytes() == want.tobytes()
            entry = {"name": name, "shape": [rows, 3], "datatype": "FP32"}
            entry["parameters"] = {"binary_data_size": part.nbytes}
            head = json.dumps({"inputs": [entry], "parameters": {"binary_data_output": True}}).encode()
            headers = {"Inference-Header-Content-Length": str(len(head))}
            answer = await ask(app, "POST", "/v2/models/digits/versions/1/infer", head + part.tobytes(), headers)
            length = int(answer.headers["inference-header-content-length"])
            assert answer.body[length:] == want.tobytes()

    during(app, talk)


def test_what_there_is(path: Path) -> None:
    app = hf.serving.app({"digits": path})

    async def talk() -> None:
        answers = {
            "/v2": "hybridflow",
            "/v2/health/live": True,
            "/v2/health/ready": True,
            "/v2/models/digits": "digits",
            "/v2/models/digits/ready": True,
            "/v2/models/digits/versions/1": "digits",
        }
        for address, value in answers.items():
            answer = await ask(app, "GET", address)
            assert answer.status == 200
            assert value in answer.json.values()
        told = (await ask(app, "GET", "/v2/models/digits")).json
        assert told["inputs"][0]["shape"] == [-1, 3]
        assert told["outputs"][0]["datatype"] == "FP32"
        index = await ask(app, "POST", "/v2/repository/index", {})
        assert index.json == [{"name": "digits", "version": "1", "state": "READY", "reason": ""}]
        await ask(app, "POST", "/v2/models/digits/infer", {"inputs": [_json_input(np.ones((2, 3)), _name(app))]})
        text = (await ask(app, "GET", "/metrics")).body.decode()
        assert 'hf_requests_total{model="digits",code="200"} 1' in text
        assert 'hf_batch_size_sum{model="digits",version="1"} 2' in text

    during(app, talk)


ONES = np.ones((1, 3))
REFUSED: dict[str, tuple[Any, int, str]] = {
    "no JSON": (b"{", 400, "JSON"),
    "no object": (b"[]", 400, "inputs"),
    "NaN": (b'{"inputs": [{"name": "NAME", "shape": [1], "datatype": "FP32", "data": [NaN]}]}', 400, "JSON"),
    "deep": (b"[" * 100_000, 400, "JSON"),
    "no input": ({"inputs": []}, 400, "missing"),
    "unknown": ({"inputs": [_json_input(ONES, "other")]}, 400, "there is no input"),
    "twice": ({"inputs": [_json_input(ONES, "NAME")] * 2}, 400, "twice"),
    "dtype": ({"inputs": [_json_input(ONES, "NAME", "FP64")]}, 400, "FP64"),
    "texts": ({"inputs": [_json_input(ONES, "NAME", "BYTES")]}, 400, "BYTES"),
    "shape": ({"inputs": [_json_input(np.ones((1, 4)), "NAME")]}, 400, "the model takes"),
    "rank": ({"inputs": [_json_input(np.ones(3), "NAME")]}, 400, "the model takes"),
    "fewer numbers": ({"inputs": [{**_json_input(ONES, "NAME"), "data": [1.0]}]}, 400, "does not fit"),
    "huge": ({"inputs": [{**_json_input(ONES, "NAME"), "shape": [1 << 39, 1 << 39]}]}, 400, "does not fit"),
    "negative": ({"inputs": [{**_json_input(ONES, "NAME"), "shape": [-1, 3]}]}, 400, "extents"),
    "a text": ({"inputs": [{**_json_input(ONES, "NAME"), "data": ["a", "b", "c"]}]}, 400, "elements"),
    "ragged": ({"inputs": [{**_json_input(ONES, "NAME"), "data": [[1.0], [1.0, 2.0]]}]}, 400, "does not fit"),
    "bytes that are not there": (
        {"inputs": [{"name": "NAME", "shape": [1, 3], "datatype": "FP32", "parameters": {"binary_data_size": 12}}]},
        400,
        "12 bytes of 0",
    ),
    "unknown output": ({"inputs": [_json_input(ONES, "NAME")], "outputs": [{"name": "x"}]}, 400, "there is no output"),
    "id": ({"inputs": [_json_input(ONES, "NAME")], "id": 3}, 400, "id"),
}


def test_what_is_no_request_is_refused_and_the_server_goes_on(path: Path) -> None:
    app = hf.serving.app({"digits": path}, max_body=1 << 20)

    async def talk() -> None:
        name = _name(app)
        for what, (body, status, text) in REFUSED.items():
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            answer = await ask(app, "POST", "/v2/models/digits/infer", content.replace(b"NAME", name.encode()))
            assert answer.status == status, what
            assert text in answer.json["error"], what
        for method, address, status in (
            ("GET", "/v2/models/other", 404),
            ("GET", "/v2/models/digits/versions/7", 404),
            ("GET", "/nothing", 404),
            ("GET", "/v2/models/digits/infer", 405),
            ("POST", "/v2/models/other/infer", 404),
            ("POST", "/v2/repository/models/other/load", 404),
            ("DELETE", "/v2/models/digits", 404),
        ):
            answer = await ask(app, method, address)
            assert answer.status == status, address
            assert answer.json["error"]
        too_long = await ask(app, "POST", "/v2/models/digits/infer", b"", {"Content-Length": str(1 << 21)})
        assert too_long.status == 413
        assert (await ask(app, "POST", "/v2/models/digits/infer", b"x" * (1 << 21))).status == 413
        good = await ask(app, "POST", "/v2/models/digits/infer", {"inputs": [_json_input(ONES, name)]})
        assert good.status == 200

    during(app, talk)


def test_many_requests_at_once_are_computed_together_and_each_gets_its_own(path: Path) -> None:
    app = hf.serving.app({"digits": path}, max_batch=16, queue=100)
    expected = hf.saved.load(path)
    rng = np.random.default_rng(1)
    xs = [rng.normal(size=(int(rows), 3)).astype(np.float32) for rows in rng.integers(1, 6, 60)]

    async def talk() -> None:
        batcher, all_wait, submitted = app.repository.find("digits").batcher, threading.Event(), []
        endpoint, submit = batcher._endpoint, batcher.submit

        class Held:
            """Begins when all have asked, however long that takes."""

            is_batched = endpoint.is_batched

            def __call__(self, arrays: Any) -> Any:
                assert all_wait.wait(300)
                return endpoint(arrays)

        def submit_one(arrays: Any) -> Any:
            future = submit(arrays)
            submitted.append(future)
            if len(submitted) == len(xs):
                all_wait.set()
            return future

        batcher._endpoint = Held()  # type: ignore[assignment]
        batcher.submit = submit_one  # type: ignore[method-assign]

        name = _name(app)
        asked = [
            ask(app, "POST", "/v2/models/digits/infer", {"id": str(n), "inputs": [_json_input(x, name)]})
            for n, x in enumerate(xs)
        ]
        for number, (answer, x) in enumerate(zip(await asyncio.gather(*asked), xs)):
            assert answer.json["id"] == str(number)
            got = np.array(answer.json["outputs"][0]["data"], np.float32).reshape(-1, 2)
            np.testing.assert_allclose(got, expected(x).numpy(), rtol=1e-6, atol=1e-6)
        text = (await ask(app, "GET", "/metrics")).body.decode()
        batches = next(line for line in text.splitlines() if line.startswith("hf_batch_size_count"))
        assert int(batches.split()[-1]) < len(xs) / 2

    during(app, talk)


def test_one_bad_request_of_a_batch_fails_alone() -> None:
    table = hf.asarray(np.arange(12.0, dtype=np.float32).reshape(4, 3))

    @hf.function(input_signature=[hf.TensorSpec((None,), "int64")])
    def rows(numbers: Any) -> Any:
        return hf.take(table, numbers, axis=0)

    app = hf.serving.app({"rows": rows}, max_batch=32, max_delay_ms=30)

    async def talk() -> None:
        name = app.repository.find("rows").endpoint.inputs[0].name
        numbers = [0, 1, 9, 3, -7, 2]
        asked = [
            ask(app, "POST", "/v2/models/rows/infer", {"inputs": [_json_input(np.array([n]), name, "INT64")]})
            for n in numbers
        ]
        for number, answer in zip(numbers, await asyncio.gather(*asked)):
            if 0 <= number < 4:
                assert answer.json["outputs"][0]["data"] == table[number].tolist()
            else:
                assert answer.status == 400
                assert "out of range" in answer.json["error"]

    during(app, talk)


def test_short_programs_are_run_by_who_asks() -> None:
    """Where nobody waits or computes, and such batches took little time; never where one took long just before."""
    times = [1e-5] * 40
    endpoint = of_function(hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec([None, 3], "float32")]))
    metrics, threads = Metrics(), []

    class Named(Endpoint):
        def __init__(self) -> None:
            vars(self).update(vars(endpoint))

        def __call__(self, arrays: Any) -> Any:
            threads.append(threading.current_thread())
            return super().__call__(arrays)

    batcher = Batcher(Named(), 8, 0.0, 1, 9, metrics, {"model": "m"})
    measure = batcher._measure
    batcher._measure = lambda rows, _: measure(rows, times.pop(0))  # type: ignore[method-assign]
    x = [np.ones((2, 3), np.float32)]
    while (found := batcher.answer_at_once(x)) is None:
        found = batcher.submit(x).result(60)
        if len(threads) > 20:
            break
    assert len(threads) == 17 and threads[-1] is threading.current_thread()
    assert threading.current_thread() not in threads[:-1]
    np.testing.assert_array_equal(found[0], 2 * x[0])
    assert batcher.answer_at_once([np.ones((3, 3), np.float32)]) is None  # more rows than were measured
    times[:] = [1.0, *[1e-5] * 40]
    assert batcher.answer_at_once(x) is not None and batcher.answer_at_once(x) is None
    assert 'hf_batch_size_count{model="m"} 18' in metrics.text()
    batcher.close()
    batcher._short = 99
    assert batcher.answer_at_once(x) is None  # it takes no more requests


def test_deterministic_answers_do_not_depend_on_others(path: Path) -> None:
    app = hf.serving.app({"digits": path}, deterministic=True)
    expected = hf.saved.load(path)
    xs = [np.random.default_rng(n).normal(size=(1 + n % 3, 3)).astype(np.float32) for n in range(20)]

    async def talk() -> None:
        name = _name(app)
        asked = [ask(app, "POST", "/v2/models/digits/infer", {"inputs": [_json_input(x, name)]}) for x in xs]
        for answer, x in zip(await asyncio.gather(*asked), xs):
            got = np.array(answer.json["outputs"][0]["data"], np.float32)
            assert got.tobytes() == expected(x).numpy().tobytes()

    during(app, talk)


def test_as_many_requests_as_are_allowed_at_a_time() -> None:
    """One whose body is still on its way counts; others are refused before theirs are read, and taken after it."""
    double = hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec((None,), "float32")])
    app = hf.serving.app({"twice": double}, max_requests=1)

    async def talk() -> None:
        name = app.repository.find("twice").endpoint.inputs[0].name
        body = {"inputs": [_json_input(np.ones(1), name)]}
        app._in_flight += 1
        refused = await ask(app, "POST", "/v2/models/twice/infer", body)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        app._in_flight -= 1
        assert (await ask(app, "POST", "/v2/models/twice/infer", body)).status == 200
        assert app._in_flight == 0

    during(app, talk)


def test_long_texts_are_parsed_beside_other_requests() -> None:
    double = hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec((None,), "float32")])
    app = hf.serving.app({"twice": double})
    x = np.arange(70_000.0, dtype=np.float32)

    async def talk() -> None:
        name = app.repository.find("twice").endpoint.inputs[0].name
        found = await ask(app, "POST", "/v2/models/twice/infer", {"inputs": [_json_input(x, name)]})
        np.testing.assert_array_equal(found.json["outputs"][0]["data"], 2 * x)

    during(app, talk)


def test_clients_that_go_away_and_numbers_that_json_lacks_are_no_failures_of_the_server() -> None:
    app = hf.serving.app({"logs": hf.function(hf.log, input_signature=[hf.TensorSpec((None,))])})
    request = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [0.0]}]}
    address = "/v2/models/logs/infer"

    async def gone(waits: bool) -> None:
        """A client that goes away in its request, or while it waits for the answer."""
        started = asyncio.Event()

        async def receive() -> Any:
            started.set()
            if waits:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None: ...

        scope = {"type": "http", "method": "POST", "path": address, "headers": []}
        task = asyncio.create_task(app(scope, receive, send))
        await started.wait()
        if waits:
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def talk() -> None:
        request["inputs"][0]["name"] = app.repository.find("logs", None).endpoint.inputs[0].name
        answer = await ask(app, "POST", address, request)
        assert answer.status == 406 and "binary_data" in answer.json["error"]
        await gone(False)
        await gone(True)
        counts = (await ask(app, "GET", "/metrics")).body.decode()
        assert 'code="500"' not in counts and 'hf_requests_total{model="logs",code="499"} 2' in counts, counts

    during(app, talk)


def test_a_full_queue_is_answered_503_with_when_to_ask_again() -> None:
    begun, may_go = threading.Event(), threading.Event()
    app = hf.serving.app(
        {"twice": hf.function(lambda x: 2 * x, input_signature=[hf.TensorSpec((None,), "float32")])}, queue=2
    )

    async def talk() -> None:
        served = app.repository.find("twice")
        inner = served.batcher._endpoint

        class Slow:
            is_batched = inner.is_batched

            def __call__(self, arrays: Any) -> Any:
                begun.set()
                may_go.wait(300)
                return inner(arrays)

        served.batcher._endpoint = Slow()  # type: ignore[assignment]
        body = {"inputs": [_json_input(np.ones(1), inner.inputs[0].name)]}
        first = asyncio.create_task(ask(app, "POST", "/v2/models/twice/infer", body))
        await asyncio.to_thread(begun.wait, 300)
        others = [asyncio.create_task(ask(app, "POST", "/v2/models/twice/infer", body)) for _ in range(4)]
        done: set[Any] = set()
        while len(done) < 2:  # two wait, until they may go
            await asyncio.wait(set(others) - done, return_when=asyncio.FIRST_COMPLETED, timeout=300)
            done = {one for one in others if one.done()}
        assert {one.result().status for one in done} == {503}
        assert all(one.result().headers["retry-after"] == "1" for one in done)
        may_go.set()
        answers = [await first, *[await one for one in others]]
        assert sorted(one.status for one in answers) == [200, 200, 200, 503, 503]

    during(app, talk)


def test_versions_reload_and_unload_while_requests_run(tmp_path: Path) -> None:
    def save(version: int, factor: float) -> None:
        spec = [hf.TensorSpec((None,), "float32")]
        folder = tmp_path / "scale" / str(version)
        folder.mkdir(parents=True, exist_ok=True)
        hf.saved.save(hf.function(lambda x: x * factor, input_signature=spec), folder / "model.hf")

    save(2, 2.0)
    save(10, 10.0)
    app = hf.serving.app({"scale": tmp_path / "scale"})

    async def scaled(version: str = "") -> float:
        name = app.repository.find("scale").endpoint.inputs[0].name
        address = f"/v2/models/scale{version}/infer"
        answer = await ask(app, "POST", address, {"inputs": [_json_input(np.ones(1), name)]})
        assert answer.status == 200, answer.body
        return float(answer.json["outputs"][0]["data"][0])

    async def talk() -> None:
        assert await scaled() == 10.0  # the newest by number, not by letters
        assert await scaled("/versions/2") == 2.0
        assert (await ask(app, "GET", "/v2/models/scale")).json["versions"] == ["2", "10"]
        stop = asyncio.Event()
        seen: set[float] = set()

        async def go_on() -> None:
            while not stop.is_set():
                seen.add(await scaled())

        running = [asyncio.create_task(go_on()) for _ in range(3)]
        save(11, 11.0)
        assert (await ask(app, "POST", "/v2/repository/models/scale/load")).status == 200
        assert await scaled() == 11.0
        stop.set()
        await asyncio.gather(*running)
        assert seen <= {10.0, 11.0}
        (tmp_path / "scale" / "11" / "model.hf").write_bytes(b"damaged")
        answer = await ask(app, "POST", "/v2/repository/models/scale/load")
        assert answer.status == 400
        assert await scaled() == 11.0  # what was loaded before goes on
        assert (await ask(app, "POST", "/v2/repository/models/scale/unload")).status == 200
        assert (await ask(app, "GET", "/v2/health/ready")).status == 503
        assert (await ask(app, "GET", "/v2/models/scale")).status == 503

    during(app, talk)


def test_a_version_is_answered_by_no_other(tmp_path: Path) -> None:
    """Neither where its queue is full, nor where it is replaced between finding it and asking it."""
    begun, may_go = threading.Event(), threading.Event()
    for version, factor in ((1, 1.0), (2, 2.0)):
        (tmp_path / str(version)).mkdir()
        spec = [hf.TensorSpec((None,), "float32")]
        hf.saved.save(hf.function(lambda x, f=factor: x * f, input_signature=spec), tmp_path / f"{version}/model.hf")
    app = hf.serving.app({"scale": tmp_path}, queue=1)

    async def talk() -> None:
        first = app.repository.find("scale", "1")
        body = {"inputs": [_json_input(np.ones(1), first.endpoint.inputs[0].name)]}
        inner = first.batcher._endpoint

        def slow(arrays: Any) -> Any:
            begun.set()
            may_go.wait(300)
            return inner(arrays)

        slow.is_batched = False  # type: ignore[attr-defined]
        first.batcher._endpoint = slow  # type: ignore[assignment]
        asked = [asyncio.create_task(ask(app, "POST", "/v2/models/scale/versions/1/infer", body))]
        await asyncio.to_thread(begun.wait, 300)
        asked += [asyncio.create_task(ask(app, "POST", "/v2/models/scale/versions/1/infer", body)) for _ in range(2)]
        await asyncio.wait(asked[1:], return_when=asyncio.FIRST_COMPLETED, timeout=300)
        may_go.set()
        assert sorted([(await one).status for one in asked]) == [200, 200, 503]
        for version in ("1", None):
            old = app.repository.find("scale", version)
            await asyncio.to_thread(app.repository.load, "scale")
            answering, future = app.submit(old, version, [np.ones(1, np.float32)])
            assert answering.version == (version or "2")
            assert answering.batcher is not old.batcher
            assert future.result(300)[0].tolist() == [float(version or 2)]

    during(app, talk)


@pytest.mark.parametrize(
    "function",
    [
        hf.cumulative_sum,
        hf.sort,
        lambda x: hf.flip(x, axis=0),
        lambda x: x - hf.mean(x),
        lambda x: hf.nn.softmax(x, axis=0),
    ],
)
def test_requests_of_a_model_whose_rows_look_at_others_are_not_mixed(function: Callable[[Any], Any]) -> None:
    specs = [hf.TensorSpec((None,), "float32")]
    app = hf.serving.app(
        {"mixing": hf.function(lambda x: function(x), input_signature=specs)}, max_batch=32, max_delay_ms=30
    )

    async def talk() -> None:
        name = app.repository.find("mixing").endpoint.inputs[0].name
        given = [np.array([10.0**n, 0.0, 1.0], np.float32) for n in range(4)]
        asked = [ask(app, "POST", "/v2/models/mixing/infer", {"inputs": [_json_input(x, name)]}) for x in given]
        for x, answer in zip(given, await asyncio.gather(*asked)):
            assert answer.json["outputs"][0]["data"] == pytest.approx(function(hf.asarray(x)).tolist())

    during(app, talk)


def test_open_extents_that_are_no_batch() -> None:
    specs = [hf.TensorSpec((None, 3), "float32"), hf.TensorSpec((None, 3), "float32")]
    app = hf.serving.app({"products": hf.function(lambda a, b: a @ b.T, input_signature=specs)})

    async def talk() -> None:
        a, b = np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)
        body = {"inputs": [_json_input(a, "a"), _json_input(b, "b")]}
        answer = await ask(app, "POST", "/v2/models/products/infer", body)
        assert answer.json["outputs"][0]["shape"] == [2, 4]

    during(app, talk)


def test_names_and_numbers_at_their_limits() -> None:
    specs = [hf.TensorSpec((None,), "float32")]
    app = hf.serving.app({"infer": hf.function(lambda x: x, input_signature=specs)})

    async def talk() -> None:
        assert (await ask(app, "GET", "/v2/models/infer")).json["name"] == "infer"
        length = {"inference-header-content-length": "9" * 5000}
        assert (await ask(app, "POST", "/v2/models/infer/infer", b"{}", length)).status == 400
        body = {"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [1e300]}]}
        answer = await ask(app, "POST", "/v2/models/infer/infer", body)
        assert answer.status == 400
        assert "larger than" in answer.json["error"]

    during(app, talk)


def test_wrong_use(tmp_path: Path) -> None:
    for options, text in (
        ({"max_batch": 0}, "max_batch"),
        ({"queue": 0}, "queue"),
        ({"max_requests": 0}, "max_requests"),
        ({"max_delay_ms": -1}, "max_delay"),
        ({"max_delay_ms": float("nan")}, "max_delay"),
    ):
        with pytest.raises(hf.errors.ArgumentError, match=text):
            hf.serving.app({"a": "b"}, **options)  # type: ignore[arg-type]
    with pytest.raises(hf.errors.ArgumentError, match="no model"):
        hf.serving.app({})
    with pytest.raises(hf.errors.ArgumentError, match="no name"):
        hf.serving.app({"a/b": "c"})
    (tmp_path / "empty").mkdir()

    async def nothing() -> None: ...

    for source in (tmp_path / "nothing.hf", tmp_path / "empty"):
        with pytest.raises(RuntimeError):
            during(hf.serving.app({"a": source}), nothing)
    with pytest.raises(hf.errors.ArgumentError, match="address"):
        hf.serving.Client("localhost:8000")


def test_source_code_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("")
    with pytest.raises(errors.ArgumentError, match=r"t\.py is source code: name one of .*t\.py::function"):
        serve._source(str(tmp_path / "t.py"))


def test_websockets_are_closed_and_refusals_name_no_place_of_the_server(tmp_path: Path) -> None:
    f = hf.function(lambda x: hf.take(hf.constant([1.0, 2.0]), x), input_signature=[hf.TensorSpec(["n"], hf.int32)])
    app = hf.serving.app({"f": f})
    sent: list[Any] = []

    async def talk() -> Any:
        async def receive() -> Any:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message["type"])

        await app({"type": "websocket", "path": "/v2", "headers": []}, receive, send)
        tensor = {"name": "x", "shape": [1], "datatype": "INT32", "data": [9]}
        return await ask(app, "POST", "/v2/models/f/infer", {"inputs": [tensor]})

    answer = during(app, talk)
    assert sent == ["websocket.close"]
    assert answer.status == 400 and answer.json["error"].endswith("Expected -2 <= index < 2.")


def test_results_of_a_dict_have_their_own_names_whatever_its_order() -> None:
    def f(x: Any) -> Any:
        return {"z": x + 1, "a": {"q": x * 2, "b": hf.sum(x)}, "m": x * 3}

    app = hf.serving.app({"f": hf.function(f, input_signature=[hf.TensorSpec([2])])})
    body = {"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "data": [1, 5]}]}

    async def talk() -> Any:
        return await ask(app, "POST", "/v2/models/f/infer", body)

    found = {one["name"]: one["data"] for one in during(app, talk).json["outputs"]}
    assert found == {"z": [2, 6], "a.0": [6], "a.1": [2, 10], "m": [3, 15]}
