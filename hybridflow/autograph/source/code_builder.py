"""Code objects made of a verified source whose tree was changed, that fit in the original's place.

`types.FunctionType(code, f.__globals__, f.__name__, f.__defaults__, f.__closure__)` or `f.__code__ = code` are then the
function as the tree has it, with its own defaults and cells: neither those nor its decorators are evaluated again.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType

from hybridflow.autograph.source.code_unit import Function, compile_code
from hybridflow.autograph.source.lookup import ByCode, Missing, Source, find

# Changes a function's tree.  It may do so in place; the result stands for the function, with the same parameters.  For
# a lambda it may return a FunctionDef of any name, when statements are wanted.  New nodes need positions: those of the
# user's nodes that they stand for.
Transformer = Callable[[Function, Source], Function]

_SHAPE = (
    inspect.CO_VARARGS
    | inspect.CO_VARKEYWORDS
    | inspect.CO_GENERATOR
    | inspect.CO_COROUTINE
    | inspect.CO_ASYNC_GENERATOR
)


class Rebuilder:
    """One kind of change of functions' code, made once for each code object.

    `objects` are what the changed code works with, by placeholder: a string unlike any of a user's.  Where the
    transformer writes `ast.Constant(placeholder)`, the code has the object itself, with no global, cell or argument.
    Write it as the object of an attribute (`placeholder.name(…)`) or as an argument; of a constant that is called or
    subscripted the compiler warns, and operators on constants are evaluated while compiling.  Code objects are unknown
    to the garbage collector: an object that refers to functions which it was built into is never freed.
    """

    def __init__(self, transform: Transformer, objects: Mapping[str, object] | None = None) -> None:
        self._transform = transform
        self._objects = dict(objects or {})
        self._built: ByCode[CodeType | Missing] = ByCode()

    def code(self, code: CodeType, function: FunctionType | None = None) -> CodeType | Missing:
        """The changed code, or why there is none.  Raises what the transformer raises.

        Two threads that ask at once may both make it; both get the same one.
        """
        known = self._built.get(code)
        if known is None:
            source = find(code, function)
            rebuilt = rebuild(source, self._transform, self._objects) if isinstance(source, Source) else source
            known = self._built.put(code, rebuilt)
        return known

    def function(self, function: FunctionType) -> FunctionType | Missing:
        """A function like the given one in all but its code, sharing its globals, cells and attributes' values."""
        code = self.code(function.__code__, function)
        return with_code(function, code) if isinstance(code, CodeType) else code


def with_code(function: FunctionType, code: CodeType) -> FunctionType:
    """A copy of a function with other code of the same free variables; cells, globals and defaults are shared."""
    copy = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__doc__ = function.__doc__
    copy.__dict__.update(function.__dict__)
    if sys.version_info < (3, 14):  # there they may be unevaluated, and evaluating them may fail
        copy.__annotations__ = function.__annotations__
    if sys.version_info >= (3, 12):
        copy.__type_params__ = function.__type_params__
    return copy


def rebuild(source: Source, transform: Transformer, objects: Mapping[str, object] | None = None) -> CodeType:
    """The code of `source`'s tree as `transform` leaves it.  Consumes the source.

    It has the original's free variables, names, file, first line, parameters and kind, and the positions that the nodes
    have.  Raises SyntaxError for a tree that is no program, ValueError for one that is no such function.
    """
    original = source.code
    result = _build(transform(source.node, source), source)
    if objects:
        result = _with_objects(result, objects)
    result = result.replace(
        co_name=original.co_name,
        co_qualname=original.co_qualname,
        co_flags=result.co_flags | original.co_flags & inspect.CO_ITERABLE_COROUTINE,
    )
    _check(result, original)
    return result


def _build(node: Function, source: Source) -> CodeType:
    """Compile a changed node where the original stood, keeping free variables that it may have ceased to use."""
    original = source.code
    if not isinstance(node, ast.Lambda):
        node.name = original.co_name
    result = compile_code(node, original, source.imported, source.owner)
    unused = [name for name in original.co_freevars if name not in result.co_freevars]
    if unused:
        _mention(node, unused)
        result = compile_code(node, original, source.imported, source.owner)
    return result


def _mention(node: Function, names: list[str]) -> None:
    """Make names free variables of a function by reading them where it never gets to."""
    if isinstance(node, ast.Lambda):
        at = node.body
        reads: list[ast.expr] = [ast.copy_location(ast.Name(name, ast.Load()), at) for name in names]
        mention = ast.copy_location(ast.Tuple(reads, ast.Load()), at)
        node.body = ast.copy_location(ast.IfExp(ast.copy_location(ast.Constant(True), at), at, mention), at)
        return
    last = node.body[-1]
    statements: list[ast.stmt] = [
        ast.copy_location(ast.Expr(ast.copy_location(ast.Name(name, ast.Load()), last)), last) for name in names
    ]
    never = ast.copy_location(ast.Constant(False), last)
    node.body.append(ast.copy_location(ast.If(never, statements, []), last))


def _with_objects(code: CodeType, objects: Mapping[str, object]) -> CodeType:
    return code.replace(co_consts=tuple(_replace_placeholders(constant, objects) for constant in code.co_consts))


def _replace_placeholders(constant: object, objects: Mapping[str, object]) -> object:
    """A constant with objects for placeholders, also in nested code and in tuples and sets that were folded."""
    if isinstance(constant, CodeType):
        return _with_objects(constant, objects)
    if type(constant) is str:
        return objects.get(constant, constant)
    if isinstance(constant, tuple):
        return tuple(_replace_placeholders(item, objects) for item in constant)
    if isinstance(constant, frozenset):
        return frozenset(_replace_placeholders(item, objects) for item in constant)
    return constant


def _check(rebuilt: CodeType, original: CodeType) -> None:
    """Raise ValueError unless `made` can stand in for `original`."""
    parameters = original.co_argcount + original.co_kwonlyargcount
    parameters += bool(original.co_flags & inspect.CO_VARARGS) + bool(original.co_flags & inspect.CO_VARKEYWORDS)
    for what, ours, theirs in (
        ("free variables", rebuilt.co_freevars, original.co_freevars),
        ("first line", rebuilt.co_firstlineno, original.co_firstlineno),
        ("number of parameters", rebuilt.co_argcount, original.co_argcount),
        ("number of positional parameters", rebuilt.co_posonlyargcount, original.co_posonlyargcount),
        ("number of keyword parameters", rebuilt.co_kwonlyargcount, original.co_kwonlyargcount),
        ("names of parameters", rebuilt.co_varnames[:parameters], original.co_varnames[:parameters]),
        ("kind", rebuilt.co_flags & _SHAPE, original.co_flags & _SHAPE),
    ):
        if ours != theirs:
            raise ValueError(f"[convert] the changed {original.co_qualname} has another {what}: {ours}, not {theirs}")
