"""Code objects as instructions, and back, on CPython 3.11 to 3.13: what an assembler and a disassembler do.

Instructions refer to each other, not to offsets, so that others can be put between them.  The tables of lines and of
exceptions are made anew; https://github.com/python/cpython/blob/main/InternalDocs describes both.
"""

from __future__ import annotations

import dis
import inspect
import opcode
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import CodeType
from typing import Any, NamedTuple

IS_KNOWN = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13)

_UNIT = 2  # bytes
_ENTRY_UNITS = 8  # that one entry of the table of positions covers
_NO_POSITION, _NO_COLUMNS, _FULL_POSITION = 15, 13, 14
_GENERATORS = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR

SourcePosition = tuple[int | None, int | None, int | None, int | None]


@dataclass(eq=False, slots=True)
class Instruction:
    """One instruction.  A jump has a ``target`` in the place of an argument."""

    name: str
    arg: int = 0
    target: Instruction | None = None
    position: SourcePosition = (None, None, None, None)


@dataclass(frozen=True)
class Handler:
    """Where an exception goes that is raised from ``first`` on, before ``end`` (None: to the end of the code).

    The stack is cut to ``depth`` before ``target`` runs; ``lasti`` says whether the raising instruction is pushed.
    """

    first: Instruction
    end: Instruction | None
    target: Instruction
    depth: int
    lasti: bool


def disassemble(code: CodeType) -> tuple[list[Instruction], list[Handler]]:
    """The instructions of a code object, and what handles exceptions in which of them."""
    places = list(code.co_positions())
    starts: dict[int, Instruction] = {}  # by offset, that of a prefix where there is one
    jumps: list[tuple[Instruction, int]] = []
    data, offset = code.co_code, 0
    while offset < len(data):
        start, arg = offset, data[offset + 1]
        while data[offset] == dis.EXTENDED_ARG:
            offset += _UNIT
            arg = arg << 8 | data[offset + 1]
        number = data[offset]
        instruction = Instruction(dis.opname[number], arg, None, places[start // _UNIT])
        starts[start] = instruction
        offset += _UNIT * (1 + _caches(number))
        if number in dis.hasjrel:
            jumps.append((instruction, offset + _UNIT * (-arg if "BACKWARD" in instruction.name else arg)))
    for jump, to in jumps:
        jump.target = starts[to]
    handlers = [
        Handler(starts[entry.start], starts.get(entry.end), starts[entry.target], entry.depth, entry.lasti)
        for entry in dis._parse_exception_table(code)  # type: ignore[attr-defined]
    ]
    return list(starts.values()), handlers


class ExceptClauses(NamedTuple):
    """Lines of a code object whose errors ``except`` clauses catch; an empty name stands for whatever it may be."""

    first: int
    last: int
    catches: tuple[str, ...]


def except_clauses(code: CodeType) -> list[ExceptClauses]:
    """The ``except`` clauses of a function, by its table of exceptions.  ``finally`` and ``with`` are left out."""
    instructions, handlers = disassemble(code)
    at = {id(one): k for k, one in enumerate(instructions)}
    ranges = [
        (
            at[id(handler.first)],
            len(instructions) if handler.end is None else at[id(handler.end)],
            at[id(handler.target)],
        )
        for handler in handlers
    ]
    clauses = []
    for first, end, target in ranges:
        catches: list[str] = []
        at_work: int | None = target
        seen: set[int] = set()
        while at_work is not None and at_work not in seen:  # what one does not catch goes to what is around it
            seen.add(at_work)
            catches += _catches(code, instructions, at, at_work)
            at_work = next((outer for start, stop, outer in ranges if start <= at_work < stop), None)
        lines = [line for one in instructions[first:end] if (line := one.position[0]) is not None]
        if catches and lines:
            clauses.append(ExceptClauses(min(lines), max(lines), tuple(catches)))
    return list(dict.fromkeys(clauses))


_LOADS = {
    "LOAD_GLOBAL": lambda code, arg: code.co_names[arg >> 1],
    "LOAD_NAME": lambda code, arg: code.co_names[arg],
    "LOAD_FAST": lambda code, arg: code.co_varnames[arg],
}
_CLAUSE_ENDS = ("POP_TOP", "RERAISE", "STORE_", "RETURN_", "WITH_EXCEPT_START", "JUMP", "POP_JUMP", "POP_EXCEPT")


def _catches(code: CodeType, instructions: list[Instruction], at: dict[int, int], k: int) -> list[str]:
    """The dotted names of what the clauses catch to which an exception goes."""
    catches: list[str] = []
    if instructions[k].name != "PUSH_EXC_INFO":
        return catches
    k += 1
    while k < len(instructions):
        names, is_plain = [], True
        if instructions[k].name == "POP_TOP":  # except:
            return [*catches, "BaseException"]
        while instructions[k].name not in ("CHECK_EXC_MATCH", "CHECK_EG_MATCH"):
            one = instructions[k]
            if one.name.startswith(_CLAUSE_ENDS) or k + 1 == len(instructions):
                return catches
            if one.name in _LOADS:
                names.append(_LOADS[one.name](code, one.arg))
            elif one.name == "LOAD_ATTR" and names:
                shift = sys.version_info >= (3, 12)
                names[-1] += f".{code.co_names[one.arg >> shift]}"
            elif one.name not in ("BUILD_TUPLE", "NOP", "COPY"):
                is_plain = False
            k += 1
        catches += names if names and is_plain else [""]
        jump = next((one for one in instructions[k + 1 : k + 6] if one.target is not None), None)
        if jump is None or jump.target is None:
            return catches
        k = at[id(jump.target)]
    return catches


def _caches(number: int) -> int:
    """How many units of caches follow an instruction."""
    entries: Any = opcode._inline_cache_entries  # type: ignore[attr-defined]
    return int(entries.get(dis.opname[number], 0) if isinstance(entries, dict) else entries[number])


def assemble(
    code: CodeType,
    pieces: Sequence[tuple[Instruction, Sequence[Instruction]]],
    handlers: Sequence[Handler],
    constants: Sequence[object],
    room: int,
) -> CodeType:
    """``code`` with other instructions: for each of its own, those that take its place, which jumps to it come to.

    ``room`` is how much more they need of the stack.
    """
    new = [instruction for _, piece in pieces for instruction in piece]
    first = {id(old): piece[0] for old, piece in pieces}
    sizes = [1 + _caches(dis.opmap[each.name]) for each in new]
    prefixes = [_prefixes(0 if each.target else each.arg) for each in new]
    while True:
        offsets = _offsets(sizes, prefixes)
        at = {id(each): offset for each, offset in zip(new, offsets)}
        args = [each.arg for each in new]
        for k, each in enumerate(new):
            if each.target is not None:
                args[k] = abs(at[id(first[id(each.target)])] - offsets[k + 1])
        needed = [max(now, _prefixes(arg)) for now, arg in zip(prefixes, args)]
        if needed == prefixes:
            break
        prefixes = needed
    data = bytearray()
    for each, arg, size, count in zip(new, args, sizes, prefixes):
        for k in range(count, 0, -1):
            data += bytes((dis.EXTENDED_ARG, arg >> 8 * k & 0xFF))
        data += bytes((dis.opmap[each.name], arg & 0xFF)) + bytes(_UNIT * (size - 1))
    lengths = [end - start for start, end in pairwise(offsets)]
    table = bytearray()
    for handler in handlers:
        start = at[id(first[id(handler.first)])]
        end = offsets[-1] if handler.end is None else at[id(first[id(handler.end)])]
        target = at[id(first[id(handler.target)])]
        numbers = (start, end - start, target, handler.depth << 1 | handler.lasti)
        entry = bytearray(unit for number in numbers for unit in _big_endian(number))
        entry[0] |= 0x80
        table += entry
    return code.replace(
        co_code=bytes(data),
        co_consts=tuple(constants),
        co_stacksize=code.co_stacksize + room,
        co_linetable=bytes(_positions(code.co_firstlineno, [each.position for each in new], lengths)),
        co_exceptiontable=bytes(table),
    )


def _prefixes(arg: int) -> int:
    return max(0, (arg.bit_length() - 1) // 8)


def _offsets(sizes: Sequence[int], prefixes: Sequence[int]) -> list[int]:
    """Where instructions begin, in units, and where the last one ends."""
    result = [0]
    for size, count in zip(sizes, prefixes):
        result.append(result[-1] + size + count)
    return result


def _big_endian(number: int) -> Iterator[int]:
    """A number in groups of six bits, the most significant first; all but the last one are marked."""
    groups = max(1, -(-number.bit_length() // 6))
    for k in range(groups - 1, -1, -1):
        yield number >> 6 * k & 0x3F | (0x40 if k else 0)


def _little_endian(number: int) -> Iterator[int]:
    while number > 0x3F:
        yield number & 0x3F | 0x40
        number >>= 6
    yield number


def _signed_varint(number: int) -> Iterator[int]:
    return _little_endian(-number << 1 | 1 if number < 0 else number << 1)


def _positions(line: int, places: Sequence[SourcePosition], lengths: Sequence[int]) -> Iterator[int]:
    """The table of positions of instructions that have these lengths in units."""
    for (first, last, column, end_column), length in zip(places, lengths):
        while length > 0:
            units = min(length, _ENTRY_UNITS)
            length -= units
            if first is None:
                yield 0x80 | _NO_POSITION << 3 | units - 1
                continue
            has_columns = last is not None and column is not None and end_column is not None
            yield 0x80 | (_FULL_POSITION if has_columns else _NO_COLUMNS) << 3 | units - 1
            yield from _signed_varint(first - line)
            line = first
            if last is not None and column is not None and end_column is not None:
                for number in (last - first, column + 1, end_column + 1):
                    yield from _little_endian(number)


# ---- the stack


class Nulls:
    """Where the stack holds a null instead of an object when an instruction begins: what calls are told apart by.

    The compiler puts a null below, or above, what is called without an instance; nothing but calls takes it away.
    """

    def __init__(self, code: CodeType, instructions: Sequence[Instruction], handlers: Sequence[Handler]) -> None:
        self._at: dict[int, tuple[int, frozenset[int]]] = {}  # by id of the instruction: depth, places of nulls
        following = {id(a): b for a, b in pairwise(instructions)}
        covering: dict[int, list[Handler]] = {}
        place = {id(each): k for k, each in enumerate(instructions)}
        for handler in handlers:
            end = len(instructions) if handler.end is None else place[id(handler.end)]
            for each in instructions[place[id(handler.first)] : end]:
                covering.setdefault(id(each), []).append(handler)
        begins_with_one = code.co_flags & _GENERATORS  # the generator, to which RETURN_GENERATOR adds nothing
        todo = [(instructions[0], 1 if begins_with_one else 0, frozenset[int]())]
        while todo:
            each, depth, nulls = todo.pop()
            known = self._at.get(id(each))
            if known is not None:
                if known != (depth, nulls):
                    raise ValueError("two ways to an instruction differ in what the stack holds")
                continue
            self._at[id(each)] = depth, nulls
            todo += self._next(each, depth, nulls, following.get(id(each)))
            for handler in covering.get(id(each), ()):
                kept = frozenset(at for at in nulls if at < handler.depth)
                todo.append((handler.target, handler.depth + handler.lasti + 1, kept))

    def _next(
        self, each: Instruction, depth: int, nulls: frozenset[int], following: Instruction | None
    ) -> Iterator[tuple[Instruction, int, frozenset[int]]]:
        """The instructions that may come next, and what they find."""
        number = dis.opmap[each.name]
        arg = each.arg if number >= dis.HAVE_ARGUMENT else None
        ways = [] if each.target is None else [(each.target, True)]
        if following is not None and each.name not in _ENDS:
            ways.append((following, False))
        for to, jumps in ways:
            after = depth + dis.stack_effect(number, arg, jump=jumps)
            room = after - 1 if each.name in _CALLS else after  # the result stands where the null was
            kept = frozenset(at for at in nulls if at < room)
            pushed = _pushed_null(each, after)
            yield to, after, kept if pushed is None else kept | {pushed}

    def is_null(self, instruction: Instruction, below: int) -> bool:
        """Whether the stack holds a null so far below its top, which is 1, when an instruction begins."""
        depth, nulls = self._at[id(instruction)]
        return depth - below in nulls

    def is_reached(self, instruction: Instruction) -> bool:
        """Whether any way through the code comes to an instruction."""
        return id(instruction) in self._at


_CALLS = ("CALL", "CALL_FUNCTION_EX")
_ENDS = frozenset(
    ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS")
    + ("RERAISE",)
)


def _pushed_null(each: Instruction, after: int) -> int | None:
    """The place of the null that an instruction pushes, on a stack that is so deep after it.

    Those that push a method and its instance instead count among these: see ``instrument_code``.
    """
    if each.name == "PUSH_NULL":
        return after - 1
    attribute = each.name == "LOAD_ATTR" and sys.version_info >= (3, 12)
    if (each.name in ("LOAD_GLOBAL", "LOAD_SUPER_ATTR") or attribute) and each.arg & 1:
        return after - 2
    return after - 2 if each.name == "LOAD_METHOD" else None
