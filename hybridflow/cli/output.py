"""What commands write: tables, colours where a terminal wants them, progress, JSON, files."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from hybridflow.errors import ArgumentError

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}


def colour(text: str, style: str) -> str:
    """``text`` in a style, where standard output is a terminal and NO_COLOR is not set."""
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Aligned columns: the first to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(columns, *rows)]
    lines = []
    for line in (columns, *rows):
        cells = [text.rjust(width) if k else text.ljust(width) for k, (text, width) in enumerate(zip(line, widths))]
        lines.append("  ".join(cells).rstrip())
    lines[0] = colour(lines[0], "bold")
    return "\n".join(lines)


def progress(text: str) -> None:
    """Show what is being done, on a terminal only; an empty text wipes it."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


def print_json(value: object) -> None:
    print(json.dumps(value, indent=1))


def seconds(value: float) -> str:
    """A duration with three digits: ``812 ns``, ``4.90 ms``."""
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if value * scale >= 0.9995:
            return f"{_digits(value * scale)} {unit}"
    return f"{value * 1e9:.0f} ns"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


class OutputFile:
    """A file that appears whole or not at all: written beside its place and moved there at the end.

    Opening fails at once where the place cannot be written, before any work is done for it.
    """

    def __init__(self, path: str, stage: str) -> None:
        self._path = os.path.abspath(path)
        if os.path.isdir(self._path):
            raise ArgumentError(stage, f"--output {path} is a folder; give a file.", "")
        try:
            handle, self._temporary = tempfile.mkstemp(dir=os.path.dirname(self._path), prefix=".hybridflow-")
        except OSError as error:
            reason = error.strerror or error
            raise ArgumentError(stage, f"--output {path} cannot be written: {reason}. Choose another.", "") from None
        self._file = open(handle, "wb")  # noqa: SIM115 (closed in __exit__)

    def __enter__(self) -> OutputFile:
        return self

    def write_json(self, value: object) -> None:
        self._file.write(f"{json.dumps(value, indent=1)}\n".encode())
        self._finish()

    def write_arrays(self, arrays: Mapping[str, Any]) -> None:
        """As a .npz file; np.savez has no array named "file"."""
        with zipfile.ZipFile(self._file, "w") as archive:
            for name, value in arrays.items():
                array = np.asarray(value)
                with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                    np.lib.format.write_array(member, array.astype(str) if array.dtype.kind == "O" else array)
        self._finish()

    def _finish(self) -> None:
        self._file.close()
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(self._temporary, 0o666 & ~mask)  # temporary files are private, results need not be
        os.replace(self._temporary, self._path)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        if os.path.exists(self._temporary):
            os.unlink(self._temporary)
