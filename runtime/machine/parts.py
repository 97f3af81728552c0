"""Modules in several parts, so that several threads can make their machine code, and the images of what comes of that.

A part is a module by itself: some of the functions, and whatever else they name.  What they call of other parts they
find when all are linked.  Machine code of a function does not depend on the part that it is in, since no pass here
looks from one function into another.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

_LEAST = 150  # lines: what takes a few milliseconds, several times as long as a module and a thread by themselves
_TOP = re.compile(r"^(?=define |declare |attributes |target |@)", re.MULTILINE)
_NAME = re.compile(r'@(?:[-\w.$]+|"[^"]*")')
_FUNCTION = re.compile(
    r'define (?P<linkage>internal )?(?P<result>[^@]*)(?P<name>@(?:[-\w.$]+|"[^"]*"))\((?P<given>.*)\)'
)
_PARAMETER = re.compile(r" %[-\w.$]+")
_HEAD = struct.Struct("<8sI")
_MAGIC = b"\0objects"


@dataclass(frozen=True)
class _Function:
    name: str
    text: str
    declaration: str
    lines: int


def split(text: str, threads: Callable[[], int], limit: int) -> list[str]:
    """The module as modules of about as many lines, at most one for each thread, and no more than ``limit``; itself
    where that is not worth it."""
    if text.count("\n") < 2 * _LEAST:
        return [text]
    most = min(threads(), limit)
    if most < 2:
        return [text]
    everywhere: list[str] = []
    functions: dict[str, _Function] = {}
    others: dict[str, str] = {}  # declarations and constants by name
    for item in _TOP.split(text):
        if item.startswith("define "):
            function = _function(item)
            functions[function.name] = function
        elif item.startswith(("declare ", "@")):
            others[_NAME.findall(item)[0]] = item
        else:
            everywhere.append(item)
    if any(item.startswith("@") and " global " in item and " external " not in item for item in others.values()):
        return [text]  # memory, of which there is to be one
    groups = _balanced(functions.values(), most)
    if len(groups) < 2:
        return [text]
    named = {name: set(_NAME.findall(item)) for name, item in others.items()}
    return ["".join([*everywhere, *_part(group, functions, others, named)]) for group in groups]


def _function(text: str) -> _Function:
    found = _FUNCTION.match(text)
    assert found is not None, text[:200]
    linkage, name = found["linkage"] or "", found["name"]
    declaration = f"declare {found['result']}{name}({_PARAMETER.sub('', found['given'])})\n"
    visible = f"define {text[len('define ' + linkage) :]}"
    return _Function(name, visible, declaration, text.count("\n"))


def _balanced(functions: Iterable[_Function], most: int) -> list[list[_Function]]:
    """Groups of functions, none of which is small: the longest first, each to the group with the fewest lines."""
    groups: list[list[_Function]] = [[] for _ in range(most)]
    lines = [0] * most
    for function in sorted(functions, key=lambda f: -f.lines):
        least = lines.index(min(lines))
        groups[least].append(function)
        lines[least] += function.lines
    order = sorted(range(most), key=lambda k: -lines[k])
    found = [groups[k] for k in order if lines[k] >= _LEAST] or [[]]
    for k in order:
        if lines[k] < _LEAST:
            found[-1] += groups[k]
    return found


def _part(
    group: Sequence[_Function],
    functions: Mapping[str, _Function],
    others: Mapping[str, str],
    named: Mapping[str, set[str]],
) -> list[str]:
    """The functions, and behind them what they name, and what that names."""
    mine = {function.name for function in group}
    seen: set[str] = set()
    ask = set().union(*(_NAME.findall(function.text) for function in group)) - mine
    while ask:
        seen |= ask
        ask = set().union(*(named.get(name, ()) for name in ask)) - seen - mine
    constants = [text for name, text in others.items() if name in seen]
    declared = [function.declaration for name, function in functions.items() if name in seen]
    return [*constants, *(function.text for function in group), *declared]


def joined(images: Sequence[bytes]) -> bytes:
    """Object files as one image; a single one as it is."""
    if len(images) == 1:
        return images[0]
    sizes = struct.pack(f"<{len(images)}Q", *map(len, images))
    return b"".join([_HEAD.pack(_MAGIC, len(images)), sizes, *images])


def separate(image: bytes) -> list[bytes]:
    """The object files of an image.  Raises ValueError where some of it is missing."""
    if not image.startswith(_MAGIC):
        return [image]
    try:
        count = _HEAD.unpack_from(image)[1]
        sizes = struct.unpack_from(f"<{count}Q", image, _HEAD.size)
    except struct.error as error:
        raise ValueError(str(error)) from None
    at = _HEAD.size + 8 * count
    if at + sum(sizes) != len(image):
        raise ValueError(f"{len(image)} bytes where {at + sum(sizes)} belong")
    found = []
    for size in sizes:
        found.append(image[at : at + size])
        at += size
    return found
