"""Saved functions that raise errors: the file keeps their type and message, and they are raised where they are met."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.checkpoint import files

pytestmark = pytest.mark.code

SIGNATURE = [hf.TensorSpec([4]), hf.TensorSpec([], "int32")]


class Unlike(ValueError):
    """A class that no other process has."""

    def __init__(self, one: int, other: str) -> None:
        super().__init__(f"{one} is unlike {other}")


def of_shapes(x: Any, n: Any) -> Any:
    y = hf.zeros(())
    if n == 3:
        y = hf.sum(x + hf.ones((7,)))
    return y


def concatenated(x: Any, n: Any) -> Any:
    if n == 3:
        x = hf.concat([x, hf.ones((2, 2))])
    return x


def of_users(x: Any, n: Any) -> Any:
    if n == 3:
        raise LookupError("three", (3, None), 0.5)
    return x * 2


def of_a_class_of_users(x: Any, n: Any) -> Any:
    if n == 3:
        raise Unlike(3, "two")
    return x * 2


def in_a_loop(x: Any, n: Any) -> Any:
    k = 0
    while k < n:
        if k == 2:
            raise RuntimeError("two turns are enough")
        x, k = x * 2, k + 1
    return x


def of_numbers(x: Any, n: Any) -> Any:
    return x * (6 // int(3 - n))


def asserted(x: Any, n: Any) -> Any:
    hf.debugging.assert_less(n, 3, message="small")
    return x * 2


def with_a_value(x: Any, n: Any) -> Any:
    if n == 3:
        raise ValueError(f"{n} is too much")
    return x


PROGRAMS: list[tuple[Callable[..., Any], type[Exception], str]] = [
    (of_shapes, errors.ShapeError, "[add] shapes do not broadcast: f32[4] with f32[7]."),
    (concatenated, errors.ShapeError, "[concat] f32[4] and f32[2,2] may differ along axis 0 only."),
    (of_users, LookupError, "('three', (3, None), 0.5)"),
    (of_a_class_of_users, ValueError, "Unlike: 3 is unlike two"),
    (in_a_loop, RuntimeError, "two turns are enough"),
    (of_numbers, ZeroDivisionError, "floordiv"),
    (asserted, errors.InvalidArgumentError, "[assert_less] small. "),
    (with_a_value, ValueError, "is too much"),
]


@pytest.mark.parametrize(("program", "kind", "said"), PROGRAMS)
def test_errors_are_kept(tmp_path: Path, program: Callable[..., Any], kind: type[Exception], said: str) -> None:
    live = hf.function(program, input_signature=SIGNATURE)
    loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
    again = hf.saved.load(hf.saved.save(loaded, tmp_path / "again"))
    x, fine, wrong = hf.asarray([1.0, -0.0, np.inf, np.nan]), hf.asarray(2, dtype="int32"), hf.asarray(3, dtype="int32")
    for f in (loaded, again, hf.function(lambda x, n: loaded(x, n))):
        assert f(x, fine).numpy().tobytes() == program(x, fine).numpy().tobytes()
        with pytest.raises(kind) as raised:
            f(x, wrong)
        assert type(raised.value) is kind and said in str(raised.value)
        assert f(x, fine).numpy().tobytes() == program(x, fine).numpy().tobytes()


def test_open_extents_and_derivatives(tmp_path: Path) -> None:
    live = hf.function(of_users, input_signature=[hf.TensorSpec([None]), SIGNATURE[1]])
    loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
    for size in (0, 1, 5):
        x = hf.ones((size,))
        with hf.GradientTape() as tape:
            tape.watch(x)
            y = hf.sum(loaded(x, hf.asarray(1, dtype="int32")))
        assert tape.gradient(y, x).tolist() == [2.0] * size
        with pytest.raises(LookupError, match="three"):
            loaded(x, hf.asarray(3, dtype="int32"))


def test_shapes_in_messages_are_those_of_the_call(tmp_path: Path) -> None:
    """Live and loaded: also of extents that follow from others, and in loops."""

    def halves(x: Any, n: Any) -> Any:
        while n > 2:
            x, n = x + hf.reshape(x[: x.shape[0] // 2], (x.shape[0] // 2, 3)), n - 1
        return x

    signature = [hf.TensorSpec(["batch"]), SIGNATURE[1]]
    for program in (of_shapes, concatenated, halves):
        live = hf.function(program, input_signature=signature)
        loaded = hf.saved.load(hf.saved.save(live, tmp_path / "f"))
        for size in (9, 5):
            texts = []
            for f in (program, live, loaded):
                with pytest.raises(errors.ShapeError) as raised:
                    f(hf.ones((size,)), hf.asarray(3, dtype="int32"))
                texts.append(re.sub(r"  \(\w+\.py:\d+\)$", "", str(raised.value)))
            assert (
                texts[0] == texts[1] == texts[2] and f"f32[{size if program is not halves else size // 2}]" in texts[0]
            )


def negative_of(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, n: -function(x, n)


def test_functions_that_call_loaded_ones_are_saved(tmp_path: Path) -> None:
    signature = [hf.TensorSpec(["batch"]), SIGNATURE[1]]
    for program in (of_users, of_shapes):
        loaded = hf.saved.load(hf.saved.save(program, tmp_path / "inner", input_signature=signature))
        outer = hf.function(negative_of(loaded), input_signature=signature)
        again = hf.saved.load(hf.saved.save(outer, tmp_path / "outer"))
        x, texts = hf.asarray([1.0, -0.0, np.inf]), []
        assert again(x, hf.asarray(2, dtype="int32")).tolist() == (-program(x, 2)).tolist()
        for f in (loaded, again):
            with pytest.raises((LookupError, errors.ShapeError)) as raised:
                f(x, hf.asarray(3, dtype="int32"))
            texts.append((type(raised.value), str(raised.value)))
        assert texts[0] == texts[1]


def test_what_calls_python_for_other_things_is_refused(tmp_path: Path) -> None:
    def told(x: Any) -> Any:
        hf.print(x)
        return x

    with pytest.raises(errors.ArgumentTypeError, match="calls Python functions"):
        hf.saved.save(told, tmp_path / "f", input_signature=[hf.TensorSpec([2])])


def test_files_without_errors_are_of_the_format_before(tmp_path: Path) -> None:
    plain = hf.saved.save(lambda x: x * 2, tmp_path / "plain", input_signature=[hf.TensorSpec([2])])
    raising = hf.saved.save(of_users, tmp_path / "raising", input_signature=SIGNATURE)
    assert [files.File(path).texts["version"] for path in (plain, raising)] == ["2", "3"]


@pytest.mark.parametrize(
    "records",
    [
        [],
        [None],
        [["SystemExit", {"list": ["now"]}]],
        [["KeyboardInterrupt", {"list": []}]],
        [["eval", {"list": ["1"]}]],
        [["again", {"list": []}]],
        [["UnicodeDecodeError", {"list": ["no"]}]],
        [["ShapeError", {"list": []}]],
        [["ValueError", "text"]],
        [["ValueError"]],
        [["ShapeError", {"list": ["add"]}, ["f32[", -1, "]"]]],
        [["ShapeError", {"list": ["add"]}, [["f32["]]]],
        [["ShapeError", {"list": ["add"]}, "f32"]],
        [7],
        {"0": ["ValueError", {"list": []}]},
        "ValueError",
    ],
)
def test_crafted_errors_are_refused(tmp_path: Path, records: Any) -> None:
    path = hf.saved.save(of_users, tmp_path / "f", input_signature=SIGNATURE)
    file = files.File(path)
    programs = json.loads(file.texts["programs"])
    for one in programs["serving_default"]:
        one["errors"] = records
    files.write(path, {}, {**file.texts, "programs": json.dumps(programs)})
    with pytest.raises(errors.CheckpointError):
        hf.saved.load(path)


@pytest.mark.parametrize("op", ["callback", "ask"])
def test_no_other_call_of_a_file_is_taken_for_an_error(tmp_path: Path, op: str) -> None:
    path = hf.saved.save(of_users, tmp_path / "f", input_signature=SIGNATURE)
    file = files.File(path)
    (program,) = json.loads(file.texts["programs"])["serving_default"]
    attributes = {"callback": "", "ask": "exchange=(), is_last=False, "}[op]
    program["graph"] = (
        'graph f(%0: f32[4] "x", %1: i32[] "n") {\n'
        + {"callback": "  %2: token = token()\n  %3: (token,) = callback(%2) {", "ask": "  %3: () = ask(%0) {"}[op]
        + f"{attributes}number=0, types=()}}\n  return %0\n}}\n"
    )
    files.write(path, {}, {**file.texts, "programs": json.dumps({"serving_default": [program]})})
    with pytest.raises(errors.CheckpointError, match="calls Python"):
        hf.saved.load(path)
