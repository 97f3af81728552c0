"""Timelines: what they have, on threads too; the bits of what is recorded; what they refuse."""

from __future__ import annotations

import json
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
