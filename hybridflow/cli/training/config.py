"""A configuration: the values of a TOML file, the lines on which they stand, and what ``--set`` has put in."""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import Any

from hybridflow.cli.training.toml_lines import Path, lines_of
from hybridflow.errors import ArgumentError

_LIMIT = 1 << 20  # bytes: no file that a person writes is longer


class Config:
    """What a file says, where it says it, and the folder that its paths start from."""

    def __init__(self, file: str, values: dict[str, Any], lines: dict[Path, int | None], stage: str) -> None:
        self.file, self.values, self._lines, self._stage = file, values, lines, stage
        self.folder = os.path.dirname(os.path.abspath(file))

    def error(self, path: Path, text: str) -> ArgumentError:
        """What is wrong with a value: its place stands before the text, the line behind."""
        known = path
        while known and known not in self._lines:
            known = known[:-1]
        line = self._lines.get(known, 1)
        place = f"{shown(path)}: " if path else ""
        if line is None:
            return ArgumentError(self._stage, f"{place}{text} It comes from --set.", "")
        return ArgumentError(self._stage, f"{place}{text}", f"{self.file}:{line}")

    def unknown(self, path: Path, what: str, known: Iterable[str]) -> ArgumentError:
        """A key or name that is not known, with the nearest one that is."""
        return self.error(path, f"{what} is not known; {suggestion(what, known)}")

    def absolute(self, path: str) -> str:
        """A path of the file, which starts from the file's folder."""
        return os.path.normpath(os.path.join(self.folder, os.path.expanduser(path)))

    def put(self, setting: str) -> None:
        """Do what ``--set place=value`` says."""
        key, sign, text = setting.partition("=")
        names: list[str | int] = [int(name) if name.isdecimal() else name for name in key.strip().split(".")]
        if not sign or not all(isinstance(name, int) or re.fullmatch(r"[\w-]+", name) for name in names):
            message = f"--set {setting} says nothing; write --set training.epochs=30."
            raise ArgumentError(self._stage, message, "")
        target: Any = self.values
        for place, name in enumerate(names):
            here = tuple(names[:place])
            is_last = place == len(names) - 1
            if isinstance(target, list):
                if not isinstance(name, int) or name >= len(target):
                    raise self.error(here, f"--set {setting} names no element: there are {len(target)}.")
            elif isinstance(target, dict):
                name = str(name)
                if not is_last:
                    target.setdefault(name, {})
            else:
                raise self.error(here, f"--set {setting} goes into {target!r:.40}, which has no parts.")
            if is_last:
                target[name] = _value(text)
            else:
                target = target[name]
        path = tuple(names)
        for known in [known for known in self._lines if known[: len(path)] == path]:
            del self._lines[known]
        self._lines[path] = None


def load(file: str, settings: Sequence[str], stage: str) -> Config:
    """The configuration of a file.  Raises ArgumentError for what is no TOML, with the line."""
    try:
        with open(file, "rb") as stream:
            data = stream.read(_LIMIT + 1)
    except OSError as error:
        raise ArgumentError(stage, f"{file} cannot be read: {error.strerror or error}.", "") from None
    if len(data) > _LIMIT:
        raise ArgumentError(stage, f"{file} is longer than {_LIMIT:,} bytes; it is no configuration.", "")
    try:
        text = data.decode().replace("\r\n", "\n")
        values = tomllib.loads(text)
        lines = lines_of(text)
    except tomllib.TOMLDecodeError as error:
        message, _, place = str(error).partition(" (at line ")
        line = place.partition(",")[0]
        where = f"{file}:{line if line.isdecimal() else 1}"
        raise ArgumentError(stage, f"this is no TOML: {message}.", where) from None
    except UnicodeDecodeError as error:
        line = str(data.count(b"\n", 0, error.start) + 1)
        raise ArgumentError(stage, "this is no text in UTF-8.", f"{file}:{line}") from None
    except RecursionError:
        raise ArgumentError(stage, "values are nested too deep.", f"{file}:1") from None
    config = Config(file, values, dict(lines), stage)
    for setting in settings:
        config.put(setting)
    return config


def suggestion(name: str, known: Iterable[str]) -> str:
    """The nearest known name, or a few of them."""
    names = sorted(known)
    by_flat = {_flat(each): each for each in names}
    near = difflib.get_close_matches(_flat(name), by_flat, 1, 0.5)
    if near:
        return f"did you mean {by_flat[near[0]]}?"
    return f"there are {', '.join(names)}." if names else "nothing is taken here."


def shown(path: Path) -> str:
    """A path as people write it: ``model.layers[1].Dropout.rate``."""
    text = "".join(f"[{name}]" if isinstance(name, int) else f".{name}" for name in path)
    return text.removeprefix(".")


def _flat(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _value(text: str) -> Any:
    """The value of a ``--set``: as TOML has it, else a text."""
    try:
        return tomllib.loads(f"value = {text.strip()}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text


def dumped(values: dict[str, Any]) -> str:
    """The values as TOML: tables at the top, all else in lines."""
    plain = {name: value for name, value in values.items() if not isinstance(value, dict)}
    parts = ["".join(f"{_key(name)} = {_inline(value)}\n" for name, value in plain.items())]
    for name, value in values.items():
        if isinstance(value, dict):
            lines = "".join(f"{_key(key)} = {_inline(part)}\n" for key, part in value.items())
            parts.append(f"[{_key(name)}]\n{lines}")
    return "\n".join(part for part in parts if part)


def _inline(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)} = {_inline(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return str(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _inline(name)
