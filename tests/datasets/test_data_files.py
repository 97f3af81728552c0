"""Datasets of files: lines, CSV, TFRecord, examples, NumPy's files, and texts as elements."""

from __future__ import annotations

import contextlib
import csv
import doctest
import gzip
import io
import pickle
import random
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.data import Dataset
from tests.support.dataset_runs import listed, plain, resumed_everywhere

pytestmark = pytest.mark.code

_TEXT = """CsvDataset FixedLenFeature FixedLenSequenceFeature FixedLengthRecordDataset NumpyDataset TFRecordDataset
    TFRecordWriter TextLineDataset TextSpec VarLenFeature encode_example make_csv_dataset parse_example
    parse_single_example"""


@pytest.mark.parametrize("name", _TEXT.split())
def test_every_name_has_an_example_that_is_true(name: str) -> None:
    found = doctest.DocTestFinder(recurse=False).find(getattr(hf.data, name), name, globs={"hf": hf, "np": np})
    said: list[str] = []
    assert found and found[0].examples
    assert doctest.DocTestRunner(verbose=False).run(found[0], out=said.append).failed == 0, "".join(said)


def written(path: Path, data: bytes, kind: str) -> str:
    packed = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}[kind](data)
    path.write_bytes(packed)
    return str(path)


# Lines


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_lines(tmp_path: Path, kind: str) -> None:
    texts = ["head\na, b\r\n\n ä\u2028x \nlast", "head\n", "", "head\nno end"]
    paths = [written(tmp_path / str(n), text.encode(), kind) for n, text in enumerate(texts)]
    data = hf.data.TextLineDataset(paths, kind, skip_lines=1)
    resumed_everywhere(data, ["a, b", "", " ä\u2028x ", "last", "no end"])
    raw = hf.data.TextLineDataset(paths[0], kind, encoding=None)
    assert listed(raw) == [b"head", b"a, b", b"", " ä\u2028x ".encode(), b"last"]
    assert data.element_spec == hf.data.TextSpec((), str) and raw.element_spec == hf.data.TextSpec((), bytes)


def test_compressed_files_are_known_by_their_names(tmp_path: Path) -> None:
    path = written(tmp_path / "x.gz", b"a\nb\n", "GZIP")
    assert listed(hf.data.TextLineDataset(path)) == ["a", "b"]


def test_several_files_at_a_time(tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{n}.txt", f"{n}0\n{n}1\n{n}2\n".encode(), "") for n in range(3)]
    data = hf.data.TextLineDataset(paths, num_parallel_reads=2)
    resumed_everywhere(data, ["00", "10", "01", "11", "02", "12", "20", "21", "22"])
    names = Dataset.list_files(str(tmp_path / "*.txt"), shuffle=False)
    by_turns = names.interleave(hf.data.TextLineDataset, cycle_length=3, num_parallel_calls=2)
    resumed_everywhere(by_turns, [f"{n}{k}" for k in range(3) for n in range(3)])
    assert sorted(Dataset.list_files([str(tmp_path / "[01].txt"), paths[2]], seed=1)) == paths
    assert listed(hf.data.TextLineDataset(names)) == [f"{n}{k}" for n in range(3) for k in range(3)]
    assert listed(pickle.loads(pickle.dumps(data))) == listed(data)


def test_damaged_and_missing_files(tmp_path: Path) -> None:
    whole = gzip.compress(bytes(random.Random(1).randbytes(3000)) + b"\n")
    for number, data in enumerate([whole[:-900], whole[:2] + b"x" + whole[3:], b"no gzip at all", whole[:5]]):
        path = tmp_path / f"{number}.gz"
        path.write_bytes(data)
        with pytest.raises(errors.DataError, match=f"{number}.gz is damaged"):
            listed(hf.data.TextLineDataset(path, encoding=None))
    with pytest.raises(errors.DataError, match="is damaged"):
        listed(hf.data.TextLineDataset(path, "ZLIB"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        listed(hf.data.TextLineDataset(tmp_path / "nowhere"))
    (tmp_path / "latin").write_bytes("ok\nä\n".encode("latin-1"))
    with pytest.raises(errors.DataError, match=r"latin, before byte 5.*Say which encoding"):
        listed(hf.data.TextLineDataset(tmp_path / "latin"))
    assert listed(hf.data.TextLineDataset(tmp_path / "latin", encoding="latin-1")) == ["ok", "ä"]
    for use, text in [
        (lambda: hf.data.TextLineDataset(3), "filenames is 3"),
        (lambda: hf.data.TextLineDataset([]), "no file"),
        (lambda: hf.data.TextLineDataset("x", "LZ"), "compression_type is 'LZ'"),
        (lambda: Dataset.list_files(str(tmp_path / "z*")), "no file matches"),
    ]:
        with pytest.raises(errors.HybridflowError, match=text):
            use()


def test_records_of_one_length(tmp_path: Path) -> None:
    paths = [written(tmp_path / str(n), b"HEAD" + bytes(range(n, n + 6)) + b"F", "") for n in range(2)]
    data = hf.data.FixedLengthRecordDataset(paths, 3, 4, 1)
    resumed_everywhere(data, [b"\0\1\2", b"\3\4\5", b"\1\2\3", b"\4\5\6"])
    for size, header in ((4, 4), (3, 30)):
        with pytest.raises(errors.DataError, match="no whole number of records"):
            listed(hf.data.FixedLengthRecordDataset(paths, size, header, 1))


# CSV


def test_csv_against_the_standard_library(tmp_path: Path) -> None:
    draw = random.Random(3)
    texts = ["", "a,b", 'say "x"', "two\nlines", "\r\n", " ", "ü", "12"]
    rows = [[draw.choice(texts), str(draw.randint(-9, 9)), repr(draw.uniform(-1, 1))] for _ in range(40)]
    for delimiter in ",;\t":
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter).writerows([["a", "b", "c"], *rows])
        path = written(tmp_path / "rows.csv", out.getvalue().encode(), "")
        data = hf.data.CsvDataset([path, path], ["", "int16", hf.float64], header=True, field_delim=delimiter)
        expected = [(a, int(b), float(c)) for a, b, c in rows]
        resumed_everywhere(data, 2 * expected)
    spec = data.element_spec
    assert spec == (hf.data.TextSpec(), hf.TensorSpec((), "int16"), hf.TensorSpec((), "float64"))


def test_columns_of_csv(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", b"\xef\xbb\xbf1,,x,true\n?,2.5, ,0\n\n3,4,z,1\n", "")

    def run(defaults: Any, **more: Any) -> list[Any]:
        return listed(hf.data.CsvDataset(path, defaults, **more))

    whole = [(1, -1.0, "x", True), (9, 2.5, " ", False), (3, 4.0, "z", True)]
    assert run([9, [-1.0], "-", bool], na_value="?") == whole
    assert run([[9], hf.constant(-1.0, "float64")], na_value="?", select_cols=[0, 1]) == [row[:2] for row in whole]
    assert run([str], exclude_cols=[0, 1, 3]) == [row[2:3] for row in whole]
    kinds = hf.data.CsvDataset(path, [0.5, 2**40], select_cols=[0, 1]).element_spec
    assert [kind.dtype for kind in kinds] == [np.float32, np.int64]
    wrong = [
        ({"record_defaults": ["int32", 0.0, "", bool]}, "line 2: field 0: '[?]' is no int32"),
        ({"record_defaults": [str, "float32", "", bool]}, "line 1: field 1: it is empty, and there is no default"),
        ({"record_defaults": [str, str, str]}, "line 1: 4 fields where 3 are wanted"),
        ({"record_defaults": [str], "select_cols": [7]}, "line 1: 4 fields where number 7 is wanted"),
        ({"record_defaults": [0, 0.0, hf.int32, bool], "na_value": "?"}, "line 1: field 2: 'x' is no int32"),
    ]
    for given, text in wrong:
        with pytest.raises(errors.DataError, match=text):
            listed(hf.data.CsvDataset(path, **given))
    for given, text in [
        ({"record_defaults": []}, "no column"),
        ({"record_defaults": [0, 0], "select_cols": [1, 0]}, "rising"),
        ({"record_defaults": [[1, 2]]}, "no default"),
        ({"record_defaults": [0], "field_delim": ",,"}, "one letter"),
    ]:
        with pytest.raises(errors.ArgumentError, match=text):
            hf.data.CsvDataset(path, **given)


@pytest.mark.parametrize(
    "text, message",
    [
        (b"1\n2_0\n", "line 2: field 0: '2_0' is no int32"),
        (b"1\n2\n99999999999\n", "line 3: field 0"),
        (b'1\n"2\n3\n', "line 2: unexpected end of data"),
        (b"1\n\xff\n", "line 2: .*utf-8"),
        (b"1\n1e99\n", "line 2: field 0: '1e99' is no int32"),
        (b"1\n1.5\n", "line 2: field 0: '1.5' is no int32"),
    ],
)
def test_damaged_csv(tmp_path: Path, text: bytes, message: str) -> None:
    path = written(tmp_path / "x.csv", text, "")
    elements = iter(hf.data.CsvDataset(path, ["int32"]))
    assert plain(next(elements)) == (1,)
    with pytest.raises(errors.DataError, match=message):
        listed(elements)


def test_batches_of_csv(tmp_path: Path) -> None:
    written(tmp_path / "a.csv", b"n,big,x,far,name\n1,9999999999,0.5,1e300,ann\n2,,,,\n", "")
    written(tmp_path / "b.csv", b"n,big,x,far,name\n3,1,1,2,bob\n", "")
    pattern = str(tmp_path / "*.csv")
    (found,) = hf.data.make_csv_dataset(pattern, 3, num_epochs=1, shuffle=False)
    assert plain(found) == {
        "n": [1, 2, 3],
        "big": [9999999999, 0, 1],
        "x": [0.5, 0.0, 1.0],
        "far": [1e300, 0.0, 2.0],
        "name": ["ann", "", "bob"],
    }
    kinds = [found[name].dtype for name in ("n", "big", "x", "far")]
    assert kinds == [np.dtype(name) for name in ("int32", "int64", "float32", "float64")]
    data = hf.data.make_csv_dataset(pattern, 2, select_columns=["name", 0], label_name="n", shuffle_seed=1)
    some = listed(data.take(6))
    assert all([*x] == ["name"] and len(y) == 2 for x, y in some)
    assert sorted(n for _, y in some for n in y) == [1] * 4 + [2] * 4 + [3] * 4
    for given, text in [
        ({"label_name": "z"}, "label_name is 'z'"),
        ({"select_columns": ["z"]}, "'z' is none of the columns"),
        ({"header": False}, "column_names must be given"),
        ({"column_defaults": [0]}, "1 entries for 5 columns"),
    ]:
        with pytest.raises(errors.ArgumentError, match=text):
            hf.data.make_csv_dataset(pattern, 2, **given)
    written(tmp_path / "c.csv", b"other\n1\n", "")
    with pytest.raises(errors.DataError, match="other columns"):
        hf.data.make_csv_dataset(pattern, 2)
    written(tmp_path / "d.csv", b"n,x\n1,2\n2\nz,4\n3,5\n", "")
    options = {"column_defaults": ["int32", "float32"], "num_epochs": 1, "shuffle": False}
    (found,) = hf.data.make_csv_dataset(str(tmp_path / "d.csv"), 9, ignore_errors=True, **options)
    assert plain(found) == {"n": [1, 3], "x": [2.0, 5.0]}


# TFRecord


def crc32c(data: bytes) -> int:
    """Bit by bit, as the polynomial says."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def framed(record: bytes) -> bytes:
    def summed(data: bytes) -> bytes:
        crc = crc32c(data)
        return data + struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    return summed(struct.pack("<Q", len(record))) + summed(record)


def test_the_sum_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283  # its check value


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records(tmp_path: Path, kind: str) -> None:
    draw = random.Random(2)
    some = [draw.randbytes(size) for size in (0, 1, 3, 39, 40, 41, 255, 256, 257, 512, 3000)]
    path = written(tmp_path / "them", b"".join(map(framed, some)), kind)
    data = hf.data.TFRecordDataset(path, kind)
    resumed_everywhere(data, some)
    with hf.data.TFRecordWriter(tmp_path / "ours", kind) as file:
        for record in some:
            file.write(record)
    unpack = {"": bytes, "GZIP": gzip.decompress, "ZLIB": zlib.decompress}[kind]
    assert unpack((tmp_path / "ours").read_bytes()) == b"".join(map(framed, some))
    with pytest.raises(errors.ArgumentTypeError, match="a record is bytes"):
        hf.data.TFRecordWriter(tmp_path / "more").write("text")  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentError, match="options is 'LZ'"):
        hf.data.TFRecordWriter(tmp_path / "more", "LZ")


def test_every_damage_of_records_is_noticed(tmp_path: Path) -> None:
    first, second = framed(b"first"), framed(b"the second one")
    whole = first + second
    draw = random.Random(5)
    damaged = [whole[:cut] for cut in range(1, len(whole)) if cut != len(first)]
    for place in range(len(whole)):
        other = whole[place] ^ draw.randint(1, 255)
        damaged.append(whole[:place] + bytes([other]) + whole[place + 1 :])
    damaged.append(first + struct.pack("<QI", 2**62, 0) + second)
    path = tmp_path / "damaged"
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(errors.DataError, match="damaged is damaged, or no file of records: the record at byte"):
            listed(hf.data.TFRecordDataset(path))


# Out of TensorFlow's guide to TFRecord files
GOAT = (
    b"\nR\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00\n\x11\n\x08feature1"
    b"\x12\x05\x1a\x03\n\x01\x04\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04[\xd3|?"
)


def test_examples_of_tensorflow() -> None:
    fixed = hf.data.FixedLenFeature
    kinds = {"feature0": fixed((), hf.int64), "feature1": fixed([], "int32", 0), "feature2": fixed([], str)}
    found = hf.data.parse_single_example(GOAT, {**kinds, "feature3": fixed([1], "float32"), "no": fixed((2,), bool, 1)})
    assert plain(found) == {
        "feature0": 0,
        "feature1": 4,
        "feature2": "goat",
        "feature3": [float(np.float32(0.9876))],
        "no": [True, True],
    }
    features = {"feature2": b"goat", "feature0": False, "feature1": 4, "feature3": 0.9876}
    assert hf.data.encode_example(features) == GOAT


def test_examples_go_around() -> None:
    draw = np.random.default_rng(1)
    wide = np.concatenate([draw.integers(-(2**63), 2**63 - 1, 50), [0, -1, 127, 128, -(2**63), 2**63 - 1]])
    floats = draw.standard_normal((3, 4)).astype(np.float32)
    held = {"wide": wide, "floats": floats, "texts": ["a", "", "ü"], "raw": b"\0\xff", "none": [], "t": hf.ones((2,))}
    record = hf.data.encode_example(held)
    found = hf.data.parse_single_example(
        record,
        {
            "wide": hf.data.VarLenFeature("int64"),
            "floats": hf.data.FixedLenFeature((3, 4), "float32"),
            "texts": hf.data.VarLenFeature(str),
            "raw": hf.data.FixedLenFeature((), bytes),
            "none": hf.data.VarLenFeature("float32"),
            "gone": hf.data.FixedLenSequenceFeature((2,), "int64"),
            "t": hf.data.FixedLenSequenceFeature((1,), "float32"),
        },
    )
    assert found["wide"].tolist() == wide.tolist() and found["floats"].tolist() == floats.tolist()
    assert found["texts"].tolist() == ["a", "", "ü"] and found["raw"] == b"\0\xff"
    assert [found[name].shape for name in ("none", "gone", "t")] == [(0,), (0, 2), (2, 1)]


def test_numbers_that_are_not_packed() -> None:
    """Writers may give each number a field of its own."""
    ints = b"\x1a\x04\x08\x05\x08\x07"
    floats = b"\x12\x0a\x0d" + struct.pack("<f", 1.5) + b"\x0d" + struct.pack("<f", -2.0)

    def feature(name: bytes, value: bytes) -> bytes:
        entry = b"\n\x01" + name + b"\x12" + bytes([len(value)]) + value
        return b"\n" + bytes([len(entry)]) + entry

    features = feature(b"i", ints) + feature(b"f", floats)
    record = b"\n" + bytes([len(features)]) + features
    found = hf.data.parse_single_example(
        record, {"i": hf.data.VarLenFeature("int64"), "f": hf.data.VarLenFeature("float32")}
    )
    assert plain(found) == {"i": [5, 7], "f": [1.5, -2.0]}


def test_damaged_examples_are_errors_of_data() -> None:
    draw = random.Random(4)
    kinds = {f"feature{n}": hf.data.VarLenFeature(kind) for n, kind in enumerate(["int64", "int64", str, "float32"])}
    for _ in range(1500):
        data = bytearray(GOAT)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(len(data))] = draw.randrange(256)
        cut = bytes(data[: draw.randint(0, len(data))])
        with contextlib.suppress(errors.DataError):
            hf.data.parse_single_example(cut, kinds)
    for cut in range(1, len(GOAT)):
        with pytest.raises(errors.DataError):
            hf.data.parse_single_example(GOAT[:cut], {"feature1": hf.data.FixedLenFeature((), "int64")})


def test_examples_of_other_features() -> None:
    fixed = hf.data.FixedLenFeature
    record = hf.data.encode_example({"x": [1, 2], "t": b"\xff"})
    for kinds, text in [
        ({"x": fixed((2,), "float32")}, "x holds ints where floats are wanted"),
        ({"x": fixed((3,), "int64")}, "x has 2 values, which the shape"),
        ({"y": fixed((3,), "int64")}, "no y, and there is no default_value"),
        ({"t": fixed((), str)}, "Say bytes"),
        ({"x": "int64"}, "give a FixedLenFeature"),
    ]:
        with pytest.raises(errors.HybridflowError, match=text):
            hf.data.parse_single_example(record, kinds)
    with pytest.raises(errors.ArgumentError, match="padded_batch"):
        hf.data.parse_example([record], {"x": hf.data.VarLenFeature("int64")})
    with pytest.raises(errors.ArgumentTypeError, match="an example is bytes, got str"):
        hf.data.parse_single_example("x", {})  # type: ignore[arg-type]
    with pytest.raises(errors.ArgumentTypeError, match="complex128"):
        hf.data.encode_example({"x": 1j})


# NumPy's files


def test_numpy_files(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "a.npy", rows)
    np.save(tmp_path / "b.npy", rows[:2] + 100)
    data = hf.data.NumpyDataset([tmp_path / "a.npy", tmp_path / "b.npy"])
    assert len(data) == 6
    resumed_everywhere(data, [*rows.tolist(), *(rows[:2] + 100).tolist()])
    (batch,) = hf.data.NumpyDataset(tmp_path / "a.npy").batch(4)
    assert batch.tolist() == rows.tolist()
    np.savez(tmp_path / "c.npz", x=rows, y=np.array(["a", "b", "c", "d"]))
    named = hf.data.NumpyDataset(tmp_path / "c.npz")
    assert listed(named) == [{"x": x, "y": y} for x, y in zip(rows.tolist(), "abcd")]


def test_damaged_numpy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "objects.npy", np.array([{}, 1], object), allow_pickle=True)
    np.save(tmp_path / "whole.npy", np.ones((3, 4)))
    whole = (tmp_path / "whole.npy").read_bytes()
    (tmp_path / "cut.npy").write_bytes(whole[:-5])
    (tmp_path / "head.npy").write_bytes(whole[:20])
    (tmp_path / "none.npy").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04" + whole)
    for name in ("objects.npy", "cut.npy", "head.npy", "none.npy", "cut.npz"):
        with pytest.raises(errors.DataError, match=f"{name} cannot be read"):
            hf.data.NumpyDataset(tmp_path / name)


# Texts as elements


def test_texts_are_elements() -> None:
    pairs = (["b", "a", "c"], [1, 2, 3])
    data = Dataset.from_tensor_slices(pairs)
    assert listed(data) == [("b", 1), ("a", 2), ("c", 3)]
    assert data.element_spec == (hf.data.TextSpec(), hf.TensorSpec((), "int64"))
    (batch,) = data.batch(3)
    assert type(batch[0]) is np.ndarray and not batch[0].flags.writeable and batch[0].tolist() == ["b", "a", "c"]
    assert data.batch(2).element_spec[0] == hf.data.TextSpec((None,))
    upper = data.map(lambda text, n: text.upper())
    assert listed(upper) == ["B", "A", "C"] and upper.element_spec == hf.data.TextSpec()
    resumed_everywhere(upper.batch(2), [["B", "A"], ["C"]])
    resumed_everywhere(data.batch(2).unbatch().repeat(2), 2 * [("b", 1), ("a", 2), ("c", 3)])
    assert sorted(listed(data.shuffle(2, seed=1).map(lambda text, n: text).cache().prefetch(1))) == ["a", "b", "c"]
    words = Dataset.from_tensor_slices(["a b", "c", "d e f"]).map(lambda text: np.array(text.split()))
    assert listed(words.padded_batch(2)) == [[["a", "b"], ["c", ""]], [["d", "e", "f"]]]
    assert listed(words.padded_batch(3, padding_values="-"))[0][1] == ["c", "-", "-"]
    assert [listed(part) for part in upper.window(2)] == [["B", "A"], ["C"]]
    assert list(upper.as_numpy_iterator()) == ["B", "A", "C"]
    assert listed(Dataset.from_tensors(b"x").concatenate(Dataset.from_tensors([b"y", b"z"]))) == [b"x", [b"y", b"z"]]


def test_texts_are_checked() -> None:
    spec = {"name": hf.data.TextSpec((None,)), "n": hf.TensorSpec((), "int64")}

    def run(*values: Any) -> Any:
        return listed(Dataset.from_generator(lambda: iter(values), output_signature=spec))

    assert run({"name": ["a", "b"], "n": 1}) == [{"name": ["a", "b"], "n": 1}]
    for value in ({"name": "a", "n": 1}, {"name": [b"a"], "n": 1}, {"name": [1], "n": 1}):
        with pytest.raises(errors.ShapeError, match="output_signature"):
            run(value)
    with pytest.raises(errors.ShapeError, match="differ"):
        listed(Dataset.from_generator(lambda: iter(["a", b"b"])).batch(2))
    with pytest.raises(errors.ShapeError, match="differ"):
        listed(Dataset.from_generator(lambda: iter(["a", 1])).batch(2))
    with pytest.raises(errors.ArgumentTypeError, match="either str or bytes"):
        Dataset.from_tensor_slices(np.array(["a", None], object))
    with pytest.raises(errors.ArgumentError, match="str or bytes"):
        hf.data.TextSpec((), "int")


def test_texts_are_kept_in_checkpoints(tmp_path: Path) -> None:
    data = Dataset.from_tensor_slices((["a", "b", "c", "d"], [b"\xff", b"2", b"3", b"4"])).batch(2).map(lambda *x: x)
    data = data.unbatch().shuffle(3, seed=2)
    running = iter(data)
    next(running)
    path = hf.checkpoint.Checkpoint(running=running).save(tmp_path / "at")
    rest = listed(running)
    again = iter(data)
    hf.checkpoint.Checkpoint(running=again).restore(path)
    assert listed(again) == rest and len(rest) == 3


def test_a_stream_behind_a_stream_is_read_and_other_bytes_behind_it_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "lines.zlib"
    path.write_bytes(zlib.compress(b"a\n") + zlib.compress(b"b\n"))
    assert [*hf.data.TextLineDataset(path, "ZLIB")] == ["a", "b"]
    path.write_bytes(zlib.compress(b"a\n") + b"other bytes")
    with pytest.raises(errors.DataError, match="damaged"):
        [*hf.data.TextLineDataset(path, "ZLIB")]


@pytest.mark.parametrize("dtype, values", [("int8", [128]), ("uint8", [-1]), ("int32", [0, 2**31]), ("uint64", [-1])])
def test_ints_that_a_dtype_does_not_have_are_errors(dtype: str, values: list[int]) -> None:
    record = hf.data.encode_example({"x": values})
    for feature in (hf.data.FixedLenFeature((len(values),), dtype), hf.data.VarLenFeature(dtype)):
        with pytest.raises(errors.DataError, match=f"x holds {values[-1]}, which {dtype} does not"):
            hf.data.parse_single_example(record, {"x": feature})
    assert hf.data.parse_single_example(record, {"x": hf.data.VarLenFeature("int64")})["x"].tolist() == values


def test_shapes_of_features() -> None:
    record = hf.data.encode_example({"x": [1, 2]})
    assert hf.data.parse_single_example(record, {"x": hf.data.FixedLenFeature(2, "int64")})["x"].tolist() == [1, 2]
    for shape, kind in (
        ((-1,), errors.ShapeError),
        (("a",), errors.ArgumentTypeError),
        (2.5, errors.ArgumentTypeError),
    ):
        with pytest.raises(kind):
            hf.data.parse_single_example(record, {"x": hf.data.FixedLenFeature(shape, "int64")})
