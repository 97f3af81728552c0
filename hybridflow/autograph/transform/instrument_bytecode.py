"""Instrumented byte code, for functions whose text is nowhere: as ``instrument`` does with source.

Each instruction that reads, writes or calls something is preceded, or replaced, by a call of the recorder's method for
it.  Statements stay what they are to Python: conditions cannot be tensors.  Only instructions that are listed here are
taken; what is not known to read nothing has no place in what is to be recorded.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from hybridflow.autograph.source.bytecode import IS_KNOWN, Instruction, Nulls, SourcePosition, assemble, disassemble
from hybridflow.autograph.source.lookup import ByCode

# The operators of two operands as ``dis`` shows them, and their functions in ``operator``.
_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "@": "matmul",
    "/": "truediv",
    "%": "mod",
    "**": "pow",
    "<<": "lshift",
    ">>": "rshift",
    "|": "or_",
    "^": "xor",
    "&": "and_",
    "//": "floordiv",
}
_COMPARISONS = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
_NULL_FIRST = sys.version_info < (3, 13)  # whether the null lies below what is called
_NAME_SHIFT = 1 if sys.version_info >= (3, 12) else 0  # of the argument of LOAD_ATTR
_COMPARISON_SHIFT = {11: 0, 12: 4}.get(sys.version_info[1], 5)
_AS_BOOL = 16  # in the argument of COMPARE_OP, from 3.13 on
_CELL = "LOAD_CLOSURE" if "LOAD_CLOSURE" in dis.opmap and dis.opmap["LOAD_CLOSURE"] < 256 else "LOAD_FAST"

# Instructions that read nothing but the stack and what belongs to the frame.
_QUIET_NAMES = """
    ASYNC_GEN_WRAP BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_TUPLE CHECK_EG_MATCH
    CHECK_EXC_MATCH CLEANUP_THROW COPY COPY_FREE_VARS DELETE_FAST DELETE_NAME END_ASYNC_FOR END_FOR END_SEND FOR_ITER
    GET_ANEXT GET_AWAITABLE GET_LEN JUMP_BACKWARD JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD LIST_APPEND LIST_TO_TUPLE
    LOAD_ASSERTION_ERROR LOAD_BUILD_CLASS LOAD_CLOSURE LOAD_CONST LOAD_FAST LOAD_FAST_AND_CLEAR LOAD_FAST_CHECK
    LOAD_FAST_LOAD_FAST LOAD_LOCALS MAKE_CELL MAKE_FUNCTION MAP_ADD MATCH_KEYS NOP POP_EXCEPT POP_TOP PREP_RERAISE_STAR
    PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_CONST RETURN_GENERATOR RETURN_VALUE SEND SET_ADD
    SET_FUNCTION_ATTRIBUTE SETUP_ANNOTATIONS STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_NAME SWAP
    WITH_EXCEPT_START YIELD_VALUE
"""
_QUIET = frozenset(_QUIET_NAMES.split())
# What the recorder is told of the value on top of the stack, before an instruction takes it.
_BEFORE = {
    **dict.fromkeys(
        ("GET_ITER", "GET_AITER", "GET_YIELD_FROM_ITER", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "SET_UPDATE")
        + ("DICT_UPDATE", "DICT_MERGE"),
        "iterate",
    ),
    **dict.fromkeys(("BEFORE_WITH", "BEFORE_ASYNC_WITH"), "enter"),
    **dict.fromkeys(("MATCH_SEQUENCE", "MATCH_MAPPING"), "matched"),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT"), "use"),
    **dict.fromkeys(
        ("POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE")
        + tuple(f"POP_JUMP_{way}_IF_{what}" for way in ("FORWARD", "BACKWARD") for what in ("NONE", "NOT_NONE")),
        "identity",
    ),
    **dict.fromkeys(
        ("TO_BOOL", "POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE")
        + tuple(f"POP_JUMP_{way}_IF_{what}" for way in ("FORWARD", "BACKWARD") for what in ("TRUE", "FALSE")),
        "truth",
    ),
    **dict.fromkeys(("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"), "test"),
}
_POSITIVE = 5  # of CALL_INTRINSIC_1
_QUIET_INTRINSICS = {"CALL_INTRINSIC_1": (3, 4, 6, 7, 8, 9, 10, 11), "CALL_INTRINSIC_2": (1, 2, 3, 4, 5)}


class Unknown(Exception):
    """Byte code that is not understood, and why."""


def instrument_code(code: CodeType, recorder: object) -> CodeType:
    """The code of a function with calls of ``recorder``, which fits in the place of the function's own.

    Raises Unknown for byte code of which it is not known what it reads.
    """
    if not IS_KNOWN:
        raise Unknown(f"the byte code of Python {sys.version_info[0]}.{sys.version_info[1]} is not known")
    try:
        result = _Instrumenter(code, frozenset(code.co_freevars), recorder).code()
        _remember(result, code)
        return result
    except (ValueError, LookupError) as error:
        raise Unknown(f"its byte code is not what the compiler makes ({error})") from error


_originals: ByCode[CodeType] = ByCode()


def _remember(instrumented: CodeType, code: CodeType) -> None:
    _originals.put(instrumented, code)
    for inner, original in zip(instrumented.co_consts, code.co_consts):
        if isinstance(inner, CodeType) and isinstance(original, CodeType):
            _remember(inner, original)


def original_of(code: CodeType) -> CodeType | None:
    """The code of which this is instrumented byte code; None for other code."""
    return _originals.get(code)


class _Instrumenter:
    """The instrumented code of one scope; ``outside`` are those of its free variables that no scope in it binds."""

    def __init__(self, code: CodeType, outside: frozenset[str], recorder: object) -> None:
        self._code, self._recorder = code, recorder
        self._outside = outside - {"__class__", "__classdict__"}
        self._constants: list[object] = [self._constant_of(c) for c in code.co_consts] or [None]
        self._hooks: dict[str, int] = {}
        names = code.co_varnames
        self._variables = names + tuple(name for name in code.co_cellvars if name not in names) + code.co_freevars
        self._instructions, self._handlers = disassemble(code)
        self._nulls = Nulls(code, self._instructions, self._handlers) if _NULL_FIRST else None
        self._targets = {id(each.target) for each in self._instructions if each.target is not None}
        self._out: list[Instruction] = []
        self._place: SourcePosition = (None, None, None, None)
        self._room = 0
        self._position = 0

    def _constant_of(self, constant: object) -> object:
        if not isinstance(constant, CodeType):
            return constant
        outside = frozenset(constant.co_freevars) & frozenset(self._code.co_freevars) & self._outside
        return _Instrumenter(constant, outside, self._recorder).code()

    def code(self) -> CodeType:
        pieces = []
        for position, each in enumerate(self._instructions):
            self._position, self._out, self._place = position, [], each.position
            self._instruction(each)
            pieces.append((each, self._out))
        return assemble(self._code, pieces, self._handlers, self._constants, self._room)

    # Pieces

    def _emit(self, name: str, arg: int = 0) -> None:
        self._out.append(Instruction(name, arg, None, self._place))

    def _constant(self, value: object) -> None:
        self._constants.append(value)
        self._emit("LOAD_CONST", len(self._constants) - 1)

    def _call(self, method: str, count: int = 0, *values: object) -> None:
        """``recorder.method(*taken, *values)``, with so many ``taken`` from the stack."""
        if method not in self._hooks:
            self._hooks[method] = len(self._constants)
            self._constants.append(getattr(self._recorder, method))
        self._room = max(self._room, 3 + len(values))
        self._emit("LOAD_CONST", self._hooks[method])
        for depth in range(count + 1, 1, -1):
            self._emit("SWAP", depth)
        for value in values:
            self._constant(value)
        argument_count = count + len(values) - 1  # besides the first one, which stands where an instance does
        if "PRECALL" in dis.opmap:
            self._emit("PRECALL", argument_count)
        self._emit("CALL", argument_count)

    def _at(self, depth: int, method: str, *values: object) -> None:
        """Put ``recorder.method(value, *values)`` in the place of the value so far below the top, which is 1."""
        if depth > 1:
            self._emit("SWAP", depth)
        self._call(method, 1, *values)
        if depth > 1:
            self._emit("SWAP", depth)

    def _note(self, method: str, *values: object) -> None:
        self._call(method, 0, *values)
        self._emit("POP_TOP")

    def _before(self, back: int) -> Instruction | None:
        """The instruction that many before this one."""
        return self._instructions[self._position - back] if self._position >= back else None

    def _loaded_constant(self, back: int) -> Any:
        """The constant that the instruction that many before this one loads.  Raises Unknown if it loads none."""
        before = self._before(back)
        if before is None or before.name != "LOAD_CONST":
            raise Unknown("its byte code is not what the compiler makes")
        return self._code.co_consts[before.arg]

    # Instructions

    def _instruction(self, each: Instruction) -> None:
        name = each.name
        if name in _BEFORE:
            if name == "TO_BOOL" and self._is_negated():
                self._emit("NOP")  # ``negated`` asks
                return
            self._call(_BEFORE[name], 1)
            if name != "TO_BOOL":
                self._out.append(each)
        elif name in _QUIET_INTRINSICS:
            if each.arg == _POSITIVE and name == "CALL_INTRINSIC_1":
                self._call("use", 1)
            elif each.arg not in _QUIET_INTRINSICS[name]:
                raise Unknown(f"its byte code has {name} {each.arg}, which is not known")
            self._out.append(each)
        elif name in _REPLACED:
            _REPLACED[name](self, each)
        elif name in _NOTED:
            _NOTED[name](self, each)
            self._out.append(each)
        elif name in _QUIET:
            self._out.append(each)
        else:
            raise Unknown(f"its byte code has {name}, which is not known")

    def _is_negated(self) -> bool:
        """Whether the next instruction is a ``not`` that is come to from here alone."""
        following = self._instructions[self._position + 1]
        return following.name == "UNARY_NOT" and id(following) not in self._targets

    # Names

    def _load_global(self, each: Instruction) -> None:
        calls = each.arg & 1
        if calls and _NULL_FIRST:
            self._emit("PUSH_NULL")
        self._call("name", 0, self._code.co_names[each.arg >> 1])
        if calls and not _NULL_FIRST:
            self._emit("PUSH_NULL")

    def _load_name(self, each: Instruction) -> None:
        self._call("class_name", 0, self._code.co_names[each.arg])

    def _load_from_dict_or_globals(self, each: Instruction) -> None:
        self._call("name_or_global", 1, self._code.co_names[each.arg])

    def _store_global(self, each: Instruction) -> None:
        self._note("writes_name", self._code.co_names[each.arg])

    def _cell(self, each: Instruction) -> str | None:
        """Push the cell of a variable, if it is one from outside, and give its name."""
        name = self._variables[each.arg]
        if name not in self._outside or each.arg < len(self._variables) - len(self._code.co_freevars):
            return None
        self._emit(_CELL, each.arg)
        self._room = max(self._room, 4)
        return name

    def _load_deref(self, each: Instruction) -> None:
        name = self._cell(each)
        if name is None:
            self._out.append(each)
        else:
            self._call("cell_value", 1, name)

    def _load_classderef(self, each: Instruction) -> None:
        name = self._cell(each)
        if name is None:
            self._out.append(each)
        else:
            self._call("class_cell", 1, name)

    def _load_from_dict_or_deref(self, each: Instruction) -> None:
        name = self._cell(each)
        if name is None:
            self._out.append(each)
        else:
            self._call("name_or_cell", 2, name)

    def _store_deref(self, each: Instruction) -> None:
        name = self._cell(each)
        if name is not None:
            self._call("writes_cell_value", 1, name)
            self._emit("POP_TOP")

    def _import_name(self, each: Instruction) -> None:
        self._note("imports", self._code.co_names[each.arg], self._loaded_constant(2))

    def _import_from(self, each: Instruction) -> None:
        self._emit("COPY", 1)
        self._room = max(self._room, 5)
        self._call("imported_from", 1, self._code.co_names[each.arg])
        self._emit("POP_TOP")

    # Attributes and items

    def _load_attr(self, each: Instruction) -> None:
        self._call("attribute", 1, self._code.co_names[each.arg >> _NAME_SHIFT])
        if each.arg & _NAME_SHIFT:
            self._as_method()

    def _load_method(self, each: Instruction) -> None:
        self._call("attribute", 1, self._code.co_names[each.arg])
        self._as_method()

    def _as_method(self) -> None:
        """What is on top of the stack is called, without an instance."""
        self._emit("PUSH_NULL")
        if _NULL_FIRST:
            self._emit("SWAP", 2)

    def _load_super_attr(self, each: Instruction) -> None:
        self._call("super_attribute", 3, self._code.co_names[each.arg >> 2], bool(each.arg & 2))
        if each.arg & 1:
            self._as_method()

    def _store_attr(self, each: Instruction) -> None:
        self._call("writes", 1, self._code.co_names[each.arg])

    def _binary_subscr(self, each: Instruction) -> None:
        self._call("item", 2)

    def _binary_slice(self, each: Instruction) -> None:
        self._emit("BUILD_SLICE", 2)
        self._call("item", 2)

    def _store_subscr(self, each: Instruction) -> None:
        self._at(2, "writes_item")

    def _store_slice(self, each: Instruction) -> None:
        self._at(3, "writes_item")

    # Operators

    def _binary_op(self, each: Instruction) -> None:
        if all((before := self._before(back)) is not None and before.name == "LOAD_CONST" for back in (1, 2)):
            self._out.append(each)  # as the compiler left it, which computes what it can
            return
        symbol = dis._nb_ops[each.arg][1]  # type: ignore[attr-defined]
        changes = symbol.endswith("=")
        self._call("changed" if changes else "operation", 2, _OPERATORS[symbol.removesuffix("=")])

    def _compare_op(self, each: Instruction) -> None:
        as_bool = sys.version_info >= (3, 13) and each.arg & _AS_BOOL and not self._is_negated()
        symbol = dis.cmp_op[each.arg >> _COMPARISON_SHIFT]
        self._call("asked" if as_bool else "compared", 2, _COMPARISONS[symbol])

    def _is_op(self, each: Instruction) -> None:
        self._call("is_not" if each.arg else "is_", 2)

    def _contains_op(self, each: Instruction) -> None:
        self._call("contains", 2)
        if each.arg:
            self._call("negated", 1)

    def _unary_not(self, each: Instruction) -> None:
        self._call("negated", 1)

    # Calls

    def _precall(self, each: Instruction) -> None:
        if not self._follows_names():
            self._prepare_call(each.arg)

    def _kw_names(self, each: Instruction) -> None:
        self._prepare_call(self._instructions[self._position + 1].arg)

    def _plain_call(self, each: Instruction) -> None:
        if "PRECALL" not in dis.opmap and not self._follows_names():
            self._prepare_call(each.arg)

    def _call_kw(self, each: Instruction) -> None:
        self._at(each.arg + 3, "callee")

    def _follows_names(self) -> bool:
        before = self._before(1)
        return before is not None and before.name == "KW_NAMES"

    def _prepare_call(self, count: int) -> None:
        """Prepare what a call with so many arguments calls."""
        each = self._instructions[self._position]
        if (self._nulls is not None and not self._nulls.is_reached(each)) or (count == 2 and self._leaves_with()):
            return  # it never runs, or ends a ``with``, whose manager's method was looked at when it began
        if self._nulls is None:
            self._at(count + 2, "callee")
        elif self._nulls.is_null(each, count + 2):
            self._at(count + 1, "callee")
        else:  # a decorator, or a comprehension, with its argument where an instance stands
            self._at(count + 2, "callee")

    def _leaves_with(self) -> bool:
        """Whether a call is what the compiler writes at the end of a ``with``."""
        return all(
            (before := self._before(back)) is not None
            and before.name == "LOAD_CONST"
            and self._code.co_consts[before.arg] is None
            for back in (1, 2, 3)
        )

    def _call_function_ex(self, each: Instruction) -> None:
        named = each.arg & 1
        self._at(1 + named, "iterate")
        self._at(2 + named + (0 if _NULL_FIRST else 1), "callee")

    # Texts

    def _format_value(self, each: Instruction) -> None:
        conversion = ("", "s", "r", "a")[each.arg & 3]
        self._call("formatted", 2 if each.arg & 4 else 1, *(() if each.arg & 4 else ("",)), conversion)

    def _convert_value(self, each: Instruction) -> None:
        self._call("converted", 1, ("", "s", "r", "a")[each.arg])

    def _format_simple(self, each: Instruction) -> None:
        self._call("formatted", 1, "", "")

    def _format_with_spec(self, each: Instruction) -> None:
        self._call("formatted", 2, "")

    def _build_string(self, each: Instruction) -> None:
        self._emit("BUILD_TUPLE", each.arg)
        self._call("text", 1)

    # Patterns

    def _match_class(self, each: Instruction) -> None:
        self._at(3, "matched", *self._loaded_constant(1))


_Method = Callable[[_Instrumenter, Instruction], None]
# Instructions in whose place the recorder does what they do.
_REPLACED: dict[str, _Method] = {
    "LOAD_GLOBAL": _Instrumenter._load_global,
    "LOAD_NAME": _Instrumenter._load_name,
    "LOAD_FROM_DICT_OR_GLOBALS": _Instrumenter._load_from_dict_or_globals,
    "LOAD_DEREF": _Instrumenter._load_deref,
    "LOAD_CLASSDEREF": _Instrumenter._load_classderef,
    "LOAD_FROM_DICT_OR_DEREF": _Instrumenter._load_from_dict_or_deref,
    "LOAD_ATTR": _Instrumenter._load_attr,
    "LOAD_METHOD": _Instrumenter._load_method,
    "LOAD_SUPER_ATTR": _Instrumenter._load_super_attr,
    "BINARY_SUBSCR": _Instrumenter._binary_subscr,
    "BINARY_SLICE": _Instrumenter._binary_slice,
    "BINARY_OP": _Instrumenter._binary_op,
    "COMPARE_OP": _Instrumenter._compare_op,
    "IS_OP": _Instrumenter._is_op,
    "CONTAINS_OP": _Instrumenter._contains_op,
    "UNARY_NOT": _Instrumenter._unary_not,
    "FORMAT_VALUE": _Instrumenter._format_value,
    "CONVERT_VALUE": _Instrumenter._convert_value,
    "FORMAT_SIMPLE": _Instrumenter._format_simple,
    "FORMAT_WITH_SPEC": _Instrumenter._format_with_spec,
    "BUILD_STRING": _Instrumenter._build_string,
}
# Instructions that stay, after what the recorder is told.
_NOTED: dict[str, _Method] = {
    "STORE_GLOBAL": _Instrumenter._store_global,
    "DELETE_GLOBAL": _Instrumenter._store_global,
    "STORE_DEREF": _Instrumenter._store_deref,
    "DELETE_DEREF": _Instrumenter._store_deref,
    "IMPORT_NAME": _Instrumenter._import_name,
    "IMPORT_FROM": _Instrumenter._import_from,
    "STORE_ATTR": _Instrumenter._store_attr,
    "DELETE_ATTR": _Instrumenter._store_attr,
    "STORE_SUBSCR": _Instrumenter._store_subscr,
    "DELETE_SUBSCR": _Instrumenter._store_subscr,
    "STORE_SLICE": _Instrumenter._store_slice,
    "PRECALL": _Instrumenter._precall,
    "KW_NAMES": _Instrumenter._kw_names,
    "CALL": _Instrumenter._plain_call,
    "CALL_KW": _Instrumenter._call_kw,
    "CALL_FUNCTION_EX": _Instrumenter._call_function_ex,
    "MATCH_CLASS": _Instrumenter._match_class,
}
