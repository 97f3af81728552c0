"""What a damaged file may answer when it loads: what it answered whole, or what its changed text means.

Each judge is given the folder's file, the answer of the whole file and the one of the damaged file, and says what is
wrong, or None.  What a text means is found by others than the code that loads it: the interpreter of graphs in NumPy,
``json``, ``numpy.load``, ``csv``.
"""

from __future__ import annotations

import contextlib
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hybridflow.checkpoint import files
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir.text import parse
from hybridflow.compiler.ops import TABLE
from hybridflow.errors import ShapeError

Judge = Any  # Callable[[Path, whole answer, answer, arguments], str | None]


def leaves(value: Any) -> Iterator[Any]:
    """What an answer consists of, arrays as such."""
    if isinstance(value, dict):
        for key in sorted(value):
            yield key
            yield from leaves(value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    elif isinstance(value, (str, bytes, int, float, bool, type(None))):
        yield value
    else:
        yield np.asarray(value)


def are_same(a: Any, b: Any, tolerance: float = 0.0) -> bool:
    """Whether two answers have equal leaves; sums may have been added up in another order."""
    first, second = list(leaves(a)), list(leaves(b))
    return len(first) == len(second) and all(_is_same(x, y, tolerance) for x, y in zip(first, second))


def _is_same(x: Any, y: Any, tolerance: float) -> bool:
    if isinstance(x, np.ndarray) != isinstance(y, np.ndarray):
        return False
    if not isinstance(x, np.ndarray):
        return type(x) is type(y) and bool(x == y)
    if x.shape != y.shape or x.dtype.newbyteorder("=") != y.dtype.newbyteorder("="):
        return False
    if x.dtype.kind != "f" or not tolerance:
        return bool(np.array_equal(x, y, equal_nan=x.dtype.kind == "f"))
    with np.errstate(all="ignore"):
        return bool(np.allclose(x, y, rtol=tolerance, atol=tolerance, equal_nan=True))


def original(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """Sums or a structure of its own tell the file from any other."""
    return None if are_same(whole, answer) else f"another answer: {answer!r}"[:300]


def by_interpreter(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """The program in the file, run by the ops' references on the argument."""
    programs = json.loads(files.File(path).texts["programs"])
    (entries,) = programs.values()
    wanted = []
    for entry in entries:
        graph = parse(entry["graph"], TABLE)
        if len(graph.inputs) != 1:
            return None if are_same(whole, answer) else "another answer of a program with other inputs"
        with np.errstate(all="ignore"), contextlib.suppress(ShapeError):  # those are programs for other extents
            wanted.append(interpret(graph, [given])[0])
    found = [x for x in leaves(answer) if isinstance(x, np.ndarray)]
    if any(are_same(outputs, found, 1e-4) for outputs in wanted):
        return None
    # The file may say which outputs are results, and in which order.
    known = [x for outputs in wanted for x in outputs]
    if wanted and all(any(_is_same(x, y, 1e-4) for y in known) for x in found):
        return None
    return f"its program gives {wanted!r}, and not {found!r}"[:400]


def by_plain_values(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """A checkpoint's numbers are those in its text; its tensors have sums."""
    plain = json.loads(files.File(path).texts["plain"])
    before, now = list(whole), list(answer)
    if not (are_same(now[0], before[0]) or are_same(now[0], np.zeros_like(before[0]))):
        return f"a tensor is {now[0]!r}"
    if now[1] not in (plain.get("n"), 0) or type(now[1]) is not int:
        return f"n is {now[1]!r}, and {plain.get('n')!r} in the text"
    is_as_before = plain.get("it") == given["it"]
    return None if not is_as_before or are_same(now[2], before[2]) else f"the iterator gives {now[2]!r}"


def by_configuration(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """A model is what its configuration says: all of it, as the model says it itself."""
    plain = json.loads(files.File(path).texts["plain"])
    said, architecture = answer[1], json.loads(plain["architecture"])
    wrong = next(_unlike(architecture, said, "architecture"), None)
    if wrong is not None:
        return wrong
    if architecture == given and not are_same(whole[0], answer[0]):
        return f"the same model answers {answer[0]!r}"
    return None


def _unlike(text: Any, said: Any, path: str) -> Iterator[str]:
    if isinstance(text, dict) and isinstance(said, dict):
        for key in text:
            yield from _unlike(text[key], said.get(key), f"{path}.{key}")
    elif isinstance(text, list) and isinstance(said, list) and len(text) == len(said):
        for k, (a, b) in enumerate(zip(text, said)):
            yield from _unlike(a, b, f"{path}[{k}]")
    elif text != said:
        yield f"{path} is {text!r} in the file, and {said!r} in the model"


def by_numpy(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    found = np.load(path, allow_pickle=False)
    arrays = {name: found[name] for name in found.files} if path.suffix == ".npz" else found
    if isinstance(arrays, dict):
        wanted: list[Any] = [{name: array[k] for name, array in arrays.items()} for k in range(len(arrays["x"]))]
    else:
        wanted = list(arrays)
    return None if are_same(wanted, answer) else f"NumPy reads {wanted!r}, and not {answer!r}"[:400]


def by_csv(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    with open(path, newline="") as file:
        rows = [row for row in csv.reader(file) if row][1:]
    if len(rows) != len(answer):
        return f"csv reads {len(rows)} rows, and not {len(answer)}"
    for row, found in zip(rows, answer):
        values = [np.asarray(v).item() if not isinstance(v, str) else v for v in found]
        values = [v.decode() if isinstance(v, bytes) else v for v in values]
        wanted = [int(row[0] or 0), float(np.float32(row[1] or 0)), row[2]]
        if not (
            values[0] == wanted[0] and values[2] == wanted[2] and (values[1] == wanted[1] or wanted[1] != wanted[1])
        ):
            return f"csv reads {wanted}, and not {values}"
    return None


def prefix(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """Records have sums; a file may end between two."""
    return None if are_same(whole[: len(answer)], answer) else f"another answer: {answer!r}"[:300]


def any_answer(path: Path, whole: Any, answer: Any, given: Any) -> str | None:
    """A format without sums, which nothing else here reads."""
    return None
