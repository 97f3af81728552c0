"""Random loops that assign to elements of tensors, bind their names anew, and read them, for a compiled function to run
as eagerly."""

from __future__ import annotations

import random

NAMES = ("a", "b", "c")
PLACES = ("i", "i - 1", "(i * 3) % n", "n - 1 - i", "0", "-1", "k % n")
SLICES = ("1:3", "::2")


class _Writer:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def expression(self, depth: int = 0) -> str:
        kind = self.random.random()
        if kind < 0.35:
            return f"{self.name()}[{self.place()}]"
        if kind < 0.5:
            return "x[i]"
        if kind < 0.6:
            return f"hf.sum({self.name()}) * 0.01"
        if kind < 0.65:
            return f"hf.max({self.name()}) * 0.1"
        if depth > 2:
            return "1.5"
        return f"({self.expression(depth + 1)} {self.random.choice('+-*')} {self.expression(depth + 1)}) * 0.5"

    def name(self) -> str:
        return self.random.choice(NAMES)

    def place(self) -> str:
        return self.random.choice(PLACES)

    def statements(self, indent: int, depth: int = 0) -> list[str]:
        margin, kind = "    " * indent, self.random.random()
        if kind < 0.45:
            return [f"{margin}{self.name()}[{self.place()}] = {self.expression()}"]
        if kind < 0.6:
            one, other = self.random.sample(NAMES, 2)
            return [f"{margin}{one} = {other} + {self.random.choice(('0.5', f'0.0 * {one}'))}"]
        if kind < 0.68:
            return [f"{margin}{self.name()} = +{self.name()}"]
        if kind < 0.74:
            return [f"{margin}{self.name()}[{self.random.choice(SLICES)}] = {self.expression()}"]
        if kind < 0.78:
            return [f"{margin}k = k + 1"]
        if kind < 0.9 and depth < 2:
            lines = [f"{margin}if {self.expression()} > {self.random.choice(('0.0', '1.0'))}:"]
            lines += self.statements(indent + 1, depth + 1)
            if self.random.random() < 0.5:
                lines += [f"{margin}else:", *self.statements(indent + 1, depth + 1)]
            return lines
        if depth < 1:
            return [f"{margin}for _ in range(m):", *self.statements(indent + 1, depth + 1)]
        return [f"{margin}{self.name()}[{self.place()}] += {self.expression()}"]

    def program(self) -> str:
        lines = ["def f(x, n, m):", "    k = 0", "    a = x * 2.0"]
        lines.append(f"    b = {self.random.choice(('hf.zeros(6)', 'x + 1.0', 'a * 1.0'))}")
        lines.append(f"    c = {self.random.choice(('hf.ones(6)', 'b - 0.5', 'x * 1.0'))}")
        lines.append("    for i in range(n):")
        for _ in range(self.random.randint(1, 5)):
            lines += self.statements(2)
        return "\n".join([*lines, "    return a, b, c, k", ""])


def program(seed: int) -> str:
    """The text of ``f(x, n, m)``, of six numbers and two of turns."""
    return _Writer(seed).program()
