"""Random graphs of nested control flow, over ops whose references have the bits of compiled code."""

from __future__ import annotations

import functools
import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TOKEN
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import TABLE

LENGTH = 3  # of arrays, where it is not the symbol n
DTYPES = (dt.int64, dt.float32)


class _Builder(GraphBuilder):
    """``token`` is what the next effect takes, None where there are no effects."""

    token: Node | None

    def __init__(self, name: str, token: bool) -> None:
        super().__init__(TABLE, name)
        self.token = self.parameter(TOKEN) if token else None

    def ordered(self) -> list[Node]:
        return [] if self.token is None else [self.token]

    def results(self, value: Node) -> tuple[Node, ...]:
        """The results, but for the token among them, which the next effect takes."""
        found = super().results(value)
        if found and found[0].type == TOKEN:
            self.token, *found = found
        return tuple(found)


class Generator:
    """Grows graphs from a seed.  ``symbolic`` arrays have n elements; ``effects`` are callbacks, of ``functions``."""

    def __init__(self, seed: int, symbolic: bool, effects: bool = False) -> None:
        self.r = random.Random(seed)
        self.effects = effects
        self.made: list[tuple[TensorType, ...]] = []  # what each function returns
        self.shapes: tuple[Any, ...] = ((), (Dim("n") if symbolic else LENGTH,))

    def functions(self, log: list[Any]) -> list[Callable[..., Any]]:
        """What callbacks call: functions that tell ``log`` what they are given, and make something of its bits, or
        raise KeyError."""

        def function(number: int, *arrays: np.ndarray) -> Any:
            given = [a.tobytes() for a in arrays]
            log.append((number, given))
            value = zlib.crc32(repr(log[-1]).encode())
            if value % 16 == 0:
                raise KeyError(number)
            made = [np.full([LENGTH] * t.ndim, value % (5 + k), t.dtype) for k, t in enumerate(self.made[number])]
            return made[0] if len(made) == 1 else made

        return [functools.partial(function, number) for number in range(len(self.made))]

    def type(self) -> TensorType:
        return TensorType(self.r.choice(self.shapes), self.r.choice(DTYPES))

    def program(self) -> tuple[Graph, list[np.ndarray]]:
        b = _Builder("random", token=False)
        types = [TensorType(shape, dtype) for shape in self.shapes for dtype in DTYPES]
        pool = [b.parameter(t) for t in types]
        b.token = b.emit(TABLE["token"]) if self.effects else None
        self.grow(b, pool, 3, self.r.randrange(2, 6))
        rng = np.random.default_rng(self.r.randrange(2**32))
        arrays = [rng.integers(-3, 6, tuple(LENGTH for _ in t.shape)).astype(t.dtype) for t in types]
        return b.finish(self.r.sample(pool, min(4, len(pool)))), arrays

    def grow(self, b: _Builder, pool: list[Node], depth: int, steps: int) -> None:
        for _ in range(steps):
            b.location = f"user.py:{len(b.nodes)}"
            control = (self.choice, self.repetition, self.walk) if depth else ()
            effects = (self.callback, self.callback) if self.effects else ()
            moves = (self.arithmetic, self.arithmetic, self.division, self.fold, *control, *effects)
            self.r.choice(moves)(b, pool, depth)

    def of(self, b: _Builder, pool: list[Node], type: TensorType) -> Node:
        """A value of a type: one that there is, or a constant."""
        found = [n for n in pool if n.type == type]
        if found and self.r.random() < 0.9:
            return self.r.choice(found)
        return b.full(self.r.randrange(-2, 5), like=type)

    def arithmetic(self, b: _Builder, pool: list[Node], depth: int) -> None:
        type = self.type()
        x, y = self.of(b, pool, type), self.of(b, pool, type)
        name = self.r.choice(("add", "subtract", "multiply", "maximum", "where"))
        pool.append(b.where(b.less(x, y), x, y) if name == "where" else getattr(b, name)(x, y))

    def division(self, b: _Builder, pool: list[Node], depth: int) -> None:
        type = TensorType(self.r.choice(self.shapes), dt.int64)
        x, y = self.of(b, pool, type), self.of(b, pool, type)
        safe = self.r.random() < 0.7
        pool.append(b.floor_divide(x, b.maximum(y, b.full(1, like=type)) if safe else y))

    def fold(self, b: _Builder, pool: list[Node], depth: int) -> None:
        x = self.of(b, pool, TensorType(self.shapes[1], self.r.choice(DTYPES)))
        pool.append(b.max(x, axes=(0,)))

    def callback(self, b: _Builder, pool: list[Node], depth: int) -> None:
        types = tuple(self.type() for _ in range(self.r.randrange(3)))
        given = self.operands(b, pool, self.r.randrange(3))
        self.made.append(types)
        pool += b.results(b.callback(*b.ordered(), *given, number=len(self.made) - 1, types=types))

    def operands(self, b: _Builder, pool: list[Node], count: int) -> list[Node]:
        return [self.of(b, pool, self.type()) for _ in range(count)]

    def graph(self, types: list[TensorType], results: list[TensorType], depth: int) -> Graph:
        b = _Builder("inner", self.effects)
        pool = [b.parameter(t) for t in types]
        self.grow(b, pool, depth - 1, self.r.randrange(0, 4))
        outputs = [self.of(b, pool, t) for t in results]
        return b.finish([*b.ordered(), *outputs])

    def choice(self, b: _Builder, pool: list[Node], depth: int) -> None:
        given, results = (
            self.operands(b, pool, self.r.randrange(4)),
            [self.type() for _ in range(self.r.randrange(1, 4))],
        )
        types = [n.type for n in given]
        scalar = TensorType((), dt.int64)
        x, y = self.of(b, pool, scalar), self.of(b, pool, scalar)
        which, count = (b.less(x, y), 2) if self.r.random() < 0.5 else (x, self.r.randrange(1, 4))
        branches = tuple(self.graph(types, results, depth) for _ in range(count))
        pool += b.results(b.cond(which, *b.ordered(), *given, branches=branches))

    def repetition(self, b: _Builder, pool: list[Node], depth: int) -> None:
        """A loop of a few turns: its first carry counts, behind the token."""
        scalar = TensorType((), dt.int64)
        carries, rest = self.operands(b, pool, self.r.randrange(3)), self.operands(b, pool, self.r.randrange(3))
        types = [scalar, *(n.type for n in (*carries, *rest))]
        c = _Builder("cond", token=False)
        inputs = [c.parameter(t) for t in types]
        cond = c.finish([c.less(inputs[0], c.full(self.r.randrange(4), like=scalar))])
        body = self.graph(types, [n.type for n in carries], depth)
        c = _Builder("body", self.effects)
        inputs = [c.parameter(t) for t in types]
        inner = c.results(c.call(*c.ordered(), *inputs, body=body))
        body = c.finish([*c.ordered(), c.add(inputs[0], c.full(1, like=scalar)), *inner])
        start = b.full(0, like=scalar)
        pool += b.results(b.emit(TABLE["while"], *b.ordered(), start, *carries, *rest, cond=cond, body=body))

    def walk(self, b: _Builder, pool: list[Node], depth: int) -> None:
        carries, rest = self.operands(b, pool, self.r.randrange(3)), self.operands(b, pool, self.r.randrange(2))
        length = self.shapes[1][0]
        stacked = [self.of(b, pool, TensorType((length,), self.r.choice(DTYPES))) for _ in range(self.r.randrange(3))]
        slices = [TensorType((), n.dtype) for n in stacked]
        types = [*(n.type for n in carries), *slices, *(n.type for n in rest)]
        made = [self.type() for _ in range(self.r.randrange(3))]
        body = self.graph(types, [*(n.type for n in carries), *made], depth)
        out = b.scan(
            *b.ordered(), *carries, *stacked, *rest, body=body, carries=len(carries) + self.effects,
            stacked=len(stacked), length=length, reverse=self.r.random() < 0.5,
        )  # fmt: skip
        pool += [n for n in b.results(out) if n.type.ndim < 2]
