"""The records that native code reads: arrays of 64-bit words inside a bytes object, each declared once.

A record begins with a head; the sections behind it, to which words of the head point as offsets in words, hold items.
What a declaration says is all that there is to know of a layout: ``pack`` writes by it, and ``at`` gives native code
a view whose attributes are the words.  A word that is not declared cannot be written (TypeError) or read
(AttributeError, when the native code is built).

Words are named ``count`` (an integer), ``*dtype`` (an address) or ``@arguments`` (a section of the record).
Symbolic extents, and sizes in bytes, are written as negative numbers: -1 - index.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from hybridflow.compiler.program import HOST
from hybridflow.quick_dataclasses import dataclass

if TYPE_CHECKING:
    from hybridflow.runtime.native.ir_builder import Function

WORD = 8
_MASK = (1 << 64) - 1


class Words:
    """Words in a row, by name."""

    def __init__(self, words: str, tail: str | None = None, first: int = 0) -> None:
        declared = words.split()
        self.names = tuple(word.lstrip("*@") for word in declared)
        self.tail = tail  # words of any number behind the others
        self._places = {name: first + k for k, name in enumerate(self.names)}
        self._kinds = {name: word[0] if word[0] in "*@" else "" for name, word in zip(self.names, declared)}
        self.size = first + len(declared)
        if len(self._places) != len(declared) or tail in self._places:
            raise TypeError(f"a name is given twice in {words!r}")

    def in_order(self, words: Mapping[str, int]) -> list[int]:
        """The words as they are declared; exactly these must be given, or it is a TypeError."""
        if words.keys() != self._places.keys():
            wrong = ", ".join(sorted(words.keys() ^ self._places.keys()))
            raise TypeError(f"not the words of the declaration: {wrong}")
        return [words[name] for name in self.names]

    def offset(self, name: str) -> int:
        """Bytes from the start to a word, or to the tail."""
        if name == self.tail:
            return WORD * self.size
        if name not in self._places:
            raise AttributeError(f"no word {name!r} is declared, only {', '.join(self.names)}")
        return WORD * self._places[name]

    def at(self, f: Function, start: Any) -> View:
        """For native code: the words at the address ``start``."""
        return View(f, start, self)

    def on_stack(self, f: Function, **words: object) -> Any:
        """For native code: the address of such words on the stack, these and zeros; TypeError for names that are not
        declared."""
        wrong = words.keys() - self._places.keys()
        if wrong:
            raise TypeError(f"not among the words of the declaration: {', '.join(sorted(wrong))}")
        start = f.local_words(self.size)
        for name in self.names:
            f.store(words.get(name, f.constant(0)), start, self.offset(name))
        return start

    def read(self, f: Function, start: object, name: str) -> Any:
        """For native code: the value of a word; the address of the tail, or of the section that a word points to."""
        offset = self.offset(name)
        kind = self._kinds.get(name)
        if kind is None:
            return f.at(start, offset)
        if kind == "*":
            return f.pointer(start, offset)
        value = f.word(start, offset)
        return f.words_after(start, value) if kind == "@" else value


class View:
    """Words at an address, for native code: ``view.name`` emits the read of a word (see ``Words.read``)."""

    def __init__(self, f: Function, start: Any, words: Words) -> None:
        self._f, self._start, self._words = f, start, words

    def __getattr__(self, name: str) -> Any:
        return self._words.read(self._f, self._start, name)

    @property
    def start(self) -> Any:
        """Where the words begin."""
        return self._start

    def address(self, name: str) -> Any:
        """Where the word lies."""
        return self._f.at(self._start, self._words.offset(name))


class Item(Words):
    """One kind of item of a section: its code and its length in words come first."""

    code: int  # given by Items

    def __init__(self, name: str, words: str = "", tail: str | None = None) -> None:
        super().__init__(words, tail, first=ITEM.size)
        self.name = name

    def pack(self, *tail: int, **words: int) -> tuple[int, ...]:
        """The item; ``tail`` only where one is declared."""
        if tail and self.tail is None:
            raise TypeError(f"items {self.name!r} have no tail")
        body = (*self.in_order(words), *tail)
        return self.code, ITEM.size + len(body), *body

    def is_kind(self, f: Function, item: object) -> Any:
        """For native code: whether the item at this address is of this kind."""
        return f.eq(ITEM.at(f, item).kind, f.constant(self.code))


ITEM = Words("kind length")  # what every item begins with


class Items:
    """The kinds of items that one section holds."""

    def __init__(self, *kinds: Item) -> None:
        self.kinds = kinds
        for code, kind in enumerate(kinds):
            if hasattr(kind, "code"):
                raise TypeError(f"{kind.name!r} belongs to two sections")
            kind.code = code


# Arguments, and what is nested in them (see ``calls.argument_specs``).
# input -1: the program does not read it.  scalar: the class, where it is one of NumPy's scalars, or null.
# handed: which of the arguments that results hold, -1 for none.  bare: whether it must be a Tensor whose elements lie
# one after the other; of such a one, results hold the array.  elsewhere: whether it must be a Tensor of memory that is
# not the host's; nothing else is looked at then.
# flags: of arrays that are read where they lie.  unlike: of those of tensors that are not read otherwise either.
TENSOR = Item("tensor", "input *dtype itemsize ndim *scalar handed bare elsewhere flags unlike", tail="extents")
IDENTITY = Item("identity", "*object")
FLOAT = Item("float", "bits")
INT = Item("int", "value")
# An int of any value from 2 on, which the place ``extent`` of the dims becomes; nothing is read of the input.
OPEN_INT = Item("open int", "input extent")
EQUAL = Item("equal", "*object")  # of a type that ``compare`` compares
REFERENT = Item("referent", "*reference")
SAME_OBJECT = Item("same object", "node")  # the very object of another argument
SEQUENCE = Item("sequence", "*type is_list size")
MAPPING = Item("mapping", "*type *factory size", tail="keys")  # factory: of a defaultdict, null where there is none
ORDERED = Item("ordered", "*type size", tail="keys")
# held: how many entries its dict has, -1 where it has none.  names: of the fields, then those in the dict.
INSTANCE = Item("instance", "*type size held", tail="names")
ARGUMENT = Items(
    TENSOR, IDENTITY, FLOAT, INT, OPEN_INT, EQUAL, REFERENT, SAME_OBJECT, SEQUENCE, MAPPING, ORDERED, INSTANCE
)

CONSTANT = Item("constant", "input *data")
# tensor, own: offsets of the slots in the object.  words: of its gate (see ``turns``).  update: position among the
# updates of the program, -1 for none.
VARIABLE = Item("variable", "input *object tensor own *words update in_place *dtype itemsize ndim", tail="extents")
CAPTURE = Items(CONSTANT, VARIABLE)

OUTPUT = Item("output", "*dtype itemsize ndim", tail="extents")
OUTPUTS = Items(OUTPUT)

# How a result is made, on a stack of objects (see ``calls.result_steps``): the first five put one there, the others
# take as many as they need, and put there what they make.
PUT_OUTPUT = Item("put output", "index")
PUT_ARGUMENT = Item("put argument", "index")  # of those that are handed through
PUT_OBJECT = Item("put object", "*object")
PUT_EXTENT = Item("put extent", "extent")
# index: of an array that is handed through, or -1, and then it is of ``array``.  offset: in bytes.
PUT_VIEW = Item("put view", "index *array *dtype offset ndim", tail="extents_and_strides")
MAKE_LIST = Item("make list", "count")
MAKE_TUPLE = Item("make tuple", "count")
MAKE_DICT = Item("make dict", "count", tail="keys")
MAKE_INSTANCE = Item("make instance", "*type count", tail="names")
MAKE_CALL = Item("make call", "*callable count")  # with no argument, or with one
RESULT = Items(
    PUT_OUTPUT,
    PUT_ARGUMENT,
    PUT_OBJECT,
    PUT_EXTENT,
    PUT_VIEW,
    MAKE_LIST,
    MAKE_TUPLE,
    MAKE_DICT,
    MAKE_INSTANCE,
    MAKE_CALL,
)

# Guards (see ``guard_program``).  slots: for values that later steps need.
GUARDS = Words("count slots @steps")
# owner: a slot.  slot: where the value goes, -1 for none: slots are filled in their order.
STEP = Words("read owner *operand check *expected slot")
# Before and behind the steps of a group, in the place of a step.  skipped: how many steps these two are around.  memo:
# words from the start of the record to a MEMO.  count: of slots that the group fills, from ``first`` on.
GROUP = Words("read owner skipped memo first count")
# What the steps of a group found when they passed: the tags of a class and of a dict (see ``versions``), where the
# owner has the dict, and the values of slots.  Native code writes it.
MEMO = Words("type_version dict_version place", tail="values")

# What every record of a program begins with: its entry, and where the word lies that has its entry for a host (see
# ``cpu.Executable``).
PROGRAM = Words("*entry *shared")

# A native call.  positional, keywords: how many arguments are given by position, and by name.  defaults: objects that
# are looked at like arguments.  nodes: all these and what is nested in them.  handed: arguments that results hold.
# apart: whether arrays may be in one place only.  dims: symbolic extents.  depth: of the stack on which the result is
# made, in ``results`` steps.
# guards: a record of GUARDS, or null.  inputs: buffers of the program.
# repeats: whether a call in which a check fails is none of this record.
# python: null, or what is called in the place of the program, with a tuple of its inputs (see ``entry.binding``), and
# gives the result, or NotImplemented where the call is none of this record.
# calls: answered so far, the one word that native code writes.
HEAD = Words(
    "*entry *shared positional keywords @keyword_names defaults @default_objects nodes @arguments handed apart "
    "dims dim_step_count @dim_steps @minimums *guards "
    "inputs captures @capture_items updates outputs @output_items arena scratch work results @result_items depth "
    "repeats looks *python calls"
)
# One step of ``dims``: the place ``target`` becomes ``op`` of the place ``left`` and of ``right``, a place or a number.
DIM_STEP = Words("op target left right is_place")
DIM_STEPS = {"add": 0, "multiply": 1, "divide": 2, "same": 3}  # same: both are equal, or the signature does not fit

# The host of a run on a team of threads: what programs know of it (see ``program.HOST``), and the work of the program.
TEAM_HOST = Words(f"{' '.join(HOST)} work")

# An op over tensors of any one shape, and one over tensors of known types.
# arena, scratch: as for ``run``.  work: of the program, or for each element.
ELEMENTWISE = Words("*entry *shared inputs @specs *dtype itemsize arena scratch work")
ELEMENTWISE_INPUT = Item("elementwise input", "*dtype")
ELEMENTWISE_INPUTS = Items(ELEMENTWISE_INPUT)
FIXED = Words("*entry *shared inputs @specs @dims *dtype ndim @shape bytes arena scratch work")
FIXED_INPUT = Item("fixed input", "*dtype ndim", tail="extents")
FIXED_INPUTS = Items(FIXED_INPUT)

# An elementwise op of one operand or two.  table: a word for each dtype and form, DTYPES * FORMS of them; up to
# ``wanted`` it counts how often something was missing there, else it is the address of an APPLICATION.
OPERATOR = Words("*owner wanted *table")
# What applies an op to operands of one dtype.  owner: the ``op_calls.Application``.  weak: what becomes of a Python
# number, if an int lies in low .. high.
APPLICATION = Words("*entry *shared *owner *dtype *out itemsize arena scratch work weak low high")
WEAK = {"none": 0, "f32": 1, "f64": 2, "int": 3, "c64": 4, "c128": 5}
SAME, ELEMENT_RIGHT, ELEMENT_LEFT = range(3)  # forms: one operand, or two of one shape; or one has a single element
FORMS = 3
DTYPES = 32  # NumPy's own by their numbers, and behind them those that others register, which are numbered from 256
OWN_DTYPES, FIRST_REGISTERED = 24, 256

# Operators that are slots of the Tensor class, by the names of their methods.
COMPARISONS = ("lt", "le", "eq", "ne", "gt", "ge")  # in the order of CPython's numbers for them
ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
SLOTS_OF_TWO = (*ARITHMETIC, *COMPARISONS)
SLOTS_OF_ONE = ("neg", "abs", "invert")
SLOTS = (*SLOTS_OF_TWO, *SLOTS_OF_ONE, "matmul", "getitem", "len", "bool", "float", "int", "index")
OPS_OF_SLOTS = (*SLOTS_OF_TWO, *SLOTS_OF_ONE, "square")  # those with an op come first, in the same order


@dataclass(frozen=True)
class TapeOffsets:
    """Slots of tapes, of variables, and of what contexts hold (see ``calls.tape_log``)."""

    recording: int
    takes_wholes: int
    watches_accessed: int
    used: int
    persistent: int
    is_plain: int
    values: int
    words: int
    table: int
    definitions: int
    variable_tensor: int
    variable_own: int
    variable_gate: int
    variable_trainable: int
    gate_address: int
    whole: int
    trace: int
    tapes: int
    device: int
    only_tape: int
    is_counted: int


@dataclass(frozen=True)
class PassOffsets:
    """Slots of ``native_tape.BackwardPass``."""

    native: int
    numbers: int


@dataclass(frozen=True)
class Offsets:
    """Slots of the classes that native code reads; they lie where Python put them, so they are settings of the code."""

    tensor_array: int
    tensor_size: int
    dispatch_table: int
    taped_table: int
    call_record: int
    guard_record: int
    elementwise_record: int
    fixed_record: int
    operator_record: int
    tape: TapeOffsets


@dataclass(frozen=True)
class MethodOffsets:
    """Slots of the classes by which a function in a class finds that of an instance, see ``calls.method_slots``."""

    dispatch: int
    instances: int
    held: int
    instance: int
    strong: int
    bound_function: int
    bound_self: int


# The kinds of items in the words of a tape (see ``calls.tape_log``), and in a key, which ends with what is asked for:
# pairs of a value and its cotangent or -1, and groups of values.  The head of a call holds numbers from these bits on.
LOG_VALUE, LOG_VARIABLE, LOG_READ, LOG_WATCH, LOG_CALL, LOG_SEEDS, LOG_WANTED = range(1, 8)
LOG_INPUTS, LOG_OUTPUTS = 8, 36
LOG_ENTRIES = 64  # that a table has room for at first, half of them in use at most


# Variables of the pool, 64 bits each: settings, counters of bytes and calls, what was looked at and asked for last, and
# the ends of the list of free blocks.
POOL_STATE = (
    *("limit", "poison", "age"),
    *("cached", "small", "held", "live", "peak", "peak_before", "hits", "misses"),
    *("looked", "last", "requests", "oldest", "newest"),
)

RELEASE_GIL_WORK = 8 << 20  # programs of so much work run without the GIL: of 1 MiB that is moved, say

MAX_INPUTS = 8  # of an elementwise kernel


class Writer:
    """Collects a head and sections, and packs them into bytes."""

    def __init__(self, head: Words) -> None:
        self._head = head
        self._sections: list[int] = []

    def section(self, words: Iterable[int]) -> int:
        """Append a section; returns its offset in words."""
        offset = self._head.size + len(self._sections)
        self._sections.extend(words)
        return offset

    def items(self, items: Iterable[tuple[int, ...]]) -> int:
        """Append items, each as ``Item.pack`` makes them."""
        return self.section(word for item in items for word in item)

    def pack(self, **head: int) -> bytes:
        words = [*self._head.in_order(head), *self._sections]
        return struct.pack(f"<{len(words)}Q", *(word & _MASK for word in words))
