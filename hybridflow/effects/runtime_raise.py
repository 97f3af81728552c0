"""Errors that a program raises when it runs: the user's own, with the values that it found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from hybridflow.array import reductions
from hybridflow.autograph.runtime.exception_handlers import check_not_caught
from hybridflow.compiler.ir.extents import Dim
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.effects.exception_template import frames_of_user, parts_of_exception, said_of, traceback_of
from hybridflow.effects.runtime_text import RuntimeValues, joined
from hybridflow.errors import OF_PROGRAM, HybridflowError, is_of_program, short_location, user_location
from hybridflow.tracing.effect_token import require
from hybridflow.tracing.shape_env import current_shape_env

handlers: list[Callable[..., bool]] = []
"""Each is asked, with the first arguments of ``fail_unless``, whether the code that is traced catches the error itself:
it goes on then where there is none."""


def raise_unless(ok: Tensor, error: BaseException, cause: BaseException | None = None) -> None:
    """Have the program that is traced end with ``error`` where ``ok``, a scalar, is False.

    What it raises is of the error's type, with its arguments and attributes; tensors in them have values by then.
    """
    check_not_caught(type(error))
    where = short_location(user_location(2))
    frames = frames_of_user(error)
    said = said_of(error)
    pieces = _pieces_with_extents(said)
    if pieces:
        said[1] = [joined([(piece, "", "") if isinstance(piece, Dim) else piece for piece in pieces])]
    late = RuntimeValues([said, said_of(cause)])

    def fail(*arrays: np.ndarray) -> NoReturn:
        said, said_of_cause = late.filled(arrays)
        parts = parts_of_exception(said).with_traceback(traceback_of(frames))
        if not is_of_program(parts):
            parts.add_note(f"{OF_PROGRAM}  ({where})" if where else OF_PROGRAM)
        if not said_of_cause:
            raise parts
        raise parts from parts_of_exception(said_of_cause)

    require(ok, fail, late.tensors(), type(error), _text(error), _numbered(pieces))


def check_all(
    ok: Tensor, kind: type[BaseException], make: Callable[..., BaseException], values: Sequence[Any], message: str
) -> None:
    """Raise an error of a ``kind``, made of values, unless all elements of ``ok`` are True: now, or when the program
    that is traced runs."""
    holds = reductions.all(ok) if ok.shape else ok
    if now().trace is not None:
        fail_unless(holds, kind, make, values, message)
    elif not bool(holds):
        raise make(*values)


def fail_unless(
    ok: Tensor, kind: type[BaseException], make: Callable[..., BaseException], values: Sequence[Any], message: str
) -> None:
    """The same with an error of a ``kind`` that is made of values when it is raised."""
    if any(handler(ok, kind, make, values) for handler in handlers):
        return
    check_not_caught(kind)
    late = RuntimeValues(values, unwrapped=True)

    def fail(*arrays: np.ndarray) -> NoReturn:
        raise make(*late.filled(arrays))

    require(ok, fail, late.tensors(), kind, message)


_SHAPE = re.compile(r"(\[[^\[\]]*\]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")

_EXTENT = re.compile(r"([\[(]|, ?|[\])]$)")


def _pieces_with_extents(said: list[Any]) -> list[str | Dim]:
    """The text of an error of ours in pieces, with open extents where it has them in shapes; none where it has none."""
    kind, args = said[:2]
    shape_env = current_shape_env()
    if shape_env is None or not issubclass(kind, HybridflowError) or len(args) != 1 or not isinstance(args[0], str):
        return []
    known = shape_env.extents_by_text()
    pieces: list[str | Dim] = []
    for part in _SHAPE.split(args[0]):
        inner = _EXTENT.split(part)
        is_shape = _SHAPE.fullmatch(part) and all(text in known or not text.strip("0123456789") for text in inner[::2])
        pieces += [known.get(text, text) for text in inner] if is_shape else [part]
    return pieces if any(isinstance(piece, Dim) for piece in pieces) else []


def _numbered(pieces: Sequence[str | Dim]) -> list[str | int]:
    """The pieces, texts that follow one another as one, with the numbers of operands in the place of extents."""
    result: list[str | int] = [""]
    numbers = itertools.count()
    for piece in pieces:
        if isinstance(piece, Dim):
            result += [next(numbers), ""]
        else:
            result[-1] = f"{result[-1]}{piece}"
    return result if pieces else []


def _text(error: BaseException) -> str:
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
