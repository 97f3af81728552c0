"""Machine code by function: what is found in place of being compiled, and that nothing on disk can make it wrong."""

from __future__ import annotations

import ctypes
import errno
import gc
import os
import re
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.runtime.machine import (
    code_store,
    compilation_units,
    disk_cache,
    function_index,
    host_target,
    machine_code,
)
from hybridflow.runtime.machine.machine_code import Code
from tests.support.paths import ROOT

OWN = f"hybridflow-{os.geteuid()}"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with flags.CACHE_DIR(str(tmp_path / "cache")):
        yield tmp_path / "cache" / OWN


def function(name: str, body: str, linkage: str = "internal ") -> str:
    return f"define {linkage}i64 @{name}(i64 %x) #0 {{\nentry:\n{body}\n  ret i64 %r\n}}\n"


def plus(name: str, number: int) -> str:
    return function(name, f"  %r = add i64 %x, {number}")


def calling(name: str, *others: str, linkage: str = "internal ") -> str:
    """``others`` one after another."""
    lines = [f"  %y{k + 1} = call i64 @{other}(i64 %y{k})" for k, other in enumerate(others)]
    return function(name, "\n".join(["  %y0 = add i64 %x, 0", *lines, f"  %r = add i64 %y{len(others)}, 0"]), linkage)


def module(*functions: str) -> str:
    return "".join(
        (f'target triple = "{host_target.target().triple}"\n\n', *functions, "attributes #0 = { nounwind }\n")
    )


def load(text: str, name: str = "main", threads: int = 1, **given: Any) -> Code:
    return code_store.load(text, host_target.target(), [name], lambda: threads, **given)


def called(code: Code, x: int, name: str = "main") -> int:
    return int(ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(code.addresses[name])(x))


class Made:
    """The functions that were compiled and found since it was asked last."""

    def __init__(self) -> None:
        self.before = code_store.counts()

    def __call__(self) -> tuple[int, int]:
        now, before = code_store.counts(), self.before
        self.before = now
        return now.compiled - before.compiled, now.reused - before.reused


FIRST = module(plus("k0", 5), plus("k1", 7), calling("main", "k0", "k1", linkage=""))
SECOND = module(plus("a", 7), plus("b", 11), plus("c", 5), calling("main", "a", "b", "c", linkage=""))


@pytest.mark.parametrize("kept", ["memory", "disk", "off"])
def test_equal_functions_are_compiled_once(folder: Path, kept: str) -> None:
    """Whatever they are called, and in whatever order they stand."""
    with flags.CACHE_DIR("off" if kept == "off" else flags.CACHE_DIR.value):
        code_store.forget()  # what other tests have left in memory, where nothing is kept on disk
        made = Made()
        first = load(FIRST)
        assert called(first, 1) == 13 and made() == (3, 0)
        if kept == "disk":
            code_store.forget()
        second = load(SECOND)
        assert called(second, 1) == 24 and made() == (2, 2)
        assert called(load(FIRST), 2) == 14 and made() == (0, 3)
        if kept == "disk":
            code_store.forget()
        assert called(load(SECOND), 2) == 25 and made() == (0, 4)
        del first
        gc.collect()
        assert called(second, 3) == 26  # it holds what it calls


def test_what_calls_another_function_is_another_one(folder: Path) -> None:
    """Though its text is the same."""
    made = Made()
    for number in (1, 2, 3, 1):
        text = module(plus("k0", number), calling("k1", "k0", "k0"), calling("main", "k1", linkage=""))
        assert called(load(text), 0) == 2 * number
    assert made() == (9, 3)


def test_constants_count_by_what_they_hold(folder: Path) -> None:
    def text(name: str, number: int, callee: str, plus_: int) -> str:
        return module(
            f"@{name} = internal constant [1 x i64] [i64 {number}]\n",
            f"@f{name} = internal constant [1 x ptr] [ptr @{callee}]\n",
            plus(callee, plus_),
            function("k", f"  %n = load i64, ptr @{name}\n  %r = add i64 %x, %n"),
            function("main", f"  %f = load ptr, ptr @f{name}\n  %y = call i64 @k(i64 %x)\n"
                     "  %r = call i64 %f(i64 %y)", ""),
        )  # fmt: skip

    made = Made()
    assert called(load(text("one", 1, "a", 10)), 0) == 11 and made() == (3, 0)
    assert called(load(text("two", 1, "b", 10)), 0) == 11 and made() == (0, 3)
    assert called(load(text("one", 2, "a", 10)), 0) == 12 and made() == (2, 1)
    assert called(load(text("one", 1, "a", 20)), 0) == 21 and made() == (2, 1)


def test_what_nobody_calls_is_not_compiled(folder: Path) -> None:
    made = Made()
    unused = function("broken", "  %r = add nonsense")
    assert called(load(module(unused, plus("main", 1).replace("internal ", ""))), 1) == 2 and made() == (1, 0)


def test_modules_that_cannot_be_cut(folder: Path) -> None:
    state = module(
        "@state = internal global i64 40\n",
        function("main", "  %n = load i64, ptr @state\n  %r = add i64 %x, %n\n  store i64 %r, ptr @state", ""),
    )
    turns = module(
        "declare i64 @llvm.smax.i64(i64, i64)\n",
        *(
            f"define internal i64 @{name}(i64 %x) #0 {{\nentry:\n  %c = icmp sle i64 %x, 0\n"
            f"  br i1 %c, label %end, label %more\nmore:\n  %y = sub i64 %x, 1\n"
            f"  %z = call i64 @{other}(i64 %y)\n  ret i64 %z\nend:\n  ret i64 {end}\n}}\n"
            for name, other, end in (("even", "odd", 1), ("odd", "even", 0))
        ),
        calling("main", "even", linkage=""),
    )
    itself = module(
        "define internal i64 @sum(i64 %x) #0 {\nentry:\n  %c = icmp sle i64 %x, 0\n"
        "  br i1 %c, label %end, label %more\nmore:\n  %y = sub i64 %x, 1\n  %z = call i64 @sum(i64 %y)\n"
        "  %r = add i64 %x, %z\n  ret i64 %r\nend:\n  ret i64 0\n}\n",
        calling("main", "sum", linkage=""),
    )
    assert (
        compilation_units.split_module(state) is None
        and compilation_units.split_module(turns) is None
        and compilation_units.split_module(itself) is not None
    )
    for _ in range(2):
        code = load(state)
        assert called(code, 1) - called(code, 1) == -1  # state is kept between calls
        assert [called(load(turns), k) for k in range(5)] == [1, 0, 1, 0, 1]
        assert called(load(itself), 4) == 10
        code_store.forget()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_batches_of_threads(folder: Path, threads: int) -> None:
    def long(name: str, number: int) -> str:
        lines = "\n".join(f"  %y{k + 1} = add i64 %y{k}, {number}" for k in range(200))
        return function(name, f"  %y0 = add i64 %x, 0\n{lines}\n  %r = add i64 %y200, 0")

    made = Made()
    text = module(*(long(f"k{n}", n) for n in range(5)), calling("main", *(f"k{n}" for n in range(5)), linkage=""))
    assert called(load(text, threads=threads), 3) == 3 + 200 * 10 and made() == (6, 0)
    code_store.forget()
    other = module(long("a", 4), long("b", 9), calling("main", "a", "b", linkage=""))
    assert called(load(other, threads=threads), 0) == 200 * 13 and made() == (2, 1)


def test_names_of_the_process(folder: Path) -> None:
    """A function that uses one is found by programs that do not know of it."""
    there = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * 3)
    imports = {"hf_there": ctypes.cast(there, ctypes.c_void_p).value or 0}
    using = calling("k", "hf_there")
    first = module("declare i64 @hf_there(i64)\n", using, calling("main", "k", linkage=""))
    second = module("declare i64 @hf_there(i64)\n", using, plus("b", 1), calling("main", "k", "b", linkage=""))
    for text, value in ((first, 6), (second, 7), (first, 6)):
        assert called(load(text, imports=lambda: imports), 2) == value
        code_store.forget()
    with pytest.raises(hf.errors.CompileError, match="no function hf_there"):
        load(first)


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix == ".hfc")


def flipped(content: bytes) -> bytes:
    return content[:-3] + bytes([content[-3] ^ 1]) + content[-2:]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "flipped": flipped,
    "truncated": lambda content: content[: len(content) // 2],
    "header": lambda content: content[:20],
    "empty": lambda content: b"",
    "longer": lambda content: content + b"x",
    "foreign": lambda content: b"#!/bin/sh\nexit 1\n",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_entries_are_made_anew(folder: Path, damage: str) -> None:
    load(FIRST)
    (path,) = files(folder)
    good = path.read_bytes()
    path.write_bytes(DAMAGES[damage](good))
    code_store.forget()
    made = Made()
    assert called(load(SECOND), 1) == 24 and made() == (4, 0)
    code_store.forget()
    assert called(load(FIRST), 1) == 13 and made() == (1, 2)  # what the other one has
    code_store.forget()
    assert called(load(FIRST), 1) == 13 and made() == (0, 3)


def payload_of(path: Path) -> bytes:
    found = disk_cache.get_by(bytes.fromhex(path.stem))
    assert found is not None
    return found


def replaced(text: str, payload: bytes) -> None:
    assert disk_cache.put(code_store.key_of(text, host_target.target(), ["main"]), payload)


def poisoned(entry: code_store.Entry, how: str) -> bytes:
    head, _, image = entry.payload().partition(b"\n\n")
    key = next(iter(entry.members))
    return {
        "image of another kind": head + b"\n\n" + b"not an object file",
        "no image": head + b"\n\n",
        "image cut": head + b"\n\n" + image[: len(image) // 2],
        "symbol that is not there": entry.payload().replace(entry.members[key].encode(), b"hf.nowhere"),
        "word that is none": head + b"\nmember zz main\n\n" + image,
        "line of another kind": head + b"\nsurprise a b c d\n\n" + image,
        "needs what is gone": head + b"\nneed " + b"00" * 16 + b" hf.gone " + b"00" * 32 + b"\n\n" + image,
        "needs a name of nobody": head + b"\nother hf_nobody\n\n" + image,
        "no entry point": b"\n".join(line for line in head.split(b"\n") if not line.startswith(b"root"))
        + b"\n\n"
        + image,
        "another magic": entry.payload().replace(b"functions 1", b"functions 0"),
    }[how]


@pytest.mark.parametrize(
    "how",
    ["image of another kind", "no image", "image cut", "symbol that is not there", "word that is none",
     "line of another kind", "needs what is gone", "needs a name of nobody", "no entry point", "another magic"],
)  # fmt: skip
def test_entries_that_say_what_is_not_so(folder: Path, how: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Whole and sealed, as another version of hybridflow might have left them."""
    load(FIRST)
    (path,) = files(folder)
    entry = code_store.Entry.read(payload_of(path))
    assert entry is not None and len(entry.members) == 3
    replaced(FIRST, poisoned(entry, how))
    code_store.forget()
    assert called(load(FIRST), 1) == 13
    code_store.forget()
    made = Made()
    assert called(load(FIRST), 1) == 13 and made() == (0, 3)
    assert called(load(SECOND), 1) == 24 and made() == (2, 2)


def test_what_others_need_may_go(folder: Path) -> None:
    load(FIRST)
    (first,) = files(folder)
    load(SECOND)
    first.unlink()
    code_store.forget()
    made = Made()
    assert called(load(SECOND), 1) == 24 and made() == (4, 0)
    code_store.forget()
    assert called(load(SECOND), 2) == 25 and made() == (0, 4)
    for path in files(folder):
        path.unlink()
    code_store.forget()
    assert called(load(SECOND), 3) == 26 and made() == (4, 0)


def index_of(folder: Path) -> Path:
    return folder / disk_cache.INDEX


INDEX_DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut within a record": lambda path: path.write_bytes(path.read_bytes()[:-7]),
    "garbage": lambda path: path.write_bytes(bytes(range(256)) * 3),
    "wrong entries": lambda path: path.write_bytes(
        b"".join(path.read_bytes()[at : at + 16] + bytes(32) for at in range(0, path.stat().st_size, 48))
    ),
    "for others to write": lambda path: path.chmod(0o666),
    "a link": lambda path: (path.rename(path.with_suffix(".moved")), path.symlink_to(path.with_suffix(".moved"))),
    "a second name": lambda path: os.link(path, path.with_suffix(".also")),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a pipe": lambda path: (path.unlink(), os.mkfifo(path)),
}


@pytest.mark.parametrize("damage", INDEX_DAMAGES)
def test_an_index_that_is_none(folder: Path, damage: str) -> None:
    load(FIRST)
    INDEX_DAMAGES[damage](index_of(folder))
    code_store.forget()
    made = Made()
    assert called(load(SECOND), 1) == 24
    assert made() in ((4, 0), (3, 1), (2, 2))
    code_store.forget()
    third = module(plus("x", 11), calling("main", "x", linkage=""))
    assert called(load(third), 1) == 12
    code_store.forget()
    for text, value in ((FIRST, 13), (SECOND, 24), (third, 12)):
        made()
        assert called(load(text), 1) == value and made()[0] == 0  # the modules' own entries are found without


def test_an_index_that_was_cut_is_mended(folder: Path) -> None:
    load(FIRST)
    path = index_of(folder)
    path.write_bytes(path.read_bytes() + b"half a record")
    load(SECOND)
    assert path.stat().st_size == 5 * 48
    code_store.forget()
    made = Made()
    load(module(plus("p", 5), plus("q", 11), calling("main", "q", "p", linkage="")))
    assert made() == (1, 2)


def test_the_index_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(function_index, "_MOST", 10 * 48)
    for k in range(12):
        load(module(plus("a", 100 + k), calling("main", "a", linkage="")))
        assert index_of(folder).stat().st_size <= 10 * 48
    code_store.forget()
    made = Made()
    for k in (11, 0):  # the new ones are known
        load(module(plus("b", 100 + k), plus("c", 1000 + k), calling("main", "b", "c", linkage="")))
    assert made() == (5, 1)


def test_of_the_index_only_what_is_new_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(FIRST)  # makes the folder
    index_of(folder).unlink()
    one, other, sizes = function_index.Index(str(folder)), function_index.Index(str(folder)), []
    read = disk_cache.read

    def counting(path: str, start: int = 0) -> disk_cache.Read | None:
        found = read(path, start)
        sizes.append(0 if found is None else len(found.content))
        return found

    monkeypatch.setattr(disk_cache, "read", counting)
    keys = [bytes([k]) * function_index.KEY for k in range(4)]
    for k, key in enumerate(keys):
        one.add({key: bytes([k]) * 32})
        other.refresh()
        other.refresh()
        assert [other.get(key) for key in keys] == [bytes([n]) * 32 if n <= k else None for n in range(4)]
    assert sizes == [48, 96, 96, 96]  # the last record that it has, and the new one
    with index_of(folder).open("ab") as file:
        file.write(bytes([9]) * 20)
    other.refresh()
    with index_of(folder).open("ab") as file:
        file.write(bytes([9]) * 28)  # the rest of a record
    other.refresh()
    assert other.get(bytes([9]) * function_index.KEY) == bytes([9]) * 32 and sizes[4:] == [68, 96]
    index_of(folder).write_bytes(keys[0] + bytes([7]) * 32)  # less: all is read
    other.refresh()
    assert [other.get(key) for key in keys] == [bytes([7]) * 32, None, None, None]
    index_of(folder).unlink()
    other.refresh()
    assert other.get(keys[0]) is None


def test_another_index_is_read_whole_though_it_looks_like_the_same_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Systems give its number again; or it is written anew between looking at it and reading it."""
    load(FIRST)  # makes the folder
    keys = [bytes([k]) * function_index.KEY for k in range(8)]
    path = index_of(folder)
    path.write_bytes(b"".join(key + bytes([1]) * 32 for key in keys[:3]))
    index = function_index.Index(str(folder))
    index.refresh()
    with path.open("r+b") as file:  # of the same number, and longer
        file.write(b"".join(key + bytes([2]) * 32 for key in keys[3:8]))
    index.refresh()
    assert [index.get(key) for key in keys] == [None] * 3 + [bytes([2]) * 32] * 5
    read = disk_cache.read

    def late(where: str, start: int = 0) -> disk_cache.Read | None:
        monkeypatch.setattr(disk_cache, "read", read)
        path.unlink()
        path.write_bytes(b"".join(key + bytes([3]) * 32 for key in keys[:7]))
        return read(where, start)

    with path.open("ab") as file:
        file.write(keys[0] + bytes([2]) * 32)
    monkeypatch.setattr(disk_cache, "read", late)
    index.refresh()
    assert [index.get(key) for key in keys] == [bytes([3]) * 32] * 7 + [None]
    index.refresh()
    assert [index.get(key) for key in keys] == [bytes([3]) * 32] * 7 + [None]


def test_a_disk_that_is_full(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries cannot be written; then they can, but what is appended to the index is cut short; then there is room."""

    def full(*_: Any, **__: Any) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    import tempfile

    made = Made()
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "mkstemp", full)
        assert called(load(FIRST), 1) == 13 and called(load(SECOND), 1) == 24
        assert made() == (5, 2) and disk_cache.entries() == []
    code_store.forget()
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, content: write(handle, content[:30]) if len(content) > 40 else 0)
        assert called(load(FIRST), 1) == 13 and made() == (3, 0)
    assert index_of(folder).stat().st_size == 30
    code_store.forget()
    assert called(load(SECOND), 1) == 24 and made() == (4, 0)
    code_store.forget()
    assert called(load(FIRST), 1) == 13 and called(load(SECOND), 1) == 24 and made() == (0, 7)
    assert not [path for path in folder.iterdir() if path.suffix == ".tmp"]


def test_a_folder_that_can_only_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load(FIRST)
    open_ = os.open
    before = {path: path.read_bytes() for path in folder.iterdir()}

    def read_only(path: Any, mode: int, *given: Any, **more: Any) -> int:
        if mode & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(errno.EROFS, "Read-only file system")
        return open_(path, mode, *given, **more)

    code_store.forget()
    made = Made()
    monkeypatch.setattr(os, "open", read_only)
    assert called(load(SECOND), 1) == 24 and made() == (2, 2)
    assert called(load(SECOND), 1) == 24 and made() == (0, 4)  # from memory
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("whose", ["folder", "entry", "index"])
def test_what_another_user_wrote_is_not_used(folder: Path, whose: str) -> None:
    load(FIRST)
    (entry,) = files(folder)
    os.chown({"folder": folder, "entry": entry, "index": index_of(folder)}[whose], 12345, -1)
    code_store.forget()
    made = Made()
    assert called(load(SECOND), 1) == 24 and made() == (4, 0)


def test_memory_is_bounded_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_store, "_MEMORY", 8000)
    with flags.CACHE_DIR("off"):
        code_store.forget()
        machine_code.load_object(
            machine_code.compile_object(plus("f", 1).replace("internal ", "").replace("#0", ""), host_target.target()),
            "f",
        )  # unloads
        trackers = len(machine_code._trackers)
        for k in range(40):
            assert called(load(module(plus("a", k), calling("main", "a", linkage=""))), 0) == k
            memory = code_store._memory()
            assert memory.size == sum(len(entry.image) for entry in memory.entries.values()) <= 8000
        assert 1 < len(memory.entries) < 20 and len(memory.loaded) <= 20
        assert len(machine_code._trackers) < trackers + 10
        made = Made()
        load(module(plus("b", 39), calling("main", "b", "b", linkage="")))
        assert made() == (1, 1)


def test_few_folders_are_remembered(tmp_path: Path) -> None:
    for k in range(8):
        with flags.CACHE_DIR(str(tmp_path / str(k))):
            made = Made()
            assert called(load(FIRST), 1) == 13 and made() == (3, 0)
            assert called(load(FIRST), 1) == 13 and made() == (0, 3)
    assert len(code_store._memories) <= 4
    with flags.CACHE_DIR(str(tmp_path / "0")):
        assert called(load(FIRST), 1) == 13 and made() == (0, 3)
        assert disk_cache.clear() == 1
        assert called(load(FIRST), 1) == 13 and made() == (3, 0)


def test_threads_that_load_the_same_functions(folder: Path) -> None:
    start = threading.Barrier(6)
    wrong: list[object] = []

    def work(n: int) -> None:
        try:
            start.wait(300)
            for k in range(8):
                text = module(
                    plus("a", k), plus("b", k + 1), calling("c", "a", "b"), calling("main", "c", "b", "a", linkage="")
                )
                if called(load(text), n) != n + 4 * k + 2:
                    wrong.append((n, k))
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not wrong
    code_store.forget()
    made = Made()
    work_alone = module(plus("a", 3), plus("b", 4), calling("c", "a", "b"), calling("main", "c", linkage=""))
    assert called(load(work_alone), 0) == 7 and made()[0] == 1


_PROCESS = """
    import sys
    sys.path.insert(0, ROOT)
    import numpy as np, hybridflow as hf
    from hybridflow.runtime.machine import code_store

    @hf.function
    def f(x, w):
        y = hf.tanh(x @ w)
        return hf.sort(y, axis=0), hf.nn.softmax(y), hf.sum(y)

    x = hf.asarray(np.arange(12.0, dtype=np.float32).reshape(3, 4))
    out = f(x, hf.matrix_transpose(x) * 0.01)
    print(code_store.counts().compiled, [o.tolist() for o in out])
"""


def test_processes_that_fill_one_folder(folder: Path) -> None:
    environment = {**os.environ, "HF_CACHE_DIR": str(folder.parent), "HF_NUM_THREADS": "1"}
    command = [sys.executable, "-c", textwrap.dedent(_PROCESS).replace("ROOT", repr(str(ROOT)))]

    def begun() -> subprocess.Popen[str]:
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)

    outs = [process.communicate(timeout=300)[0] for process in [begun() for _ in range(3)]]
    assert len({out.partition(" ")[2] for out in outs}) == 1 and all(out for out in outs)
    last = begun().communicate(timeout=300)[0]
    assert last == "0 " + outs[0].partition(" ")[2]


def test_programs_share_kernels(folder: Path) -> None:
    """A function with one op more compiles what is new: that op's kernel, and what calls them all."""
    x = hf.asarray(np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32))

    def first(x: hf.Tensor) -> tuple[hf.Tensor, ...]:
        return hf.sort(x, axis=0), hf.nn.softmax(x @ hf.matrix_transpose(x)), hf.cumulative_sum(x, axis=1)

    def second(x: hf.Tensor) -> tuple[hf.Tensor, ...]:
        return *first(x), hf.sum(hf.exp(x), axis=0)

    compiled = hf.function(first)
    made = Made()
    expected = compiled(x)
    alone, _ = made()
    results = hf.function(second)(x)
    more, found = made()
    assert more < alone and found >= alone - 2, (alone, more, found)
    assert [a.numpy().tobytes() for a in results[:3]] == [a.numpy().tobytes() for a in expected]
    np.testing.assert_allclose(results[3].numpy(), np.exp(x.numpy()).sum(axis=0), rtol=1e-5)
    assert hf.function(second)(x)[3].tolist() == results[3].tolist()
    assert made()[0] == 0


def test_keys_do_not_name_the_version_of_python() -> None:
    key = code_store.key_of(FIRST, host_target.target(), ["main"])
    assert not re.search(
        rf"python|{sys.version_info.major}\.{sys.version_info.minor}|{sys.implementation.cache_tag}", key
    )
