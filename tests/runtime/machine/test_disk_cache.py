"""The on-disk cache: what it gives back, what it ignores, and that nothing on disk can stop a program."""

from __future__ import annotations

import ctypes
import hashlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import flags
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import code_store, disk_cache, machine_code
from hybridflow.runtime.native import native_functions
from tests.support.paths import ROOT
from tests.support.runtime_programs import plus_one

OWN = f"hybridflow-{os.geteuid()}"


@pytest.fixture
def folder(tmp_path):
    with flags.CACHE_DIR(str(tmp_path / "cache")):
        yield tmp_path / "cache" / OWN


def only_file(folder):
    (path,) = folder.iterdir()
    return path


@pytest.mark.parametrize("payload", [b"", b"x", bytes(range(256)) * 100])
def test_round_trip(folder, payload):
    assert disk_cache.get("key") is None
    disk_cache.put("key", payload)
    assert disk_cache.get("key") == payload
    assert disk_cache.get("other key") is None
    disk_cache.put("key", b"new")
    assert disk_cache.get("key") == b"new" and len(disk_cache.entries()) == 1


def test_private_to_the_user(folder):
    disk_cache.put("key", b"payload")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(only_file(folder).stat().st_mode) == 0o600


def flip(position):
    def damage(content):
        return content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :]

    return damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda c: b"",
        lambda c: c[:10],
        lambda c: c[:-1],
        lambda c: c + b"x",
        flip(0),
        flip(25),  # key
        flip(60),  # checksum
        flip(85),  # size
        flip(-2),  # payload
        lambda c: bytes(len(c)),
    ],
)
def test_damaged_entries_are_ignored_and_written_anew(folder, damage):
    disk_cache.put("key", b"some payload")
    path = only_file(folder)
    path.write_bytes(damage(path.read_bytes()))
    assert disk_cache.get("key") is None
    disk_cache.put("key", b"some payload")
    assert disk_cache.get("key") == b"some payload"


def test_entry_under_another_name_is_ignored(folder):
    disk_cache.put("key", b"payload")
    path = only_file(folder)
    disk_cache.put("victim", b"right")
    (victim,) = set(folder.iterdir()) - {path}
    os.replace(path, victim)
    assert disk_cache.get("victim") is None


def test_files_that_others_could_have_written_are_ignored(folder):
    disk_cache.put("key", b"payload")
    path = only_file(folder)
    path.chmod(0o622)
    assert disk_cache.get("key") is None
    path.chmod(0o600)
    assert disk_cache.get("key") == b"payload"
    moved = path.with_name("elsewhere")
    path.rename(moved)
    path.symlink_to(moved)
    assert disk_cache.get("key") is None
    if os.geteuid() == 0:
        path.unlink()
        moved.rename(path)
        os.chown(path, 12345, -1)
        assert disk_cache.get("key") is None
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") == b"payload" and path.stat().st_uid == 0


def test_a_folder_in_place_of_an_entry(folder):
    disk_cache.put("key", b"payload")
    path = only_file(folder)
    path.unlink()
    path.mkdir()
    assert disk_cache.get("key") is None
    disk_cache.put("key", b"payload")
    assert disk_cache.get("key") is None
    assert [p.name for p in folder.iterdir()] == [path.name]  # no temporary file stays


@pytest.mark.parametrize("where", ["/dev/null/cache", "/proc/no such folder", "file"])
def test_works_without_a_folder(tmp_path, where, capsys):
    if where == "file":
        where = str(tmp_path / "file")
        open(where, "w").close()
    with flags.CACHE_DIR(where):
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") is None and disk_cache.entries() == [] and disk_cache.clear() == 0
        assert capsys.readouterr().err == ""
        with flags.LOG("retrace,cache"):
            disk_cache.put("key", b"payload")
            disk_cache.put("key", b"payload")
        assert capsys.readouterr().err.count("[cache] works without") == 1
        (y,) = cpu.load(plus_one()).run([np.zeros(3, np.float32)])
        np.testing.assert_array_equal(y, np.ones(3))


def test_read_only_folder(tmp_path):
    if os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    tmp_path.chmod(0o500)
    with flags.CACHE_DIR(str(tmp_path)):
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") is None and not disk_cache.stat().writable


def test_switched_off(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with flags.CACHE_DIR("off"):
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") is None and disk_cache.clear() == 0
        assert disk_cache.stat() == disk_cache.Stat(None, 0, 0, disk_cache.limit(), False, "switched off")
    assert list(tmp_path.iterdir()) == []


def test_default_folder(monkeypatch, tmp_path):
    with flags.CACHE_DIR(""):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert disk_cache.folder() == str(tmp_path / "hybridflow")
        monkeypatch.setenv("XDG_CACHE_HOME", "relative")
        monkeypatch.setenv("HOME", str(tmp_path))
        assert disk_cache.folder() == str(tmp_path / ".cache" / "hybridflow")
    with flags.CACHE_DIR("~/mine"):
        assert disk_cache.folder() == str(tmp_path / "mine" / OWN)


@pytest.mark.parametrize("chosen", ["", "~/mine", "~no such user/mine"])
@pytest.mark.parametrize("home", ["missing", "file", "", "relative", "/proc/no such home", "other user's"])
def test_where_there_is_no_home_nothing_is_kept(monkeypatch, tmp_path, home, chosen):
    """Service accounts have /nonexistent for a home; nobody makes it."""
    (tmp_path / "file").touch()
    (tmp_path / "other user's").mkdir()
    if home == "other user's":
        if os.geteuid() != 0 or chosen:
            pytest.skip("root alone is not itself in another's home")
        os.chown(tmp_path / home, 12345, -1)
    before = sorted(tmp_path.iterdir())
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", home if home in ("", "relative") or home.startswith("/") else str(tmp_path / home))
    with flags.CACHE_DIR(chosen):
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") is None and disk_cache.entries() == [] and disk_cache.clear() == 0
        stat = disk_cache.stat()
        assert not stat.writable and stat.problem
    assert sorted(tmp_path.iterdir()) == before and not (tmp_path / "missing").exists()


def test_a_cache_folder_of_the_user_that_is_not_there(monkeypatch, tmp_path):
    """One level is made, not what would be a home."""
    with flags.CACHE_DIR(""):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home" / "cache"))
        assert disk_cache.folder() is None
        (tmp_path / "home").mkdir()
        disk_cache.put("key", b"payload")
        assert disk_cache.get("key") == b"payload" and (tmp_path / "home" / "cache" / "hybridflow").is_dir()


@pytest.mark.parametrize("fault", ["group", "everybody", "other user", "link of other user", "file"])
def test_a_folder_that_others_could_have_filled_is_not_used(folder, fault, capsys):
    disk_cache.put("key", b"payload")
    elsewhere = folder.with_name("elsewhere")
    if fault in ("group", "everybody"):
        folder.chmod(0o770 if fault == "group" else 0o707)
    elif fault == "file":
        folder.rename(elsewhere)
        folder.touch()
    elif os.geteuid() != 0:
        pytest.skip("only root gives files away")
    elif fault == "other user":
        os.chown(folder, 12345, -1)
    else:
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere)
        assert disk_cache.get("key") == b"payload"  # the user's own link
        os.chown(folder, 12345, -1, follow_symlinks=False)
    there = sorted(os.walk(folder.parent))
    for _ in range(2):
        assert disk_cache.get("key") is None and disk_cache.entries() == [] and disk_cache.clear() == 0
        disk_cache.put("other", b"payload")
    assert sorted(os.walk(folder.parent)) == there
    said = capsys.readouterr().err
    assert said.count("[cache] works without") == (fault != "file")
    stat = disk_cache.stat()
    assert not stat.writable and stat.problem and stat.folder == str(folder)


def test_entries_with_other_names_elsewhere_are_ignored(folder, tmp_path):
    """A file that this user owns, but somebody else wrote, can be linked into a folder."""
    disk_cache.put("key", b"payload")
    path = only_file(folder)
    os.link(path, tmp_path / "download")
    assert disk_cache.get("key") is None
    disk_cache.put("key", b"new")
    assert disk_cache.get("key") == b"new" and path.stat().st_nlink == 1 == (tmp_path / "download").stat().st_nlink


def test_the_folder_that_is_named_may_hold_other_things(tmp_path):
    """A temporary folder, a project: nothing of it is touched, however old it is."""
    files = [tmp_path / name for name in ("thesis.tmp", "entry.hfc", f"{'a' * 64}.hfc", f"{'b' * 64}.12345678.tmp")]
    for path in files:
        path.write_text("three years")
        os.utime(path, (1, 1))
    with flags.CACHE_DIR(str(tmp_path)):
        cpu.load(plus_one()).run([np.zeros(3, np.float32)])
        assert len(disk_cache.entries()) > 0 and disk_cache.clear() > 0
    assert [path.read_text() for path in files] == ["three years"] * 4
    assert {path.name for path in tmp_path.iterdir()} == {OWN, *(path.name for path in files)}


def test_stat_entries_and_clear(folder):
    assert disk_cache.stat() == disk_cache.Stat(str(folder), 0, 0, disk_cache.limit(), True, None)
    for k in range(3):
        disk_cache.put(f"key {k}", bytes(1000))
        os.utime(sorted(folder.iterdir(), key=os.path.getmtime)[-1], (k, k))
    found = disk_cache.entries()
    assert [e.used for e in found] == [0, 1, 2] and all(e.bytes > 1000 for e in found)
    status = disk_cache.stat()
    assert status.entries == 3 and status.bytes == sum(e.bytes for e in found)
    (folder / "notes.txt").write_text("the user's own")
    assert disk_cache.clear() == 3
    assert disk_cache.entries() == [] and (folder / "notes.txt").exists()


def test_least_recently_used_go_first(folder, monkeypatch):
    disk_cache.put("key", bytes(900))
    one = disk_cache.stat().bytes  # on this file system
    disk_cache.clear()
    monkeypatch.setattr(flags.CACHE_LIMIT, "value", 10 * one)
    for k in range(9):
        disk_cache.put(f"key {k}", bytes(900))
        for path in folder.iterdir():
            if os.path.getmtime(path) > 1e6:
                os.utime(path, (1000 + k, 1000 + k))
    assert disk_cache.get("key 0") is not None  # used now
    for k in range(9, 12):
        disk_cache.put(f"key {k}", bytes(900))
    kept = {k for k in range(12) if disk_cache.get(f"key {k}") is not None}
    assert {0, 11} <= kept and not {1, 2} & kept
    assert disk_cache.stat().bytes <= 10 * one


def test_left_over_temporary_files_go(folder):
    folder.mkdir(mode=0o700, parents=True)
    old, new = (folder / f"{digit * 64}.a_1bcdef.tmp" for digit in "ab")
    foreign = [
        folder / "thesis.tmp",
        folder / f"{'a' * 63}.a_1bcdef.tmp",
        folder / "notes.hfc",
        folder.parent / old.name,
    ]
    for path in (old, new, *foreign):
        path.write_text("x")
        os.utime(path, (1, 1))
    (folder / f"{'c' * 64}.hfc").mkdir()
    os.utime(new)
    assert disk_cache.entries() == [] and not old.exists()
    disk_cache.put("key", b"payload")
    assert disk_cache.clear() == 1
    assert all(path.exists() for path in (new, *foreign))


def test_threads_share_a_folder(folder):
    failures = []

    def work(k):
        try:
            for i in range(20):
                disk_cache.put(f"key {i}", bytes([i]) * 5000)
                assert disk_cache.get(f"key {i}") == bytes([i]) * 5000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(disk_cache.entries()) == 20


def test_machine_code_is_found_again(folder, monkeypatch):
    first = cpu.load(plus_one()).run([np.zeros(3, np.float32)])
    code_store.forget()
    monkeypatch.setattr(machine_code, "compile_image", lambda *_: pytest.fail("compiled again"))
    again = cpu.load(plus_one()).run([np.zeros(3, np.float32)])
    np.testing.assert_array_equal(first, again)


def test_second_process_compiles_nothing(folder):
    code = """
import numpy as np
from hybridflow.runtime import cpu
from hybridflow.runtime.machine import machine_code
from tests.support.runtime_programs import plus_one
compiled = []
real = machine_code.compile_image
machine_code.compile_image = lambda *a, **k: compiled.append(1) or real(*a, **k)
assert cpu.load(plus_one()).run([np.ones(2, np.float32)])[0].tolist() == [2, 2]
print(len(compiled))
"""
    environment = {**os.environ, "HF_CACHE_DIR": str(folder.parent)}
    for expected in ("2", "0"):  # the program and the pool, then neither
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, cwd=ROOT
        )
        assert done.stdout.strip() == expected


@pytest.fixture
def loaded_later(monkeypatch):
    """All that lies in files was there before this process began."""
    monkeypatch.setattr(disk_cache, "_began", float("inf"))


def test_code_that_was_written_since_is_not_what_runs_here(tmp_path, monkeypatch):
    """After an upgrade below a running process, what that makes must not be found by those that run the new code."""
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(disk_cache, "_began", time.time() + 1)
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) is not None
    old = time.time() - 1000
    monkeypatch.setattr(disk_cache, "_began", time.time() - 500)
    os.utime(tmp_path / "a.py", (old, old))  # as installers do that keep the times of files
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) is None


def test_fingerprint_follows_the_sources(tmp_path, loaded_later):
    (tmp_path / "a.py").write_text("x = 1")
    first = disk_cache.fingerprint.__wrapped__(str(tmp_path))
    (tmp_path / "notes.txt").write_text("not code")
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) == first
    (tmp_path / "a.py").write_text("x = 2")
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) != first


def test_fingerprint_of_byte_code(tmp_path, loaded_later):
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.cpython-311.pyc").write_bytes(b"made of a source that is not there")
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) is None
    (tmp_path / "a.pyc").write_bytes(b"one")
    first = disk_cache.fingerprint.__wrapped__(str(tmp_path))
    (tmp_path / "a.pyc").write_bytes(b"two")
    assert None is not first != disk_cache.fingerprint.__wrapped__(str(tmp_path))
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path / "nowhere")) is None


def test_fingerprint_inside_a_zip_file(tmp_path, loaded_later):
    found = []
    for content in ("x = 1", "x = 2"):
        with zipfile.ZipFile(tmp_path / "all.zip", "w") as file:
            file.writestr("package/a.py", content)
            file.writestr("other/b.py", "")
        inside = str(tmp_path / "all.zip" / "package")
        found.append(disk_cache.fingerprint.__wrapped__(inside))
        assert disk_cache.fingerprint.__wrapped__(inside + "2") is None
    assert None not in found and found[0] != found[1]


def test_versions_do_not_share_a_fingerprint(tmp_path, monkeypatch, loaded_later):
    (tmp_path / "a.py").write_text("x = 1")
    first = disk_cache.fingerprint.__wrapped__(str(tmp_path))
    monkeypatch.setattr("hybridflow.__version__", "another")
    assert disk_cache.fingerprint.__wrapped__(str(tmp_path)) != first


def test_without_sources_native_modules_are_compiled_each_time(folder, monkeypatch):
    monkeypatch.setattr(native_functions, "source", lambda: None)
    for _ in range(2):
        addresses = native_functions.load(lambda: f"define i32 @{NAME}() {{ ret i32 7 }}", (), (NAME,), {})
        assert ctypes.CFUNCTYPE(ctypes.c_int32)(addresses[NAME])() == 7
    assert disk_cache.entries() == []


NAME = "seven_of_the_test"


def entry_path(folder, key):
    return folder / (hashlib.sha256(key.encode()).hexdigest() + ".hfc")


def test_pipes_sockets_and_folders_are_no_entries(folder):
    folder.mkdir(mode=0o700, parents=True)
    paths = [entry_path(folder, f"key {k}") for k in range(4)]
    os.mkfifo(paths[0])
    paths[1].mkdir()
    with socket.socket(socket.AF_UNIX) as bound:
        here = os.getcwd()
        os.chdir(folder)  # the path of a socket must be short
        bound.bind(paths[2].name)
        os.chdir(here)
        paths[3].symlink_to("/dev/zero")
        code = (
            "from hybridflow.runtime.machine import disk_cache; print([disk_cache.get(f'key {k}') for k in range(4)])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "HF_CACHE_DIR": str(folder.parent)},
            capture_output=True,
            text=True,
            cwd=ROOT,
            timeout=900,  # a reader that waits for a writer of the pipe waits for good
        )
    assert done.stdout.strip() == "[None, None, None, None]", done.stderr
    disk_cache.put("key 0", b"payload")
    assert disk_cache.get("key 0") == b"payload"  # in place of the pipe


@pytest.mark.parametrize("payload", [b"not an object file", b""])
def test_an_entry_that_does_not_link_is_made_anew(folder, payload):
    program = plus_one()
    key = code_store.key_of(program.text, program.target, [program.entry])
    disk_cache.put(key, payload)
    (y,) = cpu.load(program).run([np.zeros(3, np.float32)])
    np.testing.assert_array_equal(y, np.ones(3))
    assert disk_cache.get(key) not in (None, payload)


def test_an_entry_of_other_code_is_made_anew(folder):
    program = plus_one()
    key = code_store.key_of(program.text, program.target, [program.entry])
    other = program.text.replace(program.entry, "something_else")
    disk_cache.put(key, machine_code.compile_object(other, program.target))
    assert cpu.load(program).run([np.zeros(3, np.float32)])[0].tolist() == [1, 1, 1]


def test_the_limit_counts_what_files_take(folder):
    for k in range(5):
        disk_cache.put(f"key {k}", b"x")
    on_disk = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
    assert disk_cache.stat().bytes in (on_disk, sum(path.stat().st_size for path in folder.iterdir()))
    before = hf.config.cache_limit()
    try:
        assert hf.config.cache_limit(3 * on_disk // 5) == disk_cache.stat().limit
        disk_cache.put("key 5", b"x")
        assert 1 <= len(disk_cache.entries()) <= 3 and disk_cache.get("key 5") == b"x"
        for bad in (-1, 1.5, True, "1"):
            with pytest.raises(hf.errors.ArgumentError, match="number of bytes"):
                hf.config.cache_limit(bad)
    finally:
        hf.config.cache_limit(before)
