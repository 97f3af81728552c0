"""Texts as Unicode characters."""

from __future__ import annotations

from hybridflow.errors import ArgumentError

_ENCODINGS = {"UTF-8": "utf-8", "UTF-16-BE": "utf-16-be", "UTF-32-BE": "utf-32-be"}
_OTHERS = {"UTF-16": "utf-16", "UTF-32": "utf-32", "US-ASCII": "ascii", "ISO-8859-1": "latin-1"}


def codec(name: object, stage: str, any_input: bool = True) -> str:
    """Python's name of an encoding.  Raises ArgumentError for one that is not known."""
    text = str(name)
    outcome = _ENCODINGS.get(text) or (_OTHERS.get(text.upper()) if any_input else None)
    if outcome is None and any_input:
        import codecs

        try:
            outcome = codecs.lookup(text).name
        except LookupError:
            outcome = None
    if outcome is None:
        raise ArgumentError(stage, f"Could not create converter for input encoding: {text}.")
    return outcome


def points(
    text: bytes, encoding: str, errors: str = "replace", replacement: int = 0xFFFD, controls: bool = False
) -> list[tuple[int, int]]:
    """The characters of a text, each with the byte where it begins.  Raises ArgumentError for others where ``errors``
    is "strict"."""
    result: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        try:
            part, bad = text[at:].decode(encoding), None
            width = 0
        except UnicodeDecodeError as error:
            bad = error
            part = text[at : at + error.start].decode(encoding)
            width = max(error.end - error.start, 1)
        for character in part:
            code = ord(character)
            result.append((replacement if controls and (code < 32 or code == 127) else code, at))
            at += len(character.encode(encoding, "surrogatepass"))
        if bad is None:
            break
        if errors == "strict":
            raise ArgumentError("strings.unicode", f"Invalid formatting on input string: {text!r:.60}.")
        if errors == "replace":
            result.append((replacement, at))
        at += width
    return result


def encoded(codes: list[int], encoding: str, errors: str, replacement: int) -> bytes:
    """The text of some code points.  Raises ArgumentError for what is none where ``errors`` is "strict"."""
    kept = []
    for code in codes:
        if not 0 <= code <= 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            if errors == "strict":
                raise ArgumentError(
                    "strings.unicode_encode", "Code point is out of range for Unicode, or a noncharacter."
                )
            if errors == "ignore":
                continue
            code = replacement
        kept.append(chr(code))
    return "".join(kept).encode(encoding)
