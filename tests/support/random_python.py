"""Random programs of ordinary Python over tensors: branches, loops, jumps, names, containers, attributes, variables.

    python -m tests.support.random_python FIRST COUNT

runs programs FIRST, FIRST + 1, ... eagerly and compiled, some with gradients, and prints those that differ.  A program
may be refused, with an error of hybridflow's; how many are, and why, is told at the end.
"""

from __future__ import annotations

import collections
import linecache
import logging
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.errors import HybridflowError

ROWS = 10
_HEAD = """def f(x, n, v, rows):
    a, b, k, p = x * 1.25, x - 0.5, 0, 0.5
    box = [x * 0.5, x + 2]
    other, table, thing = box, {"p": [x * 3], "q": x}, Thing()
    thing.value, made = x * 1, []
    def helper(y):
        nonlocal b
        b = b + y
        if b > 3:
            thing.value = thing.value - b
        return y * 0.5
"""
_TAIL = """    total = a + b + box[0] * 2 + box[1] + table["p"][0] + table["q"] + thing.value + other[0] * 3 + k + p
    for item in made:
        total = total * 0.5 + item
    return total
"""


class Thing:
    value: Any


class Writer:
    """Writes the program of a seed."""

    def __init__(self, seed: int) -> None:
        self.r, self.names = random.Random(seed), 0

    def text(self) -> str:
        lines = [*self.block(1, 3, False), *self.block(1, 3, False)]
        return _HEAD + "\n".join(lines) + "\n" + _TAIL

    def name(self) -> str:
        self.names += 1
        return f"i{self.names}"

    def value(self) -> str:
        return self.r.choice(
            ["a", "b", "box[0]", "box[1]", "table['p'][0]", "table['q']", "thing.value", "x", "v.value()", "1.5", "p"]
            + ["(a * 0.5)", "(b - box[0])", "hf.sin(a)", "(thing.value + x)", "other[0]", "(k + x)", "hf.maximum(b, k)"]
            + ["max(a, b)", "(p if a > 0 else k)", "helper(a)"]
        )

    def condition(self) -> str:
        one = f"{self.value()} {self.r.choice(['<', '>', '<=', '>='])} (x + {self.r.choice(['0', '1', '-0.5'])})"
        return self.r.choice(
            [
                one,
                one,
                f"{one} and a > b",
                f"not {one}",
                f"{one} or k < 2",
                "k < n",
                "-1 < a < b",
                f"any([{one}, a > 2])",
            ]
        )

    def expression(self) -> str:
        return f"{self.value()} {self.r.choice('+-*')} {self.r.choice(['x', 'x', 'v.value()', '(p * x)'])} * 0.7"

    def block(self, indent: int, depth: int, loop: bool) -> list[str]:
        return [line for _ in range(self.r.randint(1, 3)) for line in self.statement(indent, depth, loop)]

    def statement(self, indent: int, depth: int, loop: bool) -> list[str]:
        pad, q = "    " * indent, self.r.random()
        if depth > 0 and q < 0.22:
            lines = [f"{pad}if {self.condition()}:", *self.block(indent + 1, depth - 1, loop)]
            if self.r.random() < 0.3:
                lines += [f"{pad}elif {self.condition()}:", *self.block(indent + 1, depth - 1, loop)]
            return lines + (self.otherwise(pad, indent, depth, loop) if self.r.random() < 0.5 else [])
        if depth > 0 and q < 0.36:
            lines = self.repeated(pad, indent, depth)
            return lines + (self.otherwise(pad, indent, depth, loop) if self.r.random() < 0.3 else [])
        if depth > 0 and q < 0.39:
            lines = [f"{pad}try:", *self.block(indent + 1, depth - 1, loop)]
            return [*lines, f"{pad}finally:", f"{pad}    a = a * 0.9"]
        if q < 0.45 and loop:
            return [f"{pad}if {self.condition()}:", f"{pad}    {self.r.choice(['break', 'continue'])}"]
        if q < 0.48:
            return [f"{pad}if {self.condition()}:", f"{pad}    return {self.value()} * x"]
        return [pad + self.simple()]

    def otherwise(self, pad: str, indent: int, depth: int, loop: bool) -> list[str]:
        return [f"{pad}else:", *self.block(indent + 1, depth - 1, loop)]

    def repeated(self, pad: str, indent: int, depth: int) -> list[str]:
        """A loop, of a few turns."""
        inside, name = self.block(indent + 1, depth - 1, True), self.name()
        kind = self.r.randrange(5)
        if kind == 0:
            end = self.r.choice(["n", "3"])
            return [f"{pad}{name} = n * 0", f"{pad}while {name} < {end}:", f"{pad}    {name} = {name} + 1", *inside]
        if kind == 1:
            return [f"{pad}for {name} in range({self.r.choice(['n', '3', '2'])}):", *inside]
        head = self.r.choice(
            [f"for {name} in rows:", f"for {name} in reversed(rows):", f"for {name}, _ in zip(rows, rows[1:]):"]
            + [f"for k, {name} in enumerate(rows):", f"for {name} in rows[:3]:"]
        )
        own = self.r.choice(
            [f"a = a * 0.5 + {name}", f"thing.value = hf.sin(thing.value) + {name}", f"made.append({name})"]
        )
        return [pad + head, f"{pad}    {own}", *inside]

    def simple(self) -> str:
        e = self.expression()
        return self.r.choice(
            [f"a = {e}", f"b = {e}", f"box[0] = {e}", "box[1] += x", f"table['p'][0] = {e}", f"thing.value = {e}"]
            + [
                "k = k + 1",
                "p = p * 0.5",
                f"v.assign({e})",
                "other = box",
                f"box = [{e}, x * 1]",
                f"table['p'] = [{e}]",
            ]
            + ["a, b = b, a", "helper(x)", "other[1] = other[1] * x", f"a = b if {self.condition()} else a"]
            + ["k = 1 if a > 0 else k", "p = -p if b > a else p", "b = sum(box, a) * 0.3"]
            + [f"if (c := {e}) > 0: b = c", "a = a and b if False else a", f"table = {{'p': [{e}], 'q': b}}"]
        )


def function(seed: int) -> Callable[..., Any]:
    """The program of a seed, whose text is found as that of a console is."""
    text, file = Writer(seed).text(), f"<random python {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    names: dict[str, Any] = {"hf": hf, "Thing": Thing}
    exec(compile(text, file, "exec"), names)
    found: Callable[..., Any] = names["f"]
    return found


def outcome(f: Callable[..., Any], x: float, n: int, derive: bool) -> Any:
    """What a run gives: bits, or what it raises."""
    v, rows = hf.Variable(np.float32(0.75)), hf.constant(np.linspace(-0.4, 0.5, ROWS, dtype="float32") * np.float32(x))
    try:
        given, number = hf.constant(x), hf.constant(n)
        if not derive:
            return _bits(f(given, number, v, rows)), _bits(v)
        with hf.GradientTape() as tape:
            tape.watch([given, rows])
            y = f(given, number, v, rows)
        sources = [given, rows, v]
        found = zip(tape.gradient(y, sources), sources)
        return _bits(y), [
            _bits(hf.zeros_like(x) if g is None else g + 0.0) for g, x in found
        ]  # what is connected is data
    except HybridflowError as error:
        return error


def _bits(x: Any) -> Any:
    return None if x is None else (str(np.asarray(x).dtype), np.asarray(x).tobytes())


class Rounded(str):
    """A difference in the last bits of derivatives alone.

    Where a name holds this tensor or that, which a tensor decides about, Python's tape adds up what is read through the
    name and through others of the same tensor in the order in which it was read.  A compiled program knows the name
    apart, and adds its sum.
    """


def difference(seed: int) -> str | HybridflowError | None:
    """What is wrong with a program (``Rounded`` if next to nothing), or the error with which it is refused."""
    rounded = None
    f = function(seed)
    compiled = hf.function(f)
    for x, n in ((1.3, 3), (-0.7, 0), (2.2, 1)):
        want, got = outcome(f, x, n, seed % 3 == 0), outcome(compiled, x, n, seed % 3 == 0)
        if isinstance(got, HybridflowError) and not isinstance(want, HybridflowError):
            return got
        if isinstance(want, HybridflowError) and isinstance(got, HybridflowError):
            continue
        if want != got:
            found = f"seed {seed}, x = {x}, n = {n}\n{Writer(seed).text()}eager {want}\ncompiled {got}"
            if seed % 3 or not _is_rounded(want, got):
                return found
            rounded = rounded or Rounded(found)
    return rounded


def _is_rounded(want: Any, got: Any) -> bool:
    """Whether results are the same, and derivatives the same but for rounding."""
    if want[0] != got[0]:
        return False
    for (dtype, one), (other_dtype, other) in zip(want[1], got[1]):
        a, b = np.frombuffer(one, dtype), np.frombuffer(other, other_dtype)
        if dtype != other_dtype or a.shape != b.shape:
            return False
        scale = np.max(np.abs(a), initial=0, where=np.isfinite(a))
        if not np.allclose(a, b, rtol=1e-6, atol=1e-6 * scale, equal_nan=True):
            return False
    return True


def main(first: int, count: int) -> int:
    logging.disable(logging.CRITICAL)
    refused: collections.Counter[str] = collections.Counter()
    wrong = rounded = 0
    for seed in range(first, first + count):
        found = difference(seed)
        if isinstance(found, HybridflowError):
            refused[str(found)[:70]] += 1
        elif isinstance(found, Rounded):
            rounded += 1
        elif found is not None:
            wrong += 1
            print(found, flush=True)
    print(f"{count} programs: {wrong} wrong, {rounded} with derivatives rounded otherwise")
    print(f"{sum(refused.values())} refused")
    for why, times in refused.most_common(12):
        print(f"{times:6} {why}")
    return wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]), int(sys.argv[2]))))
