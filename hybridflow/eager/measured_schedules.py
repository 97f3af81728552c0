"""Which schedules kernels have on a target: those that ``f.tune`` has measured to be best, in a file beside the store's
entries, one for each target.

All schedules of a kernel give the same bits, so a file that is old, or another machine's, costs time and nothing else.
Where there is no folder to write to, the process remembers.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from hybridflow import flags
from hybridflow.compiler.loops.schedule_choice import Choices
from hybridflow.compiler.target import Target
from hybridflow.runtime.machine import disk_cache

_VERSION = 1

_remembered: dict[str, dict[str, str]] = {}  # by name of the file: what this process has measured
_read: dict[str, tuple[int, dict[str, str]]] = {}  # by path: what is there, and since when
_forced: list[int] = []


def choices_for(target: Target) -> Choices:
    """How schedules of programs for a target are chosen."""
    if _forced:
        return Choices(_forced[-1])
    number = flags.SCHEDULE.value
    return Choices(number or None, {} if number else measured(target))


@contextmanager
def forced(number: int) -> Iterator[None]:
    """Programs that are made inside the block have the schedules of that number, and say how many there are."""
    _forced.append(number)
    try:
        yield
    finally:
        _forced.pop()


def measured(target: Target) -> Mapping[str, str]:
    """By a kernel's facts, the schedule that was measured to be best."""
    name = file_name(target)
    where = disk_cache.usable()
    if where is None:
        return _remembered.get(name, {})
    path = os.path.join(where, name)
    try:
        when = os.stat(path).st_mtime_ns
    except OSError:
        return _remembered.get(name, {})
    entry = _read.get(path)
    if entry is None or entry[0] != when:
        entry = _read[path] = when, _parsed(disk_cache.read(path))
    return entry[1]


def keep(target: Target, schedules: Mapping[str, str]) -> str | None:
    """Remember schedules by their kernels' facts, beside those that are known; the file's path, None where there is
    no folder for it."""
    name = file_name(target)
    known = _remembered[name] = {**measured(target), **schedules}
    where = disk_cache.usable()
    if where is None:
        return None
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
