"""One function's tree as a module of its own, that compiles to the function's own code object.

A unit is `def`, `class` and `lambda` around one node, as the code's qualified name says.  So free variables are bound,
names are mangled, and nested names are spelled as they were where the function stood.  Nothing of it is run.
"""

from __future__ import annotations
import __future__ as future_statements

import ast
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

_MARKED_COROUTINE = inspect.CO_ITERABLE_COROUTINE  # set by `types.coroutine`, not by the compiler
_FUTURE = 0
for _feature in future_statements.all_feature_names:
    _FUTURE |= getattr(future_statements, _feature).compiler_flag
_FUTURE &= ~inspect.CO_NESTED  # CO_NESTED serves `nested_scopes` too, which is always on

_FILE = "hybridflow: source of a function"  # while compiling; not <…>, which would be kept as a text that vanishes
_SILENCE = ("ignore", None, Warning, re.compile(re.escape(_FILE)), 0)


@contextmanager
def _silence() -> Iterator[None]:
    """No warnings for text that was compiled, and warned of, before.

    The filter fits our file name alone, so that other threads do not notice; `warnings.catch_warnings` would change
    the filters of all, and telling `warnings` of the change would make it repeat what it says once.
    """
    filters = warnings.filters
    filters.insert(0, _SILENCE)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        with suppress(ValueError):
            filters.remove(_SILENCE)  # type: ignore[attr-defined]


def future(code: CodeType) -> int:
    """The flags of `from __future__` statements that `code` was compiled under."""
    return code.co_flags & _FUTURE


def parse(text: str, flags: int) -> ast.Module | None:
    """The tree of a text, None if it has none (it may be a piece that was cut wrongly)."""
    with _silence(), suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        tree = compile(text, _FILE, "exec", flags | ast.PyCF_ONLY_AST, True)
        assert isinstance(tree, ast.Module)
        return tree
    return None


def compile_code(
    node: Function,
    code: CodeType,
    imported: Collection[str] = (),
    owner: str | None = None,
    prepare: Callable[[ast.Module], None] | None = None,
) -> CodeType:
    """The code object of `node` where `code` stood, with its flags and file name.  Bares the node.

    `imported` are names that the module imports at its top: the compiler treats `name.f()` differently for those.
    `owner` is the class around the node, where it may be one that the qualified name does not tell.  `prepare` may
    change the unit before.  Raises SyntaxError, ValueError or RecursionError.
    """
    module, depth = _wrap(node, code, imported, owner)
    if prepare is not None:
        prepare(module)
    with _silence():
        compiled = compile(module, _FILE, "exec", future(code), True)
    for _ in range(depth):
        compiled = _only(compiled)
    return _in_file(compiled, code.co_filename)


def _only(code: CodeType) -> CodeType:
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


def _in_file(code: CodeType, filename: str) -> CodeType:
    constants = tuple(_in_file(c, filename) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=filename, co_consts=constants)


def owner_of(code: CodeType) -> str | None:
    """The innermost class around `code`, by whose name private names in it are mangled."""
    return next((name for name, is_class in reversed(_scopes(code)) if is_class), None)


def _scopes(code: CodeType) -> list[tuple[str, bool]]:
    """(name, whether it is a class) of the scopes around a function, outermost first."""
    parts = code.co_qualname.split(".")
    return [(part, parts[place + 1] != "<locals>") for place, part in enumerate(parts[:-1]) if part != "<locals>"]


def _wrap(node: Function, code: CodeType, imported: Collection[str], owner: str | None) -> tuple[ast.Module, int]:
    """A module that compiles to a code object like `code`, so many levels below its own."""
    bare(node)
    line = first_line(node)
    place: dict[str, Any] = {"lineno": line, "end_lineno": line, "col_offset": 0, "end_col_offset": 0}
    inner: ast.stmt = ast.Expr(node, **place) if isinstance(node, ast.Lambda) else node
    scopes = _scopes(code)
    untold = []  # scopes that the name does not tell of: of type parameters, or above a global name
    if code.co_flags & inspect.CO_NESTED and all(is_class for _, is_class in scopes):
        untold.append(("<outside>", False))
    if owner is not None and owner != owner_of(code):
        untold.append((owner, True))
    class_name = code.co_qualname.partition(".")[0]
    scopes = untold + scopes
    binder = max((i for i, (_, is_class) in enumerate(scopes) if not is_class), default=None)
    has_class = any(is_class for _, is_class in scopes)
    free = [name for name in code.co_freevars if name != "__class__" or not has_class]
    for index in reversed(range(len(scopes))):
        name, is_class = scopes[index]
        body = [inner]
        if index == len(untold) - 1 and class_name != "<lambda>":
            body.insert(0, ast.Global([class_name], **place))
        if is_class:
            inner = ast.ClassDef(name, [], [], body, [], **place)
        else:
            parameters = [ast.arg(variable, None, None, **place) for variable in free] if index == binder else []
            arguments = ast.arguments([], parameters, None, [], [], None, [])
            inner = ast.FunctionDef(name, arguments, body, [], None, None, **place)
        if sys.version_info >= (3, 12):
            inner.type_params = []
    imports = [ast.Import([ast.alias(name, None, **place) for name in imported], **place)] if imported else []
    return ast.Module([*imports, inner], []), len(scopes) + 1


def bare(node: Function) -> None:
    """Take decorators, default values, annotations and type parameters off, which belong to the scope around.

    Constants stand in where the place counts: the first decorator's line is the function's first line.
    """
    arguments = node.args
    arguments.defaults = [_nothing(d) for d in arguments.defaults]
    arguments.kw_defaults = [d and _nothing(d) for d in arguments.kw_defaults]
    if isinstance(node, ast.Lambda):
        return
    for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg):
        if each is not None:
            each.annotation = None
    node.returns = None
    node.decorator_list = [_nothing(d) for d in node.decorator_list[:1]]
    if sys.version_info >= (3, 12):
        node.type_params = []


def _nothing(at: ast.expr) -> ast.Constant:
    return ast.copy_location(ast.Constant(None), at)


def first_line(node: Function) -> int:
    """The line that the node's code object starts at: of its first decorator, if it has one."""
    if not isinstance(node, ast.Lambda) and node.decorator_list:
        return node.decorator_list[0].lineno
    return node.lineno


def same(a: CodeType, b: CodeType) -> bool:
    """Whether two code objects are the same program, wherever it stands: all but names of scopes, and positions."""
    return (
        a.co_code == b.co_code
        and a.co_names == b.co_names
        and a.co_varnames == b.co_varnames
        and a.co_freevars == b.co_freevars
        and a.co_cellvars == b.co_cellvars
        and (a.co_flags ^ b.co_flags) & ~_MARKED_COROUTINE == 0
        and a.co_name == b.co_name
        and a.co_argcount == b.co_argcount
        and a.co_posonlyargcount == b.co_posonlyargcount
        and a.co_kwonlyargcount == b.co_kwonlyargcount
        and a.co_exceptiontable == b.co_exceptiontable
        and _same_constant(a.co_consts, b.co_consts)
    )


def _same_constant(a: object, b: object) -> bool:
    """Equal by type and by every bit: 1 is not 1.0 or True, 0.0 is not -0.0."""
    if type(a) is not type(b):
        return False
    if isinstance(a, CodeType) and isinstance(b, CodeType):
        return same(a, b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same_constant, a, b))
    if isinstance(a, frozenset) and isinstance(b, frozenset):
        return {(type(v), repr(v)) for v in a} == {(type(v), repr(v)) for v in b}
    return a is b or repr(a) == repr(b)
