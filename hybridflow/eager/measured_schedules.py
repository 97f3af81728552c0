"""Which schedules kernels have on a target: those that ``f.tune`` has measured to be best, in a file beside the store's
entries, one for each target.

All schedules of a kernel give the same bits, so a file that is old, or another machine's, costs time and nothing else.
Where there is no folder to write to, the process remembers.
"""

from __future__ import annotations

import contextvars
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hybridflow import flags
from hybridflow.compiler.loops.schedule_choice import Choices
from hybridflow.compiler.target import Target
from hybridflow.core.locked_files import locked_folder
from hybridflow.runtime.machine import disk_cache

_VERSION = 1

_remembered: dict[str, dict[str, str]] = {}  # by name of the file: what this process has measured
_read: dict[str, tuple[tuple[int, int, int], dict[str, str]]] = {}  # by path: what is there, and of which file
_forced: contextvars.ContextVar[int | None] = contextvars.ContextVar("forced", default=None)


def choices_for(target: Target) -> Choices:
    """How schedules of programs for a target are chosen."""
    forced = _forced.get()
    if forced is not None:
        return Choices(forced)
    number = flags.SCHEDULE.value
    return Choices(number or None, {} if number else measured(target))


@contextmanager
def forced(number: int) -> Iterator[None]:
    """Programs that the block's own thread makes have the schedules of that number, and say how many there are."""
    token = _forced.set(number)
    try:
        yield
    finally:
        _forced.reset(token)


def measured(target: Target) -> Mapping[str, str]:
    """By a kernel's facts, the schedule that was measured to be best."""
    name = file_name(target)
    where = disk_cache.usable()
    if where is None:
        return _remembered.get(name, {})
    return _known(where, name)


def _known(where: str, name: str) -> dict[str, str]:
    """What a file in a folder holds, and what this process remembers where there is none."""
    path = os.path.join(where, name)
    try:
        status = os.stat(path)
    except OSError:
        return _remembered.get(name, {})
    of_file = status.st_mtime_ns, status.st_ino, status.st_size  # each time that it is written it is another one
    entry = _read.get(path)
    if entry is None or entry[0] != of_file:
        entry = _read[path] = of_file, _parsed(disk_cache.read(path))
    return entry[1]


def keep(target: Target, schedules: Mapping[str, str]) -> str | None:
    """Remember schedules by their kernels' facts, beside those that are known, by other processes too; the file's path,
    None where there is no folder for it."""
    name, where = file_name(target), disk_cache.usable()
    if where is None:
        _remembered[name] = {**_remembered.get(name, {}), **schedules}
        return None
    with locked_folder(where):
        # Read anew: a file that took the place of another within one tick of the clock may have the number of that one.
        there = disk_cache.read(os.path.join(where, name))
        known = _remembered[name] = {**(_parsed(there) if there else _remembered.get(name, {})), **schedules}
        content = {"version": _VERSION, "cpu": target.cpu, "schedules": dict(sorted(known.items()))}
        written = disk_cache.write(where, name, [json.dumps(content, indent=0).encode()], name.partition(".")[0])
    return os.path.join(where, name) if written else None


def file_name(target: Target) -> str:
    """The file of a target: everything that schedules ask of a machine is part of its name."""
    return f"schedules-{hashlib.blake2b(repr(target).encode(), digest_size=12).hexdigest()}.json"


def _parsed(file_read: disk_cache.Read | None) -> dict[str, str]:
    """What a file holds; nothing where it is damaged."""
    try:
        content = json.loads(file_read.content) if file_read is not None else {}
        schedules = content["schedules"] if content.get("version") == _VERSION else {}
        return {str(facts): str(schedule) for facts, schedule in schedules.items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}
