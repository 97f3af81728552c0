"""Checkpoints: files that others read, that are whole at any moment, and objects that go on as if nothing had been."""

from __future__ import annotations

import errno
import functools
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import checkpoint, errors, layers
from hybridflow.checkpoint import files
from hybridflow.runtime import checksums
from tests.support.paths import ROOT

pytestmark = pytest.mark.code

safetensors = pytest.importorskip("safetensors")
pytest.importorskip("safetensors.numpy")

RNG = np.random.default_rng(4)
X, Y = RNG.standard_normal((16, 3)).astype("f4"), RNG.standard_normal((16, 2)).astype("f4")
DTYPES = ["bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"]
ARRAYS = {name: (RNG.standard_normal((3, 4)) * 50).astype(name) for name in DTYPES} | {
    "nothing": np.zeros((0, 3), "f4"),
    "one": np.float32(2.5).reshape(()),
    "far": np.array([np.nan, np.inf, -0.0, 5e-324]),
    "turned": np.asfortranarray(RNG.standard_normal((5, 7))),
}


def network() -> Any:
    model = hf.Sequential([hf.Input((3,)), layers.Dense(4, "relu"), layers.BatchNormalization(), layers.Dense(2)])
    model.compile(hf.optimizers.Adam(0.01), "mse")
    return model


def kept(model: Any) -> checkpoint.Checkpoint:
    return checkpoint.Checkpoint(model=model, optimizer=model.optimizer)


def test_files_that_shrink_while_they_are_open(tmp_path: Path) -> None:
    path = tmp_path / "it"
    files.write(path, {"x": np.ones(5000), "y": np.ones(3)}, {})
    file = files.File(path)
    os.truncate(path, path.stat().st_size - 9000)
    with pytest.raises(errors.CheckpointError, match="ends before its arrays do"):
        file.tensor("y")


def test_large_files(tmp_path: Path, monkeypatch: Any) -> None:
    """Parts are summed and flushed aside; what the disk says then is raised, and the old file stays."""
    monkeypatch.setattr(files, "_CHUNK", 1000)
    monkeypatch.setattr(files, "_FLUSHED", 3000)
    rows = np.random.default_rng(0).standard_normal(5000)
    files.write(tmp_path / "it", {"rows": rows, "few": rows[:3]}, {})
    found = safetensors.numpy.load_file(tmp_path / "it")
    assert (found["rows"] == rows).all() and (files.File(tmp_path / "it").tensor("rows").numpy() == rows).all()
    whole = (tmp_path / "it").read_bytes()
    assert f"{zlib.crc32(rows.tobytes()):08x}".encode() in whole

    def broken(handle: int) -> None:
        raise OSError(errno.EIO, "no disk")

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", broken)
        with pytest.raises(OSError, match="no disk"):
            files.write(tmp_path / "it", {"rows": rows + 1}, {})
    assert (tmp_path / "it").read_bytes() == whole and [*tmp_path.iterdir()] == [tmp_path / "it"]
    for place in (len(whole) - 1, len(whole) - 30000):
        (tmp_path / "it").write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(errors.CheckpointError, match="not what was written"):
            [files.File(tmp_path / "it").tensor(name) for name in ("rows", "few")]


def test_files_are_those_of_the_library(tmp_path: Path) -> None:
    files.write(tmp_path / "ours", ARRAYS, {"who": "we"})
    theirs = safetensors.numpy.load_file(tmp_path / "ours")
    safetensors.numpy.save_file({name: np.array(a, order="C") for name, a in ARRAYS.items()}, tmp_path / "theirs")
    ours = files.File(tmp_path / "theirs")
    mine = files.File(tmp_path / "ours")
    assert mine.texts == {"who": "we"} and set(ours.names) == set(ARRAYS) == set(theirs)
    for name, array in ARRAYS.items():
        for found in (theirs[name], ours.tensor(name).numpy(), mine.tensor(name).numpy()):
            assert found.dtype == array.dtype and found.shape == array.shape
            np.testing.assert_array_equal(found, array)
    assert np.signbit(mine.tensor("far").numpy()[2])


def test_arrays_of_all_kinds_come_back(tmp_path: Path) -> None:
    path = tmp_path / "arrays.safetensors"
    given = {"b": hf.asarray([1.5, 2.0], dtype=hf.bfloat16), "v": hf.Variable([1, 2]), "n": np.arange(3.0)[::-1]}
    checkpoint.save_arrays(path, given)
    found = checkpoint.load_arrays(path)
    assert found["b"].dtype == hf.bfloat16 and found["n"].tolist() == [2, 1, 0] and found["v"].tolist() == [1, 2]
    with pytest.raises(errors.CheckpointError, match="object"):
        checkpoint.save_arrays(path, {"o": np.array([None])})
    assert set(checkpoint.load_arrays(path)) == set(given)  # what was there is there
    assert os.listdir(tmp_path) == ["arrays.safetensors"]


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    one = network()
    one.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    path = kept(one).save(tmp_path / "run")
    assert path == str(tmp_path / "run-1.safetensors")
    other = network()
    report = kept(other).restore(path)
    assert not report.missing and not report.unused and report.assert_consumed() is report
    for model in (one, other):
        model.fit(X, Y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    for a, b in zip(one.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(one.optimizer.variables, other.optimizer.variables):
        np.testing.assert_array_equal(a, b)


def test_everything_that_has_state(tmp_path: Path) -> None:
    def objects() -> dict[str, Any]:
        data = hf.data.Dataset.range(20).shuffle(8, seed=3).batch(3)
        return {
            "step": hf.Variable(0),
            "generator": hf.random.Generator(7),
            "metric": hf.metrics.Mean(),
            "elements": iter(data),
            "nested": {"a": [hf.Variable([1.0]), hf.Variable([2.0])]},
            "epoch": 0,
            "note": "",
        }

    first = objects()
    first["step"].assign(5)
    first["generator"].uniform((3,))
    first["metric"].update_state([1.0, 2.0])
    next(first["elements"]), next(first["elements"])
    first["nested"]["a"][1].assign([9.0])
    saved = checkpoint.Checkpoint(**first)
    saved.epoch, saved.note = 3, "half"
    path = saved.write(tmp_path / "all")
    second = objects()
    restored = checkpoint.Checkpoint(**second)
    restored.restore(path)
    assert second["step"].item() == 5 and second["nested"]["a"][1].tolist() == [9.0]
    assert restored.epoch == 3 and restored.note == "half" and second["metric"].result().item() == 1.5
    np.testing.assert_array_equal(second["generator"].uniform((3,)), first["generator"].uniform((3,)))
    rest = [[x.tolist() for x in elements] for elements in (first["elements"], second["elements"])]
    assert rest[0] == rest[1] and sum(map(len, rest[0])) == 14


def test_partial_and_renamed(tmp_path: Path) -> None:
    w, b = hf.Variable([1.0, 2.0]), hf.Variable(3.0)
    path = checkpoint.Checkpoint(w=w, b=b).write(tmp_path / "two")
    other, more = hf.Variable([0.0, 0.0]), hf.Variable(7.0)
    mine = checkpoint.Checkpoint(weight=other, more=more)
    with pytest.raises(errors.CheckpointError, match=r"missing in the file: more, weight; unused of the file: b, w"):
        mine.restore(path)
    report = mine.restore(path, partial=True, rename={"w": "weight"})
    assert other.tolist() == [1.0, 2.0] and more.item() == 7.0
    assert (report.restored, report.missing, report.unused) == (["weight"], ["more"], ["b"])
    with pytest.raises(errors.CheckpointError, match="not everything"):
        report.assert_consumed()
    other.assign([5.0, 6.0])
    mine.restore(path, partial=True, rename=lambda name: {"w": "weight"}.get(name, name))
    assert other.tolist() == [1.0, 2.0]
    assert mine.restore(None).missing == ["more", "weight"]


def test_what_is_of_another_model_changes_nothing(tmp_path: Path) -> None:
    path = kept(network()).write(tmp_path / "model")
    wide = hf.Sequential([hf.Input((3,)), layers.Dense(5, "relu"), layers.BatchNormalization(), layers.Dense(2)])
    wide.compile(hf.optimizers.Adam(0.01), "mse")
    before = wide.get_weights()
    with pytest.raises(errors.CheckpointError, match=r"\(3, 4\).*\(3, 5\).*another model"):
        kept(wide).restore(path)
    for a, b in zip(before, wide.get_weights()):
        np.testing.assert_array_equal(a, b)
    unbuilt = hf.Sequential([layers.Dense(4, kernel_initializer="ones")])
    with pytest.raises(errors.CheckpointError, match="missing in the file: more; unused of the file: optimizer"):
        checkpoint.Checkpoint(model=unbuilt, more=hf.Variable(1.0)).restore(path)
    np.testing.assert_array_equal(unbuilt(np.ones((1, 3), "f4")), [[3.0] * 4])  # it waits for nothing


class Grown(hf.Model):
    """A model whose layers make others when they are built."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rest = layers.Dense(4), [Pair()]

    def call(self, inputs):  # type: ignore[no-untyped-def]
        return self.rest[0](self.first(inputs))


class Pair(layers.Layer):
    def build(self, input_shape):  # type: ignore[no-untyped-def]
        self.inner = layers.Dense(2)

    def call(self, inputs):  # type: ignore[no-untyped-def]
        return self.inner(inputs)


def step_of(model: hf.Model, optimizer: hf.optimizers.Optimizer) -> Any:
    @hf.function
    def step(x: Any, y: Any) -> Any:
        with hf.GradientTape() as tape:
            loss = hf.mean((model(x) - y) ** 2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        return loss

    return step


@pytest.mark.parametrize("is_compiled", [False, True])
def test_values_wait_for_layers_that_are_not_built(tmp_path: Path, is_compiled: bool) -> None:
    y = np.ones((len(X), 2), np.float32)
    one, own = Grown(), hf.optimizers.Adam(0.1)
    first = step_of(one, own)
    first(X, y)
    path = checkpoint.Checkpoint(model=one, optimizer=own).write(tmp_path / "one")
    wanted = [first(X, y).numpy(), first(X, y).numpy()]

    two, other = Grown(), hf.optimizers.Adam(0.1)
    held = checkpoint.Checkpoint(model=two, optimizer=other)
    report = held.restore(path)
    assert "model.first.kernel" in report.waiting and "model.rest.0.inner.bias" in report.waiting
    assert not report.unused and not report.missing and report.assert_existing_objects_matched() is report
    with pytest.raises(errors.CheckpointError, match="waiting for layers"):
        report.assert_consumed()
    Path(path).unlink()  # the values were read
    if not is_compiled:
        two(X)
        assert report.assert_consumed() is report
    second = step_of(two, other)
    np.testing.assert_array_equal([second(X, y).numpy(), second(X, y).numpy()], wanted)
    assert not report.waiting


def test_what_waits_must_fit_and_is_forgotten_by_another_restore(tmp_path: Path) -> None:
    one = hf.Sequential([hf.Input((3,)), layers.Dense(4)])
    path = checkpoint.Checkpoint(model=one).write(tmp_path / "one")
    one.set_weights([w + 1 for w in one.get_weights()])
    later = checkpoint.Checkpoint(model=one).write(tmp_path / "later")
    two = hf.Sequential([layers.Dense(4)])
    held = checkpoint.Checkpoint(model=two)
    held.restore(path)
    report = held.restore(later)
    two(X)
    np.testing.assert_array_equal(two.get_weights()[0], one.get_weights()[0])
    assert not report.waiting
    wide = hf.Sequential([layers.Dense(5)])
    checkpoint.Checkpoint(model=wide).restore(path)
    with pytest.raises(errors.CheckpointError, match="another model"):
        wide(X)


def test_objects_given_later_and_groups_of_objects(tmp_path: Path) -> None:
    one = hf.Sequential([hf.Input((3,)), layers.Dense(4)])
    path = checkpoint.Checkpoint(net=one, v=hf.Variable(2.0)).write(tmp_path / "one")
    bias = hf.Variable(hf.ones((4,)))
    inner = checkpoint.Checkpoint(layers=[checkpoint.Checkpoint(bias=bias)])
    report = checkpoint.Checkpoint(net=inner).restore(path, partial=True)
    assert report.restored == ["net.layers.0.bias"] and report.unused == ["net.layers.0.kernel", "v"]
    np.testing.assert_array_equal(bias.numpy(), one.get_weights()[1])


def test_weights_of_models(tmp_path: Path) -> None:
    one, other = network(), network()
    one.save_weights(tmp_path / "w.safetensors")
    other.load_weights(tmp_path / "w.safetensors")
    np.testing.assert_array_equal(one(X), other(X))
    assert set(safetensors.numpy.load_file(tmp_path / "w.safetensors")) == set(one.named_variables())
    with pytest.raises(errors.CheckpointError, match="another model"):
        hf.Sequential([hf.Input((3,)), layers.Dense(4)]).load_weights(tmp_path / "w.safetensors")
    one.save_weights(tmp_path / "w.h5")
    assert (tmp_path / "w.h5.safetensors").exists()


def test_a_manager_keeps_the_last(tmp_path: Path) -> None:
    step = hf.Variable(0)
    started = []
    manager = checkpoint.CheckpointManager(
        checkpoint.Checkpoint(step=step), tmp_path, max_to_keep=2, init_fn=lambda: started.append(1)
    )
    assert manager.restore_or_initialize() is None and started == [1]
    for wait in (True, False, False, True):
        step.assign_add(1)
        manager.save(wait=wait)
        step.assign_add(0)  # the file has what was there when it was saved
    assert [os.path.basename(path) for path in manager.checkpoints] == ["ckpt-3.safetensors", "ckpt-4.safetensors"]
    step.assign(0)
    again = checkpoint.CheckpointManager(checkpoint.Checkpoint(step=step), tmp_path)
    assert again.restore_or_initialize() == again.latest_checkpoint and step.item() == 4
    assert again.save().endswith("ckpt-5.safetensors")
    gone = checkpoint.CheckpointManager(checkpoint.Checkpoint(step=step), tmp_path / "file" / "below")
    (tmp_path / "file").write_text("no folder")
    gone.save(wait=False)
    with pytest.raises(OSError):
        gone.wait()


def damaged(content: bytes) -> dict[str, bytes]:
    """The file with faults of many kinds."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    data = content[8 + length :]

    def with_header(change: Any) -> bytes:
        new = json.loads(json.dumps(header))
        for name in ("crc32", "crc32_of_header"):  # else these alone would tell
            new["__metadata__"].pop(name, None)
        change(new)
        text = json.dumps(new).encode()
        return len(text).to_bytes(8, "little") + text + data

    first = next(name for name in header if name != "__metadata__")
    return {
        "empty": b"",
        "cut in the length": content[:5],
        "cut in the header": content[: 8 + length // 2],
        "cut in the data": content[:-3],
        "a length beyond the end": (2**62).to_bytes(8, "little") + content[8:],
        "no JSON": content[:8] + b"}" * length + data,
        "another bit": content[:-1] + bytes([content[-1] ^ 1]),
        "a place beyond the end": with_header(lambda h: h[first].update(data_offsets=[0, 10**9])),
        "a negative place": with_header(lambda h: h[first].update(data_offsets=[-8, 0])),
        "a shape that does not fit": with_header(lambda h: h[first].update(shape=[10**6, 10**6])),
        "a shape of texts": with_header(lambda h: h[first].update(shape=["a"])),
        "another dtype": with_header(lambda h: h[first].update(dtype="X9")),
        "no sum of the header": content.replace(b"crc32_of_header", b"crc32_of_reader"),
        "no entry": with_header(lambda h: h.update({first: 3})),
        "a later version": with_header(lambda h: h["__metadata__"].update(version="2")),
        "texts that are none": with_header(lambda h: h.update(__metadata__=[1])),
        "damaged values": with_header(lambda h: h["__metadata__"].update(plain="{")),
        "another kind": with_header(lambda h: h["__metadata__"].update(kind="image")),
        "nested without end": (10**5).to_bytes(8, "little") + b"[" * 10**5 + data,
    }


_SMALL = b'{"__metadata__":{},"x":{}}'
DAMAGED = damaged(len(_SMALL).to_bytes(8, "little") + _SMALL + b"data")


@pytest.mark.parametrize("fault", DAMAGED)
def test_damaged_files_are_refused(tmp_path: Path, fault: str) -> None:
    v = hf.Variable([1.0, 2.0])
    saved = checkpoint.Checkpoint(v=v)
    path = Path(saved.write(tmp_path / "whole"))
    path.write_bytes(damaged(path.read_bytes())[fault])
    v.assign([5.0, 6.0])
    with pytest.raises(errors.CheckpointError) as raised:
        saved.restore(path)
    assert str(path) in str(raised.value) and v.tolist() == [5.0, 6.0]


def of_others(entries: str, size: int) -> bytes:
    """A file whose header is a table of these entries, with so many bytes behind it."""
    text = f"{{{entries}}}".encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


FLOATS = '"dtype":"F32","shape":[2],"data_offsets"'


@pytest.mark.parametrize(
    "content, why",
    {
        "fine": (of_others(f'"a":{{{FLOATS}:[0,8]}},"b":{{{FLOATS}:[8,16]}}', 16), None),
        "any order": (of_others(f'"b":{{{FLOATS}:[8,16]}},"a":{{{FLOATS}:[0,8]}}', 16), None),
        "one over another": (of_others(f'"a":{{{FLOATS}:[0,8]}},"b":{{{FLOATS}:[4,12]}}', 16), "'b' does not begin"),
        "the same twice": (of_others(f'"a":{{{FLOATS}:[0,8]}},"b":{{{FLOATS}:[0,8]}}', 8), "does not begin"),
        "a gap": (of_others(f'"a":{{{FLOATS}:[0,8]}},"b":{{{FLOATS}:[9,17]}}', 17), "'b' does not begin"),
        "a rest": (of_others(f'"a":{{{FLOATS}:[0,8]}},"b":{{{FLOATS}:[8,16]}}', 20), "more behind"),
        "one name twice": (of_others(f'"a":{{{FLOATS}:[0,8]}},"a":{{{FLOATS}:[8,16]}}', 16), "describes 'a' twice"),
        "a key twice": (of_others(f'"a":{{"dtype":"I8",{FLOATS}:[0,8]}}', 8), "describes 'dtype' twice"),
        "deep": (of_others(f'"a":{"[" * 10**5}', 8), "no JSON"),
        "NaN": (of_others('"a":{"dtype":"F32","shape":[NaN],"data_offsets":[0,8]}', 8), "'a' does not lie"),
        "a true extent": (of_others('"a":{"dtype":"F64","shape":[true],"data_offsets":[0,8]}', 8), "'a' does not lie"),
        "a list as dtype": (of_others('"a":{"dtype":[],"shape":[1],"data_offsets":[0,8]}', 8), "'a' does not lie"),
        "too many extents": (
            of_others(f'"a":{{"dtype":"I8","shape":{[1] * 100},"data_offsets":[0,1]}}', 1),
            "'a' does not lie",
        ),
        "a product of extents beyond": (
            of_others(f'"a":{{"dtype":"I8","shape":[{2**62},{2**62},0],"data_offsets":[0,0]}}', 0),
            "'a' does not lie",
        ),
        "no UTF-8": (b"\x03" + bytes(7) + b'{"\xff', "no JSON"),
        "a length of 2^63": ((2**63).to_bytes(8, "little") + b"{}", "not whole"),
        "a length of 2^64 - 1": (b"\xff" * 8 + b"{}", "not whole"),
    }.values(),
)
def test_hostile_files_are_refused(tmp_path: Path, content: bytes, why: str | None) -> None:
    path = tmp_path / "it"
    path.write_bytes(content)
    if why is None:
        assert {name: x.shape for name, x in checkpoint.load_arrays(path).items()} == {"a": (2,), "b": (2,)}
    else:
        with pytest.raises(errors.CheckpointError, match=why):
            checkpoint.load_arrays(path)


def test_sums_are_those_of_zlib(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    content = rng.bytes(1 << 19)
    for size in [*range(300), 4095, 4096, (1 << 18) - 1, 1 << 18, (1 << 18) + 77]:
        for start in (0, 1, 13):
            part, total = memoryview(content)[start : start + size], int(rng.integers(2**32))
            with monkeypatch.context() as patch:
                patch.setattr(checksums, "_LARGE", 0 if size else 1)
                assert checksums.crc32(part, total) == zlib.crc32(part, total)
            assert checksums.joined(total, zlib.crc32(part), size) == zlib.crc32(part, total)
    assert checksums.crc32(content) == zlib.crc32(content)


def test_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    v = hf.Variable([1.0])
    saved = checkpoint.Checkpoint(v=v)
    path = saved.write(tmp_path / "v")
    v.assign([2.0])

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space") as caught:
            saved.write(path)
        assert caught.value.__notes__ == [
            f"[checkpoint] {path} could not be written; what was there before is unharmed."
        ]
        with pytest.raises(OSError, match="No space") as caught:
            saved.write(tmp_path / "w")
        assert "w could not be written; nothing is left there" in caught.value.__notes__[0]
    assert os.listdir(tmp_path) == ["v"]
    saved.restore(path)
    assert v.tolist() == [1.0]


KILLED = """
import sys, hybridflow as hf
v = hf.Variable(hf.zeros((100_000,)))
manager = hf.checkpoint.CheckpointManager(hf.checkpoint.Checkpoint(v=v), sys.argv[1], max_to_keep=3)
for i in range(10_000):
    v.assign(hf.full((100_000,), float(i)))
    print(manager.save(), flush=True)
"""


def test_a_killed_process_loses_nothing_that_was_reported(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    reported = [process.stdout.readline().strip() for _ in range(5)]
    process.kill()
    reported += process.stdout.read().split()
    process.wait()
    process.stdout.close()
    v = hf.Variable(hf.zeros((100_000,)))
    manager = checkpoint.CheckpointManager(checkpoint.Checkpoint(v=v), tmp_path)
    assert len(reported) >= 5 and set(reported[-3:]) <= set(manager.checkpoints)
    for path in manager.checkpoints:
        manager.restore(path)
        assert np.unique(v.numpy()).tolist() == [float(path.rpartition("-")[2].partition(".")[0]) - 1]


def test_parts_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Those of files that differ in numbers, and of processes of this machine that are no more."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    host, gone = files._HOST, ended.pid
    left = [f".ckpt-7.safetensors.{host}-{gone}.part", f".ckpt-12.safetensors.{host}-{gone}.part"]
    kept = [
        f".ckpt-7.safetensors.{host}-{os.getppid()}.part",
        f".ckpt-7.safetensors.{host}-other-{gone}.part",
        f".best-7.safetensors.{host}-{gone}.part",
        f"ckpt-7.safetensors.{host}-{gone}.part",
    ]
    for name in left + kept:
        (tmp_path / name).write_bytes(b"half")
    manager = checkpoint.CheckpointManager(checkpoint.Checkpoint(v=hf.Variable(1.0)), tmp_path)
    manager.save()
    assert sorted(os.listdir(tmp_path)) == sorted([*kept, "ckpt-1.safetensors"])


def test_callbacks_that_save(tmp_path: Path) -> None:
    model = network()
    best = hf.callbacks.ModelCheckpoint(tmp_path / "{epoch:02d}-{loss:.0f}", monitor="loss", save_best_only=True)
    every = hf.callbacks.ModelCheckpoint(tmp_path / "w" / "e{epoch}b{batch}", save_weights_only=True, save_freq=3)
    model.fit(X, Y, batch_size=4, epochs=2, callbacks=[best, every], verbose=0)
    assert sorted(os.listdir(tmp_path / "w")) == ["e1b3", "e2b2"]
    first = [name for name in os.listdir(tmp_path) if name.startswith("01-")]
    assert len(first) == 1
    other = network()
    kept(other).restore(tmp_path / first[0])
    assert other.optimizer.iterations.item() == 4
    for path in ("{val_loss}", "{loss:d}"):
        with pytest.raises(errors.ArgumentError, match="filepath"):
            model.fit(X, Y, callbacks=[hf.callbacks.ModelCheckpoint(path)], verbose=0)
    path = tmp_path / "model.keras"
    model.fit(X, Y, callbacks=[hf.callbacks.ModelCheckpoint(path)], verbose=0)
    loaded = hf.models.load_model(path)
    np.testing.assert_array_equal(loaded(X), model(X))
    assert loaded.optimizer.iterations.item() == model.optimizer.iterations.item()
    odd = hf.Sequential([hf.Input((3,)), layers.Dense(2, functools.partial(hf.multiply, 2.0))])  # not for files
    odd.compile("adam", "mse")
    odd.fit(X, Y, callbacks=[hf.callbacks.ModelCheckpoint(tmp_path / "odd")], verbose=0)
    checkpoint.Checkpoint(model=odd, optimizer=odd.optimizer).restore(tmp_path / "odd")
    with pytest.raises(errors.CheckpointError, match="holds no model"):
        hf.models.load_model(tmp_path / "odd")


def test_an_interrupted_fit_is_taken_up_again(tmp_path: Path) -> None:
    class Stop(hf.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            if epoch == 2:
                raise KeyboardInterrupt

    whole, cut, again = network(), network(), network()
    for model in (cut, again):
        model.set_weights(whole.get_weights())
    whole.fit(X, Y, batch_size=4, epochs=4, shuffle=False, verbose=0)
    backup = hf.callbacks.BackupAndRestore(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        cut.fit(X, Y, batch_size=4, epochs=4, shuffle=False, callbacks=[backup, Stop()], verbose=0)
    history = again.fit(X, Y, batch_size=4, epochs=4, shuffle=False, callbacks=[backup], verbose=0)
    assert history.epoch == [2, 3] and os.listdir(tmp_path) == []
    for a, b in zip(whole.get_weights(), again.get_weights()):
        np.testing.assert_array_equal(a, b)


class Sampler:
    """An object of a user's, which knows nothing of this library."""

    def __init__(self) -> None:
        self.state: Any = None

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        if state == "bad":
            raise ValueError("this is no state of mine")
        self.state = state


def test_objects_with_a_state_dict_take_part(tmp_path: Path) -> None:
    """Of what they return all comes back: types, keys that are no texts, arrays and tensors, NaN and -0.0."""
    first, last, weight = Sampler(), Sampler(), hf.Variable([1.0, 2.0])
    first.state = {
        "at": (3, [True, None, "text", -0.0, float("inf")]),
        3: np.array([np.nan, -0.0, np.inf], "f4"),
        None: hf.asarray([[1, 2]]),
        "empty": np.zeros((0, 2), "i8"),
        "bytes": b"\x00\xff",
    }
    last.state = []
    path = checkpoint.Checkpoint(parts=[first, {"last": last}], v=weight).write(tmp_path / "it")
    again = [Sampler(), {"last": Sampler()}]
    checkpoint.Checkpoint(parts=again, v=hf.Variable([0.0, 0.0])).restore(path).assert_consumed()
    found = again[0].state
    assert again[1]["last"].state == []
    assert list(found) == list(first.state) and repr(found["at"]) == repr(first.state["at"])
    assert type(found[3]) is np.ndarray and found[3].tobytes() == first.state[3].tobytes() and found[3].dtype == "f4"
    assert isinstance(found[None], hf.Tensor) and found[None].tolist() == [[1, 2]]
    assert found["empty"].shape == (0, 2) and found["bytes"] == b"\x00\xff"


def test_an_object_that_does_not_take_its_state_changes_nothing(tmp_path: Path) -> None:
    sampler, weight = Sampler(), hf.Variable([1.0, 2.0])
    sampler.state = "bad"
    path = checkpoint.Checkpoint(sampler=sampler, v=weight).write(tmp_path / "it")
    weight.assign([5.0, 6.0])
    with pytest.raises(errors.CheckpointError, match=r"sampler does not take.*ValueError: this is no state") as raised:
        checkpoint.Checkpoint(sampler=sampler, v=weight).restore(path)
    assert isinstance(raised.value.__cause__, ValueError)
    assert weight.numpy().tolist() == [5.0, 6.0]
    sampler.state = {"x": object()}
    with pytest.raises(errors.ArgumentTypeError, match=r"sampler holds <object.*which cannot be kept in a file"):
        checkpoint.Checkpoint(sampler=sampler).write(tmp_path / "it")


def test_modules_with_a_state_dict_of_their_own_are_kept_by_their_variables(tmp_path: Path) -> None:
    class Own(hf.Module):
        def __init__(self) -> None:
            self.w = hf.Variable([1.0])

        def state_dict(self) -> Any:
            raise AssertionError("for files of other kinds")

        def load_state_dict(self, state: Any) -> None:
            raise AssertionError("for files of other kinds")

    own = Own()
    path = checkpoint.Checkpoint(own=own).write(tmp_path / "it")
    assert set(safetensors.numpy.load_file(path)) == {"own.w"}
    own.w.assign([2.0])
    checkpoint.Checkpoint(own=own).restore(path).assert_consumed()
    assert own.w.numpy().tolist() == [1.0]


def test_what_has_no_state_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentTypeError, match=r"thing is .*has no state"):
        checkpoint.Checkpoint(thing=object()).save(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        checkpoint.Checkpoint(v=hf.Variable(1.0)).restore(tmp_path / "nowhere")


def test_containers_of_all_kinds_keep_their_state(tmp_path: Path) -> None:
    def objects() -> dict[str, Any]:
        v, adam = hf.Variable([1.0]), hf.optimizers.Adam(0.1)
        return {"v": v, "all": [adam, {"data": iter(hf.data.Dataset.range(5))}]}

    first, second = objects(), objects()
    first["all"][0].apply_gradients([(hf.asarray([1.0]), first["v"])])
    next(first["all"][1]["data"])
    path = checkpoint.Checkpoint(**first).write(tmp_path / "c")
    checkpoint.Checkpoint(**second).restore(path)
    assert [x.item() for x in second["all"][1]["data"]] == [1, 2, 3, 4]
    for a, b in zip(first["all"][0].variables, second["all"][0].variables, strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(errors.ArgumentTypeError, match=r"all\.1 is 3"):
        checkpoint.Checkpoint(all=[first["v"], 3]).write(path)
    with pytest.raises(errors.ArgumentError, match="two"):
        checkpoint.Checkpoint(m={"x.y": hf.Variable(1.0), "x": {"y": hf.Variable(2.0)}}).write(path)


def test_what_is_refused_changes_nothing_at_all(tmp_path: Path) -> None:
    one = network()
    one.fit(X, Y, batch_size=4, verbose=0)
    path = kept(one).write(tmp_path / "model")
    other = network()
    with pytest.raises(errors.CheckpointError):
        checkpoint.Checkpoint(model=other, optimizer=other.optimizer, more=hf.Variable(1.0)).restore(path)
    assert not other.optimizer._state.trained
    v = hf.Variable(1.5)
    path = checkpoint.Checkpoint(v=v, data=iter(hf.data.Dataset.range(5).batch(2))).write(tmp_path / "v")
    v.assign(2.5)
    with pytest.raises(errors.CheckpointError, match=r"float32 in .* int64 here"):
        checkpoint.Checkpoint(v=hf.Variable(1), data=iter(hf.data.Dataset.range(5).batch(2))).restore(path)
    with pytest.raises(errors.HybridflowError):
        checkpoint.Checkpoint(v=v, data=iter(hf.data.Dataset.range(5).shuffle(3))).restore(path)
    assert v.item() == 2.5


def test_files_that_are_kept_for_ever(tmp_path: Path) -> None:
    step = checkpoint.Checkpoint(step=hf.Variable(0))
    first = checkpoint.CheckpointManager(step, tmp_path, max_to_keep=1, keep_checkpoint_every_n_hours=0.0)
    for _ in range(3):
        first.save()
    later = checkpoint.CheckpointManager(step, tmp_path, max_to_keep=1)
    path = later.save()
    names = [os.path.basename(p) for p in later.checkpoints]
    assert names == ["ckpt-1.safetensors", "ckpt-2.safetensors", os.path.basename(path)]
    assert os.path.exists(later.save(checkpoint_number=3))


def test_a_variable_of_several_paths_is_restored_by_each(tmp_path: Path) -> None:
    v = hf.Variable([1.0, 2.0])
    path = checkpoint.Checkpoint(a=v, b=v).save(tmp_path / "both")
    w = hf.Variable([0.0, 0.0])
    report = checkpoint.Checkpoint(b=w).restore(path)
    assert w.numpy().tolist() == [1.0, 2.0]
    assert report.restored == ["b"]
    assert not report.unused
