"""Summaries: what is in the files, read back by hand; and the callback that writes them."""

from __future__ import annotations

import io
import struct
import sys
import wave
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.errors import ArgumentError, ArgumentTypeError
from hybridflow.summary.events import png

# A file is records: length (8 bytes), its checksum, the content, its checksum.  The content is a message of protocol
# buffers, whose fields are (number, wire kind) and a value.


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 127) << shift, shift + 7, at + 1
        if byte < 128:
            return value, at


def fields(data: bytes) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 1:
            value, at = struct.unpack_from("<d", data, at)[0], at + 8
        elif kind == 5:
            value, at = struct.unpack_from("<f", data, at)[0], at + 4
        else:
            size, at = varint(data, at)
            value, at = data[at : at + size], at + size
        found.setdefault(number, []).append(value)
    return found


def events(folder: Path) -> list[dict[int, list[Any]]]:
    """The events in a folder: field 2 is the step, 3 the version, 4 a graph, 5 the summary."""
    found = []
    for file in sorted(folder.iterdir()):
        data, at = file.read_bytes(), 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            content = data[at + 12 : at + 12 + size]
            assert struct.unpack_from("<I", data, at + 8)[0] == crc32c(data[at : at + 8])
            assert struct.unpack_from("<I", data, at + 12 + size)[0] == crc32c(content)
            at += 16 + size
            found.append(fields(content))
    return found


def values(folder: Path) -> list[tuple[str, int, dict[int, list[Any]]]]:
    """Each value's tag and step, and its fields: 2 a number, 4 an image, 5 a histogram, 6 a sound, 8 a tensor."""
    found = []
    for event in events(folder):
        for summary in event.get(5, ()):
            for value in fields(summary).get(1, ()):
                content = fields(value)
                found.append((content[1][0].decode(), event.get(2, [0])[0], content))
    return found


def scalars(folder: Path) -> list[tuple[str, int, float]]:
    return [(tag, step, content[2][0]) for tag, step, content in values(folder) if 2 in content]


def test_numbers_are_written_with_their_steps(tmp_path: Path) -> None:
    writer = hf.summary.create_file_writer(tmp_path)
    hf.summary.scalar("nowhere", 1.0)
    assert not list(tmp_path.iterdir())
    with writer.as_default(step=3):
        hf.summary.scalar("a", 0.5)
        hf.summary.scalar("a", hf.asarray(2), step=hf.Variable(7, dtype="int64"))
        hf.summary.scalar("a", np.float32(-1), step=2**40)
    hf.summary.scalar("nowhere", 1.0, step=1)
    writer.close()
    assert events(tmp_path)[0][3] == [b"brain.Event:2"]
    assert scalars(tmp_path) == [("a", 3, 0.5), ("a", 7, 2.0), ("a", 2**40, -1.0)]
    with pytest.raises(ArgumentError, match="is closed"), writer.as_default():
        hf.summary.scalar("a", 1.0, step=1)


def test_a_compiled_function_writes_what_is_there_when_it_runs(tmp_path: Path) -> None:
    step = hf.Variable(0, dtype="int64")

    @hf.function
    def run(x: Any) -> Any:
        step.assign_add(1)
        hf.summary.scalar("sum", hf.sum(x), step=step)
        with hf.summary.record_if(hf.sum(x) > 5):
            hf.summary.scalar("large", x[0], step=step)
        for i in hf.arange(2):
            hf.summary.scalar("turn", x[0] * i, step=i)
        hf.summary.text("text", f"it is {hf.sum(x)}", step=step)
        hf.summary.scalar("default", 1.0)
        return x * 2, hf.summary.should_record_summaries()

    first, second = (hf.summary.create_file_writer(tmp_path / name) for name in ("one", "two"))
    assert not run(hf.asarray([1.0, 2.0]))[1]
    with first.as_default(step=40):
        assert run(hf.asarray([1.0, 2.0]))[1]
    with second.as_default(step=50):
        run(hf.asarray([3.0, 4.0]))
        with hf.summary.record_if(False):
            assert not run(hf.asarray([3.0, 4.0]))[1]
    first.close()
    second.close()
    assert scalars(tmp_path / "one") == [("sum", 2, 3.0), ("turn", 0, 0.0), ("turn", 1, 1.0), ("default", 40, 1.0)]
    assert scalars(tmp_path / "two") == [
        ("sum", 3, 7.0),
        ("large", 3, 3.0),
        ("turn", 0, 0.0),
        ("turn", 1, 3.0),
        ("default", 50, 1.0),
    ]
    text = next(content for tag, _, content in values(tmp_path / "two") if tag == "text")
    assert fields(text[8][0])[8] == [b"it is 7.0"]


def test_a_writer_said_in_a_function_is_the_functions(tmp_path: Path) -> None:
    inner, outer = (hf.summary.create_file_writer(tmp_path / name) for name in ("inner", "outer"))

    @hf.function
    def run(x: Any) -> Any:
        with inner.as_default(step=1):
            hf.summary.scalar("x", x)
        return x

    with outer.as_default(), hf.summary.record_if(lambda: True):
        run(hf.asarray(1.0))
        run(hf.asarray(2.0))
    inner.close()
    outer.close()
    assert scalars(tmp_path / "inner") == [("x", 1, 1.0), ("x", 1, 2.0)]
    assert not (tmp_path / "outer").exists()


def test_conditions_and_steps_hold_in_their_blocks(tmp_path: Path) -> None:
    asked: list[int] = []

    def third() -> bool:
        asked.append(1)
        return len(asked) % 3 == 0

    with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default(step=0):
        with hf.summary.record_if(third):
            for number in range(6):
                hf.summary.scalar("a", number, step=number)
        assert hf.summary.experimental.get_step() == 0
        with writer.as_default(step=5):
            assert hf.summary.experimental.get_step() == 5
    assert hf.summary.experimental.get_step() is None
    assert [step for _, step, _ in scalars(tmp_path)] == [2, 5]
    assert not hf.summary.should_record_summaries()


def test_the_step_can_be_set_for_all(tmp_path: Path) -> None:
    step = hf.Variable(4, dtype="int64")
    try:
        hf.summary.experimental.set_step(step)
        with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default():
            hf.summary.scalar("a", 1.0)
            step.assign(9)
            hf.function(lambda: hf.summary.scalar("a", 2.0))()
    finally:
        hf.summary.experimental.set_step(None)
    assert scalars(tmp_path) == [("a", 4, 1.0), ("a", 9, 2.0)]


def test_histograms_count_what_is_finite(tmp_path: Path) -> None:
    data = np.array([0.0, 1.0, 1.0, 4.0, np.nan, np.inf], np.float32)
    with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default(step=1):
        hf.summary.histogram("h", data, buckets=4)
        hf.summary.histogram("empty", hf.zeros((0,)))
    (_, _, full), (_, _, empty) = values(tmp_path)
    found = fields(full[5][0])
    assert [found.get(i, [0.0])[0] for i in range(1, 6)] == [0.0, 4.0, 4.0, 6.0, 18.0]
    limits, counts = (np.frombuffer(found[i][0], "<f8") for i in (6, 7))
    np.testing.assert_array_equal(limits, [0, 1, 2, 3, 4])
    np.testing.assert_array_equal(counts, [0, 1, 2, 0, 1])
    assert fields(empty[5][0]).get(3, [0.0]) == [0.0]


def pixels(data: bytes) -> np.ndarray:
    """A PNG file whose rows are not filtered."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, shape = 8, b"", (0, 0, 0)
    while at < len(data):
        size, name = struct.unpack_from(">I4s", data, at)
        content = data[at + 8 : at + 8 + size]
        assert struct.unpack_from(">I", data, at + 8 + size)[0] == zlib.crc32(name + content)
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack_from(">IIBB", content)
            assert depth == 8
            shape = (height, width, {0: 1, 4: 2, 2: 3, 6: 4}[kind])
        body += content if name == b"IDAT" else b""
        at += 12 + size
    rows = np.frombuffer(zlib.decompress(body), np.uint8).reshape(shape[0], -1)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(shape)


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pictures_are_png_files(channels: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (3, 5, channels), np.uint8)
    np.testing.assert_array_equal(pixels(png(picture)), picture)


def test_pictures_and_sounds(tmp_path: Path) -> None:
    pictures = np.array([[[[0.0], [0.5]], [[1.0], [7.0]]]] * 4, np.float32)
    sound = np.sin(np.arange(8.0)).reshape(1, 8, 1)
    with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default(step=1):
        hf.summary.image("i", hf.asarray(pictures), max_outputs=2)
        hf.summary.audio("s", sound, sample_rate=8000)
    found = values(tmp_path)
    assert [tag for tag, _, _ in found] == ["i/0", "i/1", "s"]
    image = fields(found[0][2][4][0])
    assert (image[1], image[2]) == ([2], [2])
    np.testing.assert_array_equal(pixels(image[4][0])[..., 0], [[0, 128], [255, 255]])
    held = fields(found[2][2][6][0])
    with wave.open(io.BytesIO(held[4][0])) as file:
        assert (file.getframerate(), file.getnframes(), file.getnchannels()) == (8000, 8, 1)
        samples = np.frombuffer(file.readframes(8), "<i2")
    np.testing.assert_allclose(samples / 32767, sound.ravel(), atol=1e-4)


def test_graphs_and_parameters_of_runs(tmp_path: Path) -> None:
    f = hf.function(lambda x: hf.exp(x) * 2.0)
    with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default():
        hf.summary.graph(f.get_concrete_function(hf.TensorSpec((None,), hf.float32)))
        hf.summary.hparams({"rate": 0.1, "kind": "adam", "deep": True})
    nodes = [fields(node) for event in events(tmp_path) for graph in event.get(4, ()) for node in fields(graph)[1]]
    assert {b"exp", b"multiply"} <= {node[2][0] for node in nodes}
    names = [node[1][0] for node in nodes]
    assert all(given in names for node in nodes for given in node.get(3, ()))
    assert "_hparams_/session_start_info" in [tag for tag, _, _ in values(tmp_path)]


@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda: hf.summary.scalar("a", [1.0, 2.0], step=1), ArgumentError, "must be one number"),
        (lambda: hf.summary.scalar("a", 1.0), ArgumentError, "there is no step"),
        (lambda: hf.summary.image("a", hf.ones((2, 2)), step=1), ArgumentError, "height, width"),
        (lambda: hf.summary.audio("a", hf.ones(2), 8000, step=1), ArgumentError, "frames, channels"),
        (lambda: hf.summary.text("a", 3, step=1), ArgumentTypeError, "give a text"),
        (lambda: hf.summary.graph(3), ArgumentTypeError, "no concrete function"),
        (lambda: hf.summary.experimental.set_step("x"), ArgumentTypeError, "give an int"),
    ],
)
def test_what_makes_no_sense_is_an_error(tmp_path: Path, wrong: Any, kind: Any, message: str) -> None:
    with hf.summary.create_file_writer(tmp_path) as writer, writer.as_default(), pytest.raises(kind, match=message):
        wrong()


def test_without_the_library_the_error_says_how_to_get_it(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    writer = hf.summary.create_file_writer(tmp_path)
    with writer.as_default(), pytest.raises(ImportError, match=r"pip install 'hybridflow\[tensorboard\]'"):
        hf.summary.scalar("a", 1.0, step=1)


def test_the_callback_writes_what_fit_logs(tmp_path: Path) -> None:
    x, y = np.ones((8, 2), np.float32), np.ones((8, 1), np.float32)
    model = hf.Sequential([hf.layers.Dense(3), hf.layers.Dense(1)])
    model.compile(hf.optimizers.SGD(0.125), "mse", metrics=["mae"])
    board = hf.callbacks.TensorBoard(tmp_path, histogram_freq=2, write_images=True, update_freq="batch")
    history = model.fit(
        x, y, batch_size=4, epochs=3, validation_data=(x, y), callbacks=[board], verbose=0, shuffle=False
    ).history
    train, seen = scalars(tmp_path / "train"), scalars(tmp_path / "validation")
    for name, folder, logged in (("loss", train, "loss"), ("mae", train, "mae"), ("loss", seen, "val_loss")):
        found = [(step, value) for tag, step, value in folder if tag == f"epoch_{name}"]
        assert [step for step, _ in found] == [0, 1, 2]
        np.testing.assert_allclose([value for _, value in found], history[logged], rtol=1e-6)
    assert [step for tag, step, _ in train if tag == "batch_loss"] == [1, 2, 3, 4, 5, 6]
    assert {value for tag, _, value in train if tag == "epoch_learning_rate"} == {0.125}
    assert [step for tag, step, _ in seen if tag == "evaluation_loss_vs_iterations"] == [2, 4, 6]
    kinds = [(tag, step) for tag, step, content in values(tmp_path / "train") if 5 in content or 4 in content]
    assert ("layers/0/kernel/histogram", 0) in kinds
    assert ("layers/1/bias/image", 2) in kinds
    assert not any(step == 1 for _, step in kinds)
    graph = [event for event in events(tmp_path / "train") if 4 in event]
    assert len(graph) == 1


@pytest.mark.parametrize("options", [{"profile_batch": 2}, {"update_freq": "day"}, {"embeddings_freq": 1}])
def test_what_the_callback_does_not_do_is_said(options: Any) -> None:
    with pytest.raises(ArgumentError, match=r"must be"):
        hf.callbacks.TensorBoard("logs", **options)
