"""RE2's regular expressions, which TensorFlow's functions take, as Python's.

Texts are taken as UTF-8; bytes that are none match as single characters.
"""

from __future__ import annotations

import functools
import re
import sys
import unicodedata
from collections.abc import Callable

from hybridflow.errors import ArgumentError

_POSIX = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": "\\x00-\\x7f", "blank": "\\t ", "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ", "upper": "A-Z", "word": "0-9A-Za-z_", "xdigit": "0-9A-Fa-f",
}  # fmt: skip
_BLOCKS = {
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02b8\u1e00-\u1eff",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff", "Cyrillic": "\u0400-\u052f", "Hebrew": "\u0591-\u05f4",
    "Arabic": "\u0600-\u06ff\u0750-\u077f", "Devanagari": "\u0900-\u097f", "Thai": "\u0e01-\u0e5b",
    "Han": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"
    "\U00020000-\U0002fa1d",
    "Hiragana": "\u3041-\u309f", "Katakana": "\u30a1-\u30ff\u31f0-\u31ff\uff66-\uff9d",
    "Hangul": "\u1100-\u11ff\uac00-\ud7a3",
}  # fmt: skip


_SPACES = "\\t\\n\\f\\r "


def text_of(value: bytes) -> str:
    """Bytes as a text; those that are no UTF-8 come back by ``bytes_of``."""
    return value.decode("utf-8", "surrogateescape")


def bytes_of(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


@functools.lru_cache(64)
def _of_category(name: str) -> str:
    """The characters of one of Unicode's categories, as the inside of a class."""
    if name in _BLOCKS:
        return _BLOCKS[name]
    parts, start = [], None
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name)
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            parts.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(parts)


def _category(pattern: str, at: int) -> tuple[str, int]:
    """The class that ``\\p`` at ``at`` begins, and where it ends."""
    if pattern[at + 2 : at + 3] == "{":
        end = pattern.find("}", at)
        name = pattern[at + 3 : end]
    else:
        name, end = pattern[at + 2 : at + 3], at + 2
    if end < 0 or not name:
        raise re.error("invalid character class range")
    return name, end + 1


def _converted(pattern: str) -> str:
    out, at, in_class, multiline = [], 0, False, False
    while at < len(pattern):
        c = pattern[at]
        if c == "\\":
            following = pattern[at + 1 : at + 2]
            if following in ("p", "P"):
                name, end = _category(pattern, at)
                negated = (following == "P") != name.startswith("^")
                inside = _of_category(name.lstrip("^"))
                if in_class and negated:
                    inside = _complement(inside)
                    out.append(inside)
                else:
                    out.append(inside if in_class else f"[{'^' if negated else ''}{inside}]")
                at = end
                continue
            if following == "Q" and not in_class:
                end = pattern.find("\\E", at)
                end = len(pattern) if end < 0 else end
                out.append(re.escape(pattern[at + 2 : end]))
                at = end + 2
                continue
            if following in ("s", "S"):  # without the vertical tab, which Python has among them
                inside = _SPACES if following == "s" else _complement(_SPACES)
                out.append(inside if in_class else f"[{'' if following == 's' else '^'}{_SPACES}]")
                at += 2
                continue
            if following.isdigit() and following != "0":
                raise re.error(f"invalid escape sequence: \\{following}")
            out.append({"z": r"\Z", "C": r"(?s:.)", "x": _hex(pattern, at)}.get(following, "\\" + following))
            at += len(_hex_raw(pattern, at)) if following == "x" else 2
            continue
        if in_class:
            if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
                name = pattern[at + 2 : end]
                if name.lstrip("^") not in _POSIX:
                    raise re.error(f"invalid character class range: [:{name}:]")
                inside = _POSIX[name.lstrip("^")]
                out.append(_complement(inside) if name.startswith("^") else inside)
                at = end + 2
                continue
            if c == "]":
                in_class = False
            elif c in "[&~|" or (
                c == "-" and out[-1:] and pattern[at + 1 : at + 2] == "-"
            ):  # which Python may take for operators on classes
                out.append("\\")
        elif c == "[":
            in_class = True
            out.append("[")
            at += 1
            if pattern[at : at + 1] == "^":
                out.append("^")
                at += 1
            if pattern[at : at + 1] == "]":
                out.append("\\]")
                at += 1
            continue
        elif c == "(" and pattern.startswith("(?", at):
            kind = pattern[at + 2 : at + 4]
            if kind[:1] in ("=", "!", ">", "(", "#") or kind in ("<=", "<!", "P=", "P>"):
                raise re.error(f"invalid perl operator: (?{kind[:1]}")
            flags = re.match(r"\(\?([imsU]+)", pattern[at:])
            if flags and "m" in flags[1]:
                multiline = True
            if kind[:1] == "<":
                out.append("(?P")
                at += 2
                continue
        elif c == "$" and not multiline:
            out.append(r"\Z")
            at += 1
            continue
        out.append(c)
        at += 1
    return "".join(out)


def _hex_raw(pattern: str, at: int) -> str:
    outcome = re.match(r"\\x(\{[0-9A-Fa-f]+\}|[0-9A-Fa-f]{2})", pattern[at:])
    return outcome[0] if outcome else "\\x"


def _hex(pattern: str, at: int) -> str:
    raw = _hex_raw(pattern, at)
    return f"\\U{int(raw[2:].strip('{}'), 16):08x}" if len(raw) > 2 else raw


def _complement(inside: str) -> str:
    kept = re.compile(f"[{inside}]")
    parts, start = [], None
    for code in range(sys.maxunicode + 2):
        is_out = code <= sys.maxunicode and not kept.match(chr(code))
        if is_out and start is None:
            start = code
        elif not is_out and start is not None:
            parts.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(parts)


@functools.lru_cache(256)
def compiled(pattern: bytes) -> re.Pattern[str]:
    """A regular expression of RE2's.  Raises ArgumentError for one that is none."""
    text = text_of(pattern)
    try:
        flags, body = re.ASCII, _converted(text)
        lead = re.match(r"\(\?([ims]+)\)", body)
        while lead:  # flags in front are of the whole
            flags |= functools.reduce(lambda a, b: a | b, [getattr(re, f.upper()) for f in lead[1]])
            body = body[lead.end() :]
            lead = re.match(r"\(\?([ims]+)\)", body)
        if flags & re.IGNORECASE:
            flags &= ~re.ASCII
        return re.compile(body, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ArgumentError("strings.regex", f"Invalid pattern: {text}, error: {error}.") from None


@functools.lru_cache(256)
def rewriting(pattern: bytes, rewrite: bytes) -> Callable[[re.Match[str]], str] | None:
    """What a match becomes: ``\\0`` to ``\\9`` are its groups; None where there is no such group."""
    groups, text, at = compiled(pattern).groups, text_of(rewrite), 0
    parts: list[str | int] = []
    while at < len(text):
        if text[at] != "\\":
            parts.append(text[at])
            at += 1
            continue
        following = text[at + 1 : at + 2]
        if following == "\\":
            parts.append("\\")
        elif following.isdigit() and int(following) <= groups:
            parts.append(int(following))
        else:
            return None
        at += 2
    return lambda match: "".join([(match[p] or "") if isinstance(p, int) else p for p in parts])


def replaced(text: bytes, pattern: bytes, rewrite: bytes, everywhere: bool) -> bytes:
    """The text with what matches replaced.  An empty match right behind another match is none."""
    search, converted = compiled(pattern), rewriting(pattern, rewrite)
    if converted is None:  # as RE2 has it
        return text
    supplied = text_of(text)
    if not everywhere:
        return bytes_of(search.sub(converted, supplied, count=1))
    parts, at, last = [], 0, -1
    for match in search.finditer(supplied):
        start, end = match.span()
        if start == end == last:
            continue
        parts += [supplied[at:start], converted(match)]
        at = last = end
    return bytes_of("".join([*parts, supplied[at:]]))
