"""Timelines: what they have, on threads too; the bits of what is recorded; what they refuse."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors, spans

pytestmark = pytest.mark.code
X = np.random.default_rng(0).standard_normal((96, 64)).astype("f4")


def events(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(path.read_text())["traceEvents"]
    return found


@pytest.mark.parametrize("threads", (1, 2, 3))
def test_kernels_are_noted_on_their_threads_and_keep_their_bits(tmp_path: Path, threads: int) -> None:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(threads)
    try:
        f = hf.function(lambda x: hf.sum(hf.tanh(x @ hf.permute_dims(x, (1, 0))), axis=1))
        wanted = f(X).numpy()
        with hf.profile(tmp_path / "t.json") as timeline:
            results = [f(X).numpy() for _ in range(3)]
            with timeline.span("mine"):
                pass
        after = f(X).numpy()
    finally:
        hf.config.set_num_threads(before)
    for result in (*results, after):
        np.testing.assert_array_equal(result, wanted)
    found = events(tmp_path / "t.json")
    spans_ = [event for event in found if event["ph"] == "X"]
    calls = [event for event in spans_ if event["cat"] == "call"]
    kernels = [event for event in spans_ if event["cat"] == "kernel"]
    assert len(calls) == 3 and len(kernels) >= 3 and {"matmul" in event["args"]["ops"] for event in kernels} >= {True}
    assert all(event["dur"] >= 0 and "test_timeline.py:" in event["args"]["where"] for event in kernels)
    first, last = calls[0]["ts"], calls[-1]["ts"] + calls[-1]["dur"]
    assert all(first <= event["ts"] and event["ts"] + event["dur"] <= last for event in kernels)
    assert [event["name"] for event in spans_ if event["cat"] == "user"] == ["mine"]
    assert {event["tid"] for event in spans_} <= {event["tid"] for event in found if event["ph"] == "M"}


def test_tracing_passes_and_machine_code_are_noted(tmp_path: Path) -> None:
    @hf.function
    def fresh(x: Any) -> Any:
        return hf.exp(x) * 3 - hf.sqrt(x + 7)

    with hf.profile(tmp_path / "t.json"):
        fresh(hf.ones(5))
    found = {(event["cat"], event["name"]) for event in events(tmp_path / "t.json") if event["ph"] == "X"}
    name = fresh.__name__
    assert {("trace", f"trace {name}"), ("compile", f"compile {name}"), ("call", name)} <= found
    assert {"pass", "kernel"} <= {category for category, _ in found}


def test_gradients_updates_and_donations_are_those_of_calls_that_are_not_recorded(tmp_path: Path) -> None:
    def trained(record: bool) -> list[np.ndarray]:
        w = hf.Variable(X[:3, :4])

        @hf.function
        def step(x: Any) -> Any:
            with hf.GradientTape() as tape:
                loss = hf.sum(hf.tanh(x @ w) ** 2)
            w.assign_sub(0.1 * tape.gradient(loss, w))
            return loss

        give = hf.function(lambda x: x * 2 + 1, donate_argnums=0)
        f = hf.function(lambda x: hf.sum(hf.sin(x) * x))

        def run() -> list[np.ndarray]:
            losses = [step(X[:5, :3]).numpy() for _ in range(3)]
            x = hf.asarray(X[:4])
            with hf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            return [*losses, tape.gradient(y, x).numpy(), give(hf.asarray(X)).numpy(), w.numpy()]

        if not record:
            return run()
        with hf.profile(tmp_path / "t.json"):
            return run()

    for one, other in zip(trained(False), trained(True), strict=True):
        np.testing.assert_array_equal(one, other)


def test_training_has_callbacks_and_elements(tmp_path: Path) -> None:
    class Told(hf.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            pass

    model = hf.Sequential([hf.Input((64,)), hf.layers.Dense(2)])
    model.compile("sgd", "mse")
    data = hf.data.Dataset.from_tensor_slices((X, X[:, :2])).batch(32)
    with hf.profile(tmp_path / "t.json"):
        model.fit(data, epochs=1, verbose=0, callbacks=[Told()])
    names = {event["name"] for event in events(tmp_path / "t.json")}
    assert {"Told.on_epoch_end", "next element"} <= names


def test_the_file_is_written_when_the_block_fails_and_nothing_records_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    with pytest.raises(ValueError, match="mine"), hf.profile(path):
        raise ValueError("mine")
    assert events(path)[0]["args"] == {"name": "hybridflow"} and spans.recorder is None
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


def test_two_at_a_time_and_folders_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with hf.profile(tmp_path / "t.json"):
        with pytest.raises(errors.ArgumentError, match="a timeline is recorded already"):
            hf.profile(tmp_path / "u.json").__enter__()
        assert spans.recorder is not None
    with pytest.raises(errors.ArgumentError, match="there is no folder"):
        hf.profile(tmp_path / "none" / "t.json")
    with pytest.raises(errors.ArgumentTypeError, match="the name of a file"):
        hf.profile(3)  # type: ignore[arg-type]


def test_checks_that_fail_leave_what_ran_before_them(tmp_path: Path) -> None:
    f = hf.function(lambda x, i: hf.take(hf.exp(x), i))
    with hf.profile(tmp_path / "t.json"), pytest.raises(errors.IndexRangeError):
        f(hf.ones(4), hf.asarray([9]))
    assert any(event.get("cat") == "call" for event in events(tmp_path / "t.json"))


def test_each_size_of_one_function_has_the_kernels_of_its_own_program(tmp_path: Path) -> None:
    before = hf.config.get_num_threads()
    hf.config.set_num_threads(2)
    try:
        f = hf.function(hf.cumulative_sum, input_signature=[hf.TensorSpec([None])])
        with hf.profile(tmp_path / "t.json"):
            f(np.ones(600_000, "f4"))
            f(np.ones(8, "f4"))  # not cut into pieces: another program, with fewer tasks
    finally:
        hf.config.set_num_threads(before)
    found = [event for event in events(tmp_path / "t.json") if event["ph"] == "X"]
    calls = [event for event in found if event["cat"] == "call"]
    for call in calls:
        within = range(int(call["ts"]), int(call["ts"] + call["dur"]) + 1)
        inner = [event for event in found if event["cat"] == "kernel" and int(event["ts"]) in within]
        assert inner and all("cumulative_sum" in event["args"]["ops"] for event in inner)
    assert len(calls) == 2


def test_what_threads_tell_when_the_block_has_ended_is_dropped(tmp_path: Path) -> None:
    timeline = hf.profile(tmp_path / "t.json")
    with timeline:
        within = timeline.span("within")
        within.__enter__()
        beyond = timeline.span("beyond")
        beyond.__enter__()
        within.__exit__(None, None, None)
    beyond.__exit__(None, None, None)  # as another thread's
    spans.end("late", "pass", 0)
    timeline.add_kernels(None, None, 0, [[0, 0, 0, 0]])  # type: ignore[arg-type]
    assert [event["name"] for event in events(tmp_path / "t.json") if event["ph"] == "X"] == ["within"]
    assert [event[0] for event in timeline._events] == ["within"] and not timeline._kernels


def test_threads_may_tell_while_blocks_begin_and_end(tmp_path: Path) -> None:
    stop, errors_ = threading.Event(), []

    def tell() -> None:
        try:
            while not stop.is_set():
                with spans.span("told", "user"):
                    spans.end("ended", "user", 0)
        except BaseException as error:
            errors_.append(error)

    threads = [threading.Thread(target=tell) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            with hf.profile(tmp_path / "t.json"):
                pass
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors_


def test_a_block_that_cannot_begin_does_not_stand_in_the_way_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    timeline = hf.profile(folder / "t.json")
    folder.rmdir()
    with pytest.raises(errors.ArgumentError, match="there is no folder"):
        timeline.__enter__()
    monkeypatch.chdir(tmp_path)
    with hf.profile("u.json"):
        folder.mkdir()
        monkeypatch.chdir(folder)
    assert events(tmp_path / "u.json") and not list(folder.iterdir())


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(OSError), hf.profile(tmp_path / "t.json"):
        (tmp_path / "t.json").mkdir()
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]
    with hf.profile(tmp_path / "u.json"):
        pass
