"""Damages files of every kind and reads them, in a process of its own with limits: what comes of it is an error of the
exception tree, or a right answer.

    python -m tests.support.fuzz_files SEED COUNT [KIND]    prints the cases that ended in another way, and their number
"""

from __future__ import annotations

import faulthandler
import json
import os
import random
import resource
import signal
import struct
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.checkpoint import files
from hybridflow.errors import HybridflowError
from tests.support import file_answers

_MEMORY, _SECONDS = 6 << 30, 25
X = np.arange(24.0, dtype=np.float32).reshape(8, 3)


def loop(x: Any) -> Any:
    count = 0
    while hf.max(hf.abs(x)) > 0.1:
        x = x / 2
        count += 1
    return x, hf.asarray(count)


class Case(NamedTuple):
    """A file, what reads it, who judges the answer, and what that one is told."""

    path: Path
    read: Callable[[Path], Any]
    judge: Callable[[Path, Any, Any, Any], str | None]
    given: Any = None


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "views": lambda x: hf.concat([x[2:], x[:-1] * 2, hf.pad(x[::2], ((1, 2), (0, 0)))], axis=0),
    "open": lambda x: x[:4] + x[-4:],
    "products": lambda x: hf.nn.softmax(x @ x.T),
    "indices": lambda x: hf.take(x, hf.argsort(x[:, 0]), axis=0),
    "sorts": lambda x: (hf.sort(x, axis=0), hf.top_k(x, 2)),
    "matrices": lambda x: (hf.linalg.inv(x.T @ x + hf.eye(3)), *hf.linalg.qr(x)),
    "loop": loop,
    "choice": lambda x: hf.cond(hf.sum(x) > 0, lambda: x + 1, lambda: x * 2),
    "scan": lambda x: hf.scan(lambda a, b: a + b, x, hf.zeros((3,))),
    "assignment": lambda x: hf.concat([x[:1] * 0, x[1:]], axis=0) + hf.take(x, hf.asarray([1]), axis=0),
    "windows": lambda x: hf.nn.max_pool2d(x[None, :, :, None], 2, 1, "VALID"),
}


def saved(folder: Path, r: random.Random) -> Case:
    path = folder / "f"
    name = r.choice(sorted(FUNCTIONS))
    shape = (None, 3) if r.random() < 0.5 else (8, 3)
    f = hf.function(FUNCTIONS[name], input_signature=[hf.TensorSpec(shape)])
    hf.saved.save(f, path)
    return Case(path, lambda p: hf.saved.load(p)(X), file_answers.by_interpreter, X)


def checkpoint(folder: Path, r: random.Random) -> Case:
    path = folder / "c.safetensors"
    parts = {"v": hf.Variable(X), "n": 3, "it": iter(hf.data.Dataset.range(9).shuffle(4, seed=1).batch(2))}
    next(parts["it"])
    hf.checkpoint.Checkpoint(**parts).write(path)

    def read(p: Path) -> Any:
        other = {"v": hf.Variable(X * 0), "n": 0, "it": iter(hf.data.Dataset.range(9).shuffle(4, seed=1).batch(2))}
        target = hf.checkpoint.Checkpoint(**other)
        target.restore(p, partial=True)
        return other["v"].numpy(), target.n, [np.asarray(x) for x in other["it"]]

    return Case(path, read, file_answers.by_plain_values, json.loads(files.File(path).texts["plain"]))


def model(folder: Path, r: random.Random) -> Case:
    path = folder / "m.safetensors"
    made = hf.Sequential(
        [hf.Input((3,)), hf.layers.Dense(4, "relu"), hf.layers.BatchNormalization(), hf.layers.Dense(2)]
    )
    made.compile("adam", "mse", metrics=["mae"])
    made.save(path)

    def read(p: Path) -> Any:
        loaded = hf.models.load_model(p)
        return np.asarray(loaded(X)), json.loads(loaded.to_json())

    architecture = json.loads(json.loads(files.File(path).texts["plain"])["architecture"])
    return Case(path, read, file_answers.by_configuration, architecture)


def dataset(folder: Path, r: random.Random) -> Case:
    hf.data.Dataset.from_tensor_slices({"x": X, "s": ["a"] * 8}).save(str(folder))
    path = r.choice(sorted(folder.iterdir(), key=lambda p: p.suffix))  # the names are random
    return Case(path, lambda p: list(hf.data.Dataset.load(str(p.parent))), file_answers.original)


def numpy_file(folder: Path, r: random.Random) -> Case:
    if r.random() < 0.5:
        np.save(folder / "x.npy", X)
        return Case(folder / "x.npy", lambda p: list(hf.data.NumpyDataset(p)), file_answers.by_numpy)
    np.savez(folder / "x.npz", x=X, y=X[:, 0])
    return Case(folder / "x.npz", lambda p: list(hf.data.NumpyDataset(p)), file_answers.by_numpy)


def records(folder: Path, r: random.Random) -> Case:
    path = folder / "r.tfrecord"
    with hf.data.TFRecordWriter(path) as file:
        for k in range(3):
            file.write(hf.data.encode_example({"x": [k, k + 1], "y": float(k)}))
    kinds = {"x": hf.data.VarLenFeature("int64"), "y": hf.data.FixedLenFeature((), "float32")}

    def read(p: Path) -> Any:
        return list(hf.data.TFRecordDataset(p).map(lambda one: hf.data.parse_single_example(one, kinds)))

    return Case(path, read, file_answers.prefix)


def example(folder: Path, r: random.Random) -> Case:
    path = folder / "example"
    path.write_bytes(hf.data.encode_example({"x": [1, 2], "y": 2.5, "s": ["a", "b"]}))
    kinds = {"x": hf.data.VarLenFeature("int64"), "s": hf.data.VarLenFeature("str")}
    return Case(path, lambda p: hf.data.parse_single_example(p.read_bytes(), kinds), file_answers.any_answer)


def table(folder: Path, r: random.Random) -> Case:
    path = folder / "t.csv"
    path.write_text("a,b,c\n" + "".join(f'{k},{k / 3},"x{k}"\n' for k in range(9)))
    return Case(
        path, lambda p: list(hf.data.CsvDataset(p, ["int32", "float32", str], header=True)), file_answers.by_csv
    )


KINDS = {f.__name__: f for f in (saved, checkpoint, model, dataset, numpy_file, records, example, table)}
_NUMBERS = [
    "0",
    "-1",
    "2",
    "7",
    "9",
    "100",
    "-100",
    "1000000007",
    "2147483648",
    "4611686018427387904",
    "n",
    "x0",
    "x0-3",
    "x0*x0",
]
_WORDS = [
    "True",
    "False",
    "None",
    "f64",
    "i64",
    "bool",
    "(1,)",
    "()",
    '"x"',
    "%0",
    "%1",
    "[",
    "]",
    "null",
    "{}",
    "1e999",
]


def damage_text(text: str, r: random.Random) -> str:
    """Numbers, words and lines of a text changed for others."""
    import re

    for _ in range(r.choice((1, 1, 1, 2, 4))):
        found = list(re.finditer(r"-?\d+|\w+|[^\w\s]", text))
        if not found:
            return text
        one = r.choice(found)
        how = r.randrange(6)
        if how < 3 and re.fullmatch(r"-?\d+", one.group()):
            new = r.choice([*_NUMBERS, str(int(one.group()) + r.choice((-1, 1)))])
        elif how == 3:
            new = r.choice(found).group()
        elif how == 4:
            new = r.choice([*_WORDS, *_NUMBERS, ""])
        else:
            other = r.choice(found)
            new = text[min(one.start(), other.start()) : max(one.end(), other.end())][:200]
        text = text[: one.start()] + new + text[one.end() :]
    return text


def damage_bytes(data: bytes, r: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 5))):
        at = r.randrange(len(out) + 1)
        how = r.randrange(5)
        if how == 0:
            del out[at:]
        elif how == 1:
            del out[at : at + r.randrange(1, 9)]
        elif how == 2:
            out[at:at] = r.randbytes(r.randrange(1, 9))
        elif how == 3 and out:
            out[min(at, len(out) - 1)] ^= 1 << r.randrange(8)
        else:
            out[at : at + 8] = struct.pack("<q", r.choice((0, -1, 2**31, 2**62, 255)))
    return bytes(out)


def damage(path: Path, r: random.Random) -> None:
    """Bytes, or a text of the file with right sums."""
    if r.random() < 0.8:
        try:
            file = files.File(path)
        except (HybridflowError, OSError):
            file = None
        texts = dict(file.texts) if file is not None else {}
        key = r.choice([k for k in texts if k not in ("kind",)]) if texts else None
        if file is not None and key is not None:
            if key == "programs" and r.random() < 0.8:
                programs = json.loads(texts[key])
                one = r.choice(r.choice(list(programs.values())))
                one["graph"] = damage_text(one["graph"], r)
                texts[key] = json.dumps(programs)
            else:
                texts[key] = damage_text(texts[key], r)
            files.write(path, {n: np.array(file.tensor(n)) for n in file.names}, texts)
            return
        if path.suffix in (".json", ".csv"):
            path.write_text(damage_text(path.read_text(), r))
            return
    path.write_bytes(damage_bytes(path.read_bytes(), r))


class TooLong(BaseException):
    pass


def _too_long(*_: Any) -> None:
    raise TooLong


def attempt(kind: str, seed: int) -> str:
    """How one case ends: "an error of ours", "an answer", or what it should not."""
    r = random.Random(f"{kind}{seed}")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path, read, judge, given = KINDS[kind](Path(folder), r)
        whole = read(path)
        damage(path, r)
        signal.alarm(_SECONDS)
        try:
            answer = read(path)
        except HybridflowError:
            return "an error of ours"
        except FileNotFoundError:
            return "an error of ours"
        except TooLong:
            return "too long"
        except BaseException as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {str(error)[:90]} at {os.path.basename(last.filename)}:{last.lineno}"
        finally:
            signal.alarm(0)
        try:
            wrong = judge(path, whole, answer, given)
        except Exception as error:  # nobody but the loader makes sense of it
            wrong = f"it loads, and whoever else reads it raises {type(error).__name__}: {str(error)[:200]}"
    return "an answer" if wrong is None else f"a wrong answer: {wrong}"


def main(first: int, count: int, kinds: list[str]) -> int:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, _too_long)
    found: Counter[str] = Counter()
    wrong = 0
    for seed in range(first, first + count):
        kind = kinds[seed % len(kinds)]
        print(f"\r{kind} {seed}", end="", file=sys.stderr, flush=True)  # the last one is what ended the process
        end = attempt(kind, seed)
        if end not in ("an error of ours", "an answer"):
            wrong += 1
            print(f"{kind} {seed}: {end}", flush=True)
        found[f"{kind}: {end if end in ('an answer', 'an error of ours') else 'wrong'}"] += 1
    print(dict(sorted(found.items())))
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:] or list(KINDS)), 100))
