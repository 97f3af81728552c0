"""``hybridflow cache ls | stat | clear``: the machine code kept on disk."""

from __future__ import annotations

import argparse
import dataclasses
import time
from typing import Any

from hybridflow.cli import output
from hybridflow.runtime.machine import disk_cache


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "cache", help="the machine code kept on disk", description="List, measure or empty the cache of machine code."
    )
    parser.add_argument("action", choices=("ls", "stat", "clear"))
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    {"ls": _ls, "stat": _stat, "clear": _clear}[options.action](options.json)
    return 0


def _ls(as_json: bool) -> None:
    entries = disk_cache.entries()
    if as_json:
        output.print_json([dataclasses.asdict(entry) for entry in entries])
        return
    for entry in entries:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.used))
        print(f"{entry.digest[:16]}  {entry.bytes:>10}  {used}  {entry.label}".rstrip())


def _stat(as_json: bool) -> None:
    stat = disk_cache.stat()
    if as_json:
        output.print_json(dataclasses.asdict(stat))
    else:
        print(describe(stat))


def describe(stat: disk_cache.Stat) -> str:
    """The state of the cache in one line."""
    if stat.folder is None:
        return "switched off" if stat.problem == "switched off" else f"off: {stat.problem}. HF_CACHE_DIR names another"
    state = "" if stat.problem is None else f". Nothing more is kept: {stat.problem}"
    return f"{stat.folder}: {stat.entries} entries, {stat.bytes >> 10} of {stat.limit >> 10} KiB{state}"


def _clear(as_json: bool) -> None:
    removed = disk_cache.clear()
    if as_json:
        output.print_json({"removed": removed})
    else:
        print(f"{removed} entries removed")
