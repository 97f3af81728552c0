"""What the byte code of a function reads, and whose code it is."""

from __future__ import annotations

import dis
import os
import sys
import sysconfig
import types
from collections.abc import Iterator
from typing import Any

from hybridflow.errors import is_internal

_LIBRARIES = tuple(
    os.path.join(os.path.realpath(folder), "")
    for folder in {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
)
_NOTHING = object()


def is_users(code: types.CodeType) -> bool:
    """Whether code is the user's own, whose constants may change, and not a library's."""
    filename = code.co_filename
    if is_internal(filename) or filename.startswith("<frozen"):
        return False
    return not os.path.realpath(filename).startswith(_LIBRARIES) if os.sep in filename else True


def is_library_module(module: types.ModuleType) -> bool:
    filename = getattr(module, "__file__", None)
    if filename is None:
        return module.__name__ != "__main__" and module.__name__.partition(".")[0] in sys.stdlib_module_names
    return is_internal(filename) or os.path.realpath(filename).startswith(_LIBRARIES)


def is_users_class(kind: type) -> bool:
    """Whether a class is the user's own, whose instances may change, and not a library's."""
    module = sys.modules.get(kind.__module__)
    return module is None or not is_library_module(module)


def names(code: types.CodeType) -> set[str]:
    """The attributes that the code may read: every name that occurs in it, ``getattr(x, "name")`` included."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, str) and constant.isidentifier():
            found.add(constant)
    return found


def loads(code: types.CodeType) -> Iterator[tuple[str, str, tuple[tuple[str, Any], ...]]]:
    """Each chain of a name, attributes and constant subscripts that the code loads: (kind of name, name, steps)."""
    kind = name = ""
    steps: list[tuple[str, Any]] = []
    constant: Any = _NOTHING
    for instruction in dis.get_instructions(code):
        op, value = instruction.opname, instruction.argval
        if name and op in ("LOAD_ATTR", "LOAD_METHOD"):
            steps.append(("attribute", value))
            continue
        if name and op in ("LOAD_CONST", "LOAD_SMALL_INT"):
            if constant is _NOTHING and isinstance(value, (str, int)):
                constant = value
                continue
        elif name and constant is not _NOTHING and (op == "BINARY_SUBSCR" or instruction.argrepr == "[]"):
            steps.append(("item", constant))
            constant = _NOTHING
            continue
        if name:
            yield kind, name, tuple(steps)
        kind = name = ""
        constant = _NOTHING
        if op in ("LOAD_GLOBAL", "LOAD_NAME"):
            kind, name, steps = "global", value, []
        elif op.startswith(("LOAD_DEREF", "LOAD_FAST", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF")):
            kind, name, steps = "local", value[-1] if isinstance(value, tuple) else value, []
    if name:
        yield kind, name, tuple(steps)


def stored(code: types.CodeType) -> set[str]:
    """The local names that the code assigns to."""
    names: set[str] = set()
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")):
            value = instruction.argval
            names.update(value if isinstance(value, tuple) else (value,))
    return names
