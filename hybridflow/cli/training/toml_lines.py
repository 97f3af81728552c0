"""On which line of a TOML text each value stands, which ``tomllib`` does not say."""

from __future__ import annotations

import bisect
import re

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}\n#]+")
_STRINGS = tuple(
    (quote, re.compile(pattern, re.DOTALL))
    for quote, pattern in (
        ('"""', r'"""(?:\\.|[^\\])*?"{3,5}(?!")'),
        ("'''", r"'''.*?'{3,5}(?!')"),
        ('"', r'"(?:\\.|[^"\\])*"'),
        ("'", r"'[^']*'"),
    )
)
_ESCAPED = re.compile(r"\\.")


def lines_of(text: str) -> dict[Path, int]:
    """The line of each key and each element of an array, by its path.  ``text`` is one that ``tomllib`` reads."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    """Walks through a text that is known to be right."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._ends = [match.start() for match in re.finditer("\n", text)]
        self._counts: dict[Path, int] = {}  # of arrays of tables: their elements so far
        self.lines: dict[Path, int] = {}

    def document(self) -> None:
        table: Path = ()
        while True:
            self._skip()
            if self._at >= len(self._text):
                return
            if self._text.startswith("[", self._at):
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Path:
        is_array = self._text.startswith("[[", self._at)
        line = self._line()
        self._at += 2 if is_array else 1
        *parents, name = self._keys()
        self._skip()
        self._at += 2 if is_array else 1
        path: Path = (*self._within((), parents), name)
        if is_array:
            self.lines.setdefault(path, line)
            self._counts[path] = self._counts.get(path, -1) + 1
        path = self._within(path[:-1], [name])
        self.lines.setdefault(path, line)
        return path

    def _within(self, path: Path, names: list[str]) -> Path:
        """The path of a table, in the last element of arrays of tables."""
        for name in names:
            path = (*path, name)
            if path in self._counts:
                path = (*path, self._counts[path])
        return path

    def _pair(self, table: Path) -> None:
        line = self._line()
        path = table
        for name in self._keys():
            path = (*path, name)
            self.lines.setdefault(path, line)
        self._skip()
        self._at += 1  # the equals sign
        self._skip()
        self._value(path)

    def _value(self, path: Path) -> None:
        opening = self._text[self._at]
        if opening == "[":
            self._elements(path)
        elif opening == "{":
            self._at += 1
            while self._more("}"):
                self._pair(path)
        elif opening in "\"'":
            self._string()
        else:
            match = _SCALAR.match(self._text, self._at)
            self._at = match.end() if match else self._at + 1

    def _elements(self, path: Path) -> None:
        self._at += 1
        count = 0
        while self._more("]"):
            self.lines[(*path, count)] = self._line()
            self._value((*path, count))
            count += 1

    def _more(self, closing: str) -> bool:
        """Whether something stands before the closing bracket; it, or a comma, is passed."""
        self._skip()
        if self._text.startswith(",", self._at):
            self._at += 1
            self._skip()
        if self._at >= len(self._text) or self._text[self._at] == closing:
            self._at += 1
            return False
        return True

    def _keys(self) -> list[str]:
        names = []
        while True:
            self._skip()
            if self._text[self._at] in "\"'":
                raw = self._string()
                names.append(raw[1:-1] if raw[0] == "'" else _unescaped(raw[1:-1]))
            else:
                match = _BARE_KEY.match(self._text, self._at)
                if match is None:
                    raise ValueError(f"no key at {self._at}")
                names.append(match.group())
                self._at = match.end()
            self._skip()
            if not self._text.startswith(".", self._at):
                return names
            self._at += 1

    def _string(self) -> str:
        for quote, pattern in _STRINGS:
            match = pattern.match(self._text, self._at) if self._text.startswith(quote, self._at) else None
            if match is not None:
                self._at = match.end()
                return match.group()
        raise ValueError(f"no text at {self._at}")

    def _skip(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _line(self) -> int:
        return bisect.bisect_left(self._ends, self._at) + 1


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: {'\\"': '"', "\\\\": "\\"}.get(match.group(), match.group()), text)
