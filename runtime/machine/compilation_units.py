"""The functions of a module as units of compilation: each named by a hash of what decides its machine code.

A unit's text is that of a function in which whatever else the module defines, functions and constants, stands by the
hash of its own text.  So equal functions of two modules are equal units, whatever they are called there, with whatever
they call; and what calls another function is another unit.  Machine code of a function does not depend on what it is
compiled together with, since no pass here looks from one function into another.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

_PART = 1500  # lines: what takes some 30 ms at the highest level
_LEAST = 150  # lines: what takes a few milliseconds, several times as long as a module and a thread by themselves
_TOP = re.compile(r"^(?=define |declare |attributes |target |@)", re.MULTILINE)
_NAME = re.compile(r'@(?:[-\w.$]+|"[^"]*")')
_FUNCTION = re.compile(
    r'define (?P<linkage>internal )?(?P<result>[^@]*)(?P<name>@(?:[-\w.$]+|"[^"]*"))\((?P<given>.*)\)'
)
_PARAMETER = re.compile(r" %[-\w.$]+")
_PREFIX = "hf."  # of a symbol, before the hash


@dataclass(frozen=True)
class KernelText:
    """A function, ``name`` in its module, as a unit.

    ``key`` stands for ``text``, what it names, and what is said of all functions of the module.  ``symbol`` is what it
    is called in machine code.  ``calls`` are the units that it names, ``others`` what it names besides: what the module
    only declares.  ``constants`` are texts by name."""

    name: str
    key: str
    symbol: str
    text: str
    declaration: str
    calls: tuple[KernelText, ...]
    others: frozenset[str]
    constants: Mapping[str, str]
    lines: int


@dataclass(frozen=True)
class Module:
    """A module as units by name, with what stands before all functions, and declarations by name."""

    units: Mapping[str, KernelText]
    everywhere: str
    declares: Mapping[str, str]

    def reachable(self, names: Iterable[str]) -> list[KernelText]:
        """The units of these names and what they call, those that are called first."""
        units: dict[str, KernelText] = {}
        stack = [(self.units[name], False) for name in names]
        while stack:
            unit, ready = stack.pop()
            if ready:
                units.setdefault(unit.name, unit)
            elif unit.name not in units:
                stack += [(unit, True), *((other, False) for other in unit.calls)]
        return list(units.values())

    def together(self, group: Sequence[KernelText]) -> str:
        """These units as a module by themselves."""
        mine = {unit.symbol for unit in group}
        constants: dict[str, str] = {}
        for unit in group:
            constants.update(unit.constants)
        # A constant may name functions that its user does not.
        others = dict.fromkeys(n for unit in group for n in sorted(unit.others) if n in self.declares)
        called = {other.symbol: other.declaration for unit in group for other in unit.calls if other.symbol not in mine}
        texts = dict.fromkeys(unit.text for unit in group)
        parts = [self.everywhere, *constants.values(), *texts, *called.values(), *(self.declares[n] for n in others)]
        return "".join(parts)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def split_module(text: str) -> Module | None:
    """The units of a module; None where it cannot be cut: it has memory, of which there is to be one, or functions that
    call each other in turn."""
    everywhere: list[str] = []
    declares: dict[str, str] = {}
    items: dict[str, str] = {}  # definitions by name
    for item in _TOP.split(text):
        if item.startswith("define "):
            match = _FUNCTION.match(item)
            if match is None:
                return None
            items[match["name"]] = item
        elif item.startswith("declare "):
            declares[_NAME.findall(item)[0]] = item
        elif item.startswith("@"):
            if " global " in item:
                return None
            items[_NAME.findall(item)[0]] = item
        else:
            everywhere.append(item)
    return _Cutter(items, declares, "".join(everywhere)).module()


class _Cutter:
    def __init__(self, items: Mapping[str, str], declares: Mapping[str, str], everywhere: str) -> None:
        self.items, self.declares, self.everywhere = items, declares, everywhere
        self.named = {name: tuple(dict.fromkeys(_NAME.findall(item))) for name, item in items.items()}
        self.symbols: dict[str, str] = {}
        self.units: dict[str, KernelText] = {}
        self.constants: dict[str, dict[str, str]] = {}  # that a constant is, and names
        self.calls: dict[str, dict[str, KernelText]] = {}
        self.others: dict[str, set[str]] = {}

    def module(self) -> Module | None:
        open_: set[str] = set()
        for first in self.items:
            stack = [(first, False)]
            while stack:
                name, ready = stack.pop()
                if ready:
                    open_.discard(name)
                    self._finish(name)
                elif name not in self.symbols:
                    if name in open_:
                        return None
                    open_.add(name)
                    stack.append((name, True))
                    for other in self.named[name]:
                        if other != name and other in self.items and other not in self.symbols:
                            if other in open_:
                                return None
                            stack.append((other, False))
        return Module(self.units, self.everywhere, self.declares)

    def _finish(self, name: str) -> None:
        """All that it names is finished."""
        if name in self.symbols:
            return
        item, symbols = self.items[name], self.symbols
        new = {other: symbols.get(other, other) for other in self.named[name]} | {name: "@itself"}
        key = _hash(self.everywhere + _NAME.sub(lambda m: new[m[0]], item))
        symbol = new[name] = symbols[name] = f"@{_PREFIX}{key}"
        constants: dict[str, str] = {}
        calls: dict[str, KernelText] = {}
        others: set[str] = set()
        for other in self.named[name]:
            if other == name:
                continue
            if other in self.units:
                calls[other] = self.units[other]
            elif other in self.items:
                constants.update(self.constants[other])
                calls.update(self.calls[other])
                others |= self.others[other]
            else:
                others.add(other)
        text = _NAME.sub(lambda m: new[m[0]], item)
        if not item.startswith("define "):
            self.constants[name], self.calls[name], self.others[name] = {**constants, symbol: text}, calls, others
            return
        match = _FUNCTION.match(item)
        assert match is not None
        linkage, result, parameters = match["linkage"] or "", match["result"], match["given"]
        declaration = f"declare {result}{symbol}({_PARAMETER.sub('', parameters)})\n"
        visible = f"define {text[len('define ' + linkage) :]}"
        self.units[name] = KernelText(
            name, key, symbol[1:], visible, declaration, tuple(calls.values()), frozenset(others), constants,
            item.count("\n"),
        )  # fmt: skip


def batches(missing: Sequence[KernelText], threads: Callable[[], int], limit: int) -> list[list[KernelText]]:
    """Groups of about as many lines, at most one for each thread, and no more than ``limit``; a single one where more
    are not worth it.  The longest first, each to the group with the fewest lines."""
    most = 1 if sum(unit.lines for unit in missing) < 2 * _LEAST else min(threads(), limit)
    if most < 2:
        return [list(missing)]
    groups: list[list[KernelText]] = [[] for _ in range(most)]
    lines = [0] * most
    for unit in sorted(missing, key=lambda unit: -unit.lines):
        least = lines.index(min(lines))
        groups[least].append(unit)
        lines[least] += unit.lines
    order = sorted(range(most), key=lambda k: -lines[k])
    result = [groups[k] for k in order if lines[k] >= _LEAST] or [[]]
    for k in order:
        if lines[k] < _LEAST:
            result[-1] += groups[k]
    return result


def parts(missing: Sequence[KernelText]) -> list[list[KernelText]]:
    """Groups of few lines, so that none takes long to compile, but for a function that does by itself."""
    groups: list[list[KernelText]] = []
    lines = _PART
    for unit in missing:
        if lines + unit.lines > _PART:
            groups.append([])
            lines = 0
        groups[-1].append(unit)
        lines += unit.lines
    return groups


def declared(text: str) -> list[str]:
    """The functions that a module only declares."""
    return [_NAME.findall(item)[0] for item in _TOP.split(text) if item.startswith("declare ")]
