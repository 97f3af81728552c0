"""What the rules of ops see of code generation: values, the emitter that makes them, and the source of elements.

The emitter itself (``compiler.codegen.core.emitter``) stands levels above the table; rules are written against these
protocols, and type checkers hold both sides to them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from hybridflow.compiler.ir.dtypes import DType
from hybridflow.compiler.ir.graph import Literal
from hybridflow.compiler.ir.types import Extent, TensorType
from hybridflow.compiler.program import Check


class Val(NamedTuple):
    """An LLVM operand: its text, dtype and lanes.  What rules see of it is the dtype."""

    ref: str
    dtype: np.dtype
    width: int

    @property
    def is_constant(self) -> bool:
        """Whether its text says its value."""
        return not self.ref.startswith("%")

    @property
    def integer(self) -> int | None:
        """The integer that all its lanes have, where its text says so."""
        _, _, text = self.ref.removesuffix(")").rpartition(" ")
        return int(text) if text.lstrip("-").isdecimal() and not self.ref.startswith("<") else None


Number = int | float | bool
Operand = Val | Number

State = tuple[Val, ...]
"""What a fold keeps of the elements that it has seen."""


class Emit(Protocol):
    """An emitter of code for values in lanes.  Numbers stand for constants of the other operand's dtype."""

    where: str | None  # the user's line of the node whose code is made

    def strict(self) -> AbstractContextManager[None]:
        """IEEE operations to the letter within, whatever ``fastmath`` says."""

    def shared(self, name: str, function: Callable[..., Val], *operands: Val) -> Val:
        """``function(e, *operands)``, whose code the uses of that name may have in common."""

    def const(self, value: Number | np.generic, dtype: DType, width: int | None = None) -> Val: ...
    def zero(self, dtype: DType) -> Val: ...
    def convert(self, a: Val, dtype: DType) -> Val: ...
    def bitcast(self, a: Val, dtype: DType) -> Val: ...
    def parts(self, value: Val) -> tuple[Val, Val]:
        """Real and imaginary part of complex numbers, which are no more than stored bits to everything else."""

    def joined_parts(self, real: Val, imag: Val) -> Val: ...

    # Floats and integers; integers wrap.
    def add(self, a: Operand, b: Operand) -> Val: ...
    def sub(self, a: Operand, b: Operand) -> Val: ...
    def mul(self, a: Operand, b: Operand) -> Val: ...
    def neg(self, a: Val) -> Val: ...
    def abs(self, a: Val) -> Val: ...

    # Floats.
    def div(self, a: Operand, b: Operand) -> Val: ...
    def fma(self, a: Operand, b: Operand, c: Operand) -> Val:
        """a * b + c, rounded once on every target."""

    def mul_where(self, kept: Val, a: Val, b: Val) -> Val:
        """a * b, or 0 in lanes where ``kept`` does not hold, in which nothing is multiplied."""

    def sqrt(self, a: Val) -> Val: ...
    def floor(self, a: Val) -> Val: ...
    def ceil(self, a: Val) -> Val: ...
    def trunc(self, a: Val) -> Val: ...
    def rint(self, a: Val) -> Val: ...
    def copysign(self, a: Operand, sign: Operand) -> Val: ...
    def minimum(self, a: Operand, b: Operand) -> Val:
        """The smaller; NaN if either is NaN, and -0.0 is less than 0.0."""

    def maximum(self, a: Operand, b: Operand) -> Val:
        """The larger; NaN if either is NaN, and 0.0 is more than -0.0."""

    def is_nan(self, a: Val) -> Val: ...
    def scale2(self, a: Val, exponent: Val, kept: Val | None = None) -> Val:
        """a * 2**exponent, rounded once; 0 in lanes where ``kept`` does not hold, whatever the operands are there."""

    def with_overflow(self, name: str, a: Operand, b: Operand) -> tuple[Val, Val]:
        """``add``, ``sub`` or ``mul`` of signed integers, and whether the exact result needs more bits."""

    # Integers: divisors of active lanes are not zero, shifts take amounts below the number of bits.
    def idiv(self, a: Operand, b: Operand) -> Val: ...
    def irem(self, a: Operand, b: Operand) -> Val: ...
    def shl(self, a: Operand, b: Operand) -> Val: ...
    def lshr(self, a: Operand, b: Operand) -> Val: ...
    def ashr(self, a: Operand, b: Operand) -> Val: ...

    # Bits and truth.
    def and_(self, a: Operand, b: Operand) -> Val: ...
    def or_(self, a: Operand, b: Operand) -> Val: ...
    def xor(self, a: Operand, b: Operand) -> Val: ...
    def not_(self, a: Val) -> Val: ...

    # Comparisons, false for NaN but for ``ne``; and choice.
    def eq(self, a: Operand, b: Operand) -> Val: ...
    def ne(self, a: Operand, b: Operand) -> Val: ...
    def lt(self, a: Operand, b: Operand) -> Val: ...
    def not_lt(self, a: Operand, b: Operand) -> Val:
        """Not less, and so true for NaN."""

    def le(self, a: Operand, b: Operand) -> Val: ...
    def gt(self, a: Operand, b: Operand) -> Val: ...
    def ge(self, a: Operand, b: Operand) -> Val: ...
    def select(self, condition: Val, a: Operand, b: Operand) -> Val: ...

    # Lanes.
    width: int

    def every(self, a: Val, step: int) -> Val:
        """Each ``step``-th lane from the first on, where that are two or more."""

    def interleaved(self, a: Val, b: Val) -> Val:
        """The lanes of two vectors in turn."""

    def halves(self, a: Val) -> Val:
        """uint64 lanes as twice as many uint32 lanes, low halves first."""

    # Tables, code that seldom runs, checks.
    def table(self, values: np.ndarray, hint: str) -> str:
        """A constant array in the module; the operand that points to it."""

    def gather(self, base: str, dtype: DType, offsets: Val) -> Val: ...
    def call(self, name: str, function: Callable[..., Sequence[Val]], *operands: Val) -> list[Val]:
        """``function(e, *operands)``, in code that all who call it by that name share."""

    def rarely(
        self, condition: Val, usual: Sequence[Val], name: str, unusual: Callable[..., Sequence[Val]], *operands: Val
    ) -> list[Val]:
        """``unusual(e, *operands)`` in the lanes where ``condition`` holds, ``usual`` in the others."""

    def mostly(
        self,
        holds: Callable[..., Val],
        quick: Callable[..., Val],
        name: str,
        general: Callable[..., Val],
        *operands: Val,
    ) -> Val:
        """``general(e, *operands)``; by ``quick(e, *operands)``, which is the same where ``holds(e, *operands)``, where
        that is so in all lanes, on targets where it pays."""

    def raise_if(self, condition: Val, check: Check) -> None:
        """Record that ``check`` failed when the condition holds in an active lane; computing goes on."""

    # Loops by hand, in basic blocks.
    lines: list[str]
    block: str

    def any(self, mask: Val) -> str: ...
    def new_label(self, hint: str = ...) -> str: ...
    def label(self, name: str, /) -> None: ...
    def branch(self, target: str, /) -> None: ...
    def branch_if(self, condition: str, yes: str, no: str, /) -> None: ...
    def phi(self, *incoming: tuple[Val, str]) -> Val: ...


class ElementSource(Protocol):
    """Where an ``element`` rule finds the elements of its op's inputs."""

    @property
    def e(self) -> Emit:
        """The emitter."""

    @property
    def types(self) -> tuple[TensorType, ...]:
        """The types of the inputs."""

    @property
    def out(self) -> TensorType:
        """The type of the result."""

    def load(self, k: int, index: Any) -> Val:
        """The element of input k at an index: expressions or numbers, one for each axis."""

    def load_linear(self, k: int, position: Any) -> Val:
        """The element of input k at a row-major position."""

    def inside(self, k: int, index: Any, where: Sequence[tuple[Any, Extent]], otherwise: Number) -> Val:
        """The element of input k at an index where each expression of ``where`` is at least 0 and below its extent;
        the number elsewhere, where nothing is read."""

    def linear(self, index: Any) -> Any:
        """The row-major position that an index means."""

    def value(self, ix: Any) -> Val:
        """An index expression as an int64 value."""

    def begin(self, ix: Any, multiple: int) -> Val | None:
        """The first lane's value of an index expression, as uint64, where each next lane's is larger by 1 and there
        are a multiple of so many lanes; None elsewhere."""

    def literal(self, value: Literal, index: Any) -> Val:
        """The element of a constant."""

    def sure(self, value: Val, extent: Extent) -> Any:
        """An index as an index expression: a value that is in range for certain where there is any element."""

    def repeat_while(
        self, start: Sequence[Val], iteration: Callable[..., Sequence[Val]], again: Callable[..., Val]
    ) -> Sequence[Val]:
        """``values = turn(*values)``, at first of ``start``, as long as any lane says ``again(*values)``."""

    def fold(
        self,
        first: Val,
        last: Val,
        extent: Extent,
        of: Extent,
        start: Val,
        add: Callable[[Any, Val], Val],
        by_position: bool = False,
    ) -> Val:
        """``total = add(position, total)``, at first ``start``, for each position from ``first`` to before ``last``,
        both of them read from tensors; positions are those of an axis of that extent, no others.  ``add`` looks
        elements up in an axis of extent ``of``; where that has none, nothing is added.  ``by_position``: what it
        adds depends on the position alone."""

    def clamp(self, value: Val, extent: Extent) -> Any:
        """An index read from a tensor as an index expression: the nearest one that is in range."""

    def check_index(self, value: Val, extent: Extent, check: Check) -> Any:
        """An index read from a tensor as an index expression: counted from the end when negative; ``check`` fails where
        it is out of range."""
