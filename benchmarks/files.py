"""Seconds to save and restore a gigabyte of variables, beside those of the same bytes written and read in a plain loop.

    python benchmarks/files.py [--json] [--folder FOLDER] [--bytes N]

The plain loop writes pieces of 4 MiB and flushes them to the disk, as ``dd bs=4M conv=fdatasync`` does; for reading
both begin with nothing of the file in the memory of the system.  They take turns.  "plain read, kept" reads into memory
that is new and is kept, as restoring does: where the machine is a guest of another one that alone may take longer.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import numpy as np

import hybridflow as hf

REPEATS, PIECE, PARTS = 6, 1 << 22, 16


def plain_write(path: Path, content: memoryview) -> None:
    with open(path, "wb", buffering=0) as file:
        for begin in range(0, len(content), PIECE):
            file.write(content[begin : begin + PIECE])
        os.fdatasync(file.fileno())


def plain_read(path: Path) -> None:
    piece = bytearray(PIECE)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(piece):
            pass


def plain_read_kept(path: Path, sizes: list[int]) -> list[np.ndarray]:
    kept = []
    with open(path, "rb", buffering=0) as file:
        for size in sizes:
            content = np.empty(size, np.uint8)
            for begin in range(0, size, PIECE):
                file.readinto(memoryview(content)[begin : begin + PIECE])
            kept.append(content)
    return kept


def forget(path: Path) -> None:
    """Take a file out of the memory of the system."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(handle)


def seconds(run: Callable[[], object]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def measured(folder: Path, size: int) -> dict[str, list[float]]:
    rows = np.random.default_rng(0).standard_normal(size // 4, np.float32)
    variables = [hf.Variable(part) for part in np.split(rows, PARTS)]
    checkpoint = hf.checkpoint.Checkpoint(some=variables)
    plain, saved, content = folder / "plain", folder / "saved.safetensors", memoryview(rows).cast("B")
    found: dict[str, list[float]] = {
        name: [] for name in ("plain write", "save", "plain read", "plain read, kept", "restore")
    }
    sizes = [rows.nbytes // PARTS] * PARTS
    writing: dict[str, tuple[Path, Callable[[], object]]] = {
        "plain write": (plain, lambda: plain_write(plain, content)),
        "save": (saved, lambda: checkpoint.write(saved)),
    }
    reading: dict[str, Callable[[], object]] = {
        "plain read": lambda: plain_read(plain),
        "plain read, kept": lambda: plain_read_kept(plain, sizes),
        "restore": lambda: checkpoint.restore(saved),
    }
    for turn in range(REPEATS):
        for name, (path, run) in in_turn(writing, turn):
            path.unlink(missing_ok=True)
            found[name].append(seconds(run))
            forget(path)  # else the next one would have less memory that the system has at hand
        for name, run in in_turn(reading, turn):
            found[name].append(seconds(run))
            forget(plain)
            forget(saved)
    return found


def in_turn(runs: dict[str, Any], turn: int) -> list[tuple[str, Any]]:
    """The runs, each first once in as many turns: what runs first after others may be faster or slower for it."""
    rows = list(runs.items())
    return rows[turn % len(rows) :] + rows[: turn % len(rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", default=None)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = measured(Path(folder), given.bytes)
    rows = {name: {"median_s": statistics.median(times), "all_s": times} for name, times in found.items()}
    if given.json:
        print(json.dumps(rows, indent=2))
        return
    for name, times in found.items():
        rate = given.bytes / statistics.median(times) / 1e9
        print(
            f"{name:18}{rate:7.2f} GB/s ({given.bytes / max(times) / 1e9:.2f} to {given.bytes / min(times) / 1e9:.2f})"
        )
    for plain, mine in (("plain write", "save"), ("plain read", "restore"), ("plain read, kept", "restore")):
        ratio = statistics.median(a / b for a, b in zip(found[plain], found[mine]))
        print(f"{mine}: {ratio:.2f} of the rate of {plain!r} (median of the pairs)")


if __name__ == "__main__":
    main()
