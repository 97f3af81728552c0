"""Random programs as data: statements that can be taken out, and the Python text that they stand for.

A program is rendered to a module that defines ``make(function)``, which makes variables and the traced function anew,
and ``calls``, the arguments of each call.  The fuzzer runs exactly that text, with ``hf.function`` and without, so a
failure that it prints can be pasted into a file and run from the repository's root.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops.reference_arrays import convert
from hybridflow.compiler.ops.samples import edges

# Names: v values, p parameters of a nested function, x i d k arguments (values, indices, divisors, samples), C captured
# tensors, V variables, f nested functions, t tapes.
_NAME = re.compile(r"\b[vpxidkCVft]\d+\b")


@functools.lru_cache(maxsize=4096)
def names_in(text: str) -> frozenset[str]:
    return frozenset(_NAME.findall(text))


@dataclass(frozen=True)
class Statement:
    """One line.  ``inside`` names the tapes in whose blocks it stands, the outermost first."""

    text: str
    inside: tuple[str, ...] = ()

    @property
    def makes(self) -> frozenset[str]:
        left, equals, _ = self.text.partition(" = ")
        return names_in(left) if equals else frozenset()

    @property
    def uses(self) -> frozenset[str]:
        left, equals, right = self.text.partition(" = ")
        return names_in(right if equals else left) | frozenset(self.inside)


@dataclass(frozen=True)
class Body:
    """A Python function: nested ones are called by name, the main one is called ``program``."""

    name: str
    parameters: tuple[str, ...]
    statements: tuple[Statement, ...]
    results: tuple[str, ...]

    @property
    def uses(self) -> frozenset[str]:
        return frozenset().union(*(s.uses for s in self.statements), self.results)

    def text(self, decorator: str) -> str:
        lines = [decorator, f"def {self.name}({', '.join(self.parameters)}):"]
        inside: tuple[str, ...] = ()
        for statement in self.statements:
            common = len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(inside, statement.inside))))
            for depth in range(common, len(statement.inside)):
                lines.append(f"{'    ' * (depth + 1)}with hf.GradientTape() as {statement.inside[depth]}:")
            inside = statement.inside
            lines.append("    " * (len(inside) + 1) + statement.text)
        lines.append(f"    return {', '.join(self.results) or None}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Values:
    """An array, by how it is made: a ``kind`` of contents, from a seed.

    plain    random values of the dtype          edges    the same with edge values (NaN, -0.0, subnormals ...) mixed in
    index    valid positions of an axis of ``bound`` elements           bad index    the same, one of them invalid
    divisor  integers other than 0               bad divisor    the same with a zero
    given    the elements in ``elements``
    """

    dtype: str
    shape: tuple[int, ...]
    kind: str = "plain"
    seed: int = 0
    bound: int = 0
    elements: tuple[Any, ...] = ()

    def array(self) -> np.ndarray:
        dtype = np.dtype(self.dtype)
        if self.kind == "given":
            wide = np.float64 if dt.is_float(dtype) else dtype
            return np.array(self.elements, wide).reshape(self.shape).astype(dtype)
        rng = np.random.default_rng(self.seed)
        if self.kind.endswith("index"):
            found = rng.integers(-self.bound, max(self.bound, -self.bound + 1), self.shape).astype(dtype)
            wrong = rng.choice([self.bound, -self.bound - 1, 10**6])
        elif self.kind.endswith("divisor"):
            found = rng.integers(1, 9, self.shape).astype(dtype)
            wrong = np.int64(0)
        else:
            return _mixed(rng, dtype, self.shape, 0.3 if self.kind == "edges" else 0.0)
        if self.kind.startswith("bad") and found.size:
            found.reshape(-1)[rng.integers(found.size)] = wrong.astype(dtype)
        return found

    def __str__(self) -> str:
        parts = [repr(self.dtype), repr(self.shape)]
        for name, usual in (("kind", "plain"), ("seed", 0), ("bound", 0), ("elements", ())):
            if getattr(self, name) != usual:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"Values({', '.join(parts)})"

    def reseeded(self, seed: int) -> Values:
        """Other values of the same kind."""
        return self if self.kind == "given" else replace(self, seed=seed)

    def with_edges(self) -> Values:
        return replace(self, kind="edges") if self.kind == "plain" else self

    def spoilt(self) -> Values:
        """With an invalid element, if these are positions or divisors."""
        return replace(self, kind=f"bad {self.kind}") if self.kind in ("index", "divisor") else self

    @classmethod
    def given(cls, array: np.ndarray) -> Values:
        return cls(array.dtype.name, array.shape, "given", elements=tuple(array.reshape(-1).tolist()))


def _mixed(rng: np.random.Generator, dtype: Any, shape: tuple[int, ...], share: float) -> np.ndarray:
    """Random values, mostly tame so that differences are not lost in NaN and infinities, and a share of edge values."""
    if dt.is_bool(dtype):
        return np.asarray(rng.random(shape) < 0.5)
    if dt.is_integer(dtype):
        found = rng.integers(-9 * dt.is_signed(dtype), 10, shape).astype(dtype)
    else:
        found = convert(np.asarray(rng.normal(0, 1.5, shape)), dtype)
    hard = edges(dtype)
    return np.where(rng.random(shape) < share, rng.choice(hard, shape), found).astype(dtype)


class Settings(NamedTuple):
    """What changes how a program is compiled or called, and must not change what it does."""

    target: str = ""  # a narrower machine than the host, which is taken where it cannot run that one's code
    skip: str = ""  # passes left out
    limits: tuple[tuple[str, int], ...] = ()  # of fusion: other numbers fuse otherwise
    held: bool = False  # whether earlier values of variables and results are held, so that none may be overwritten
    numpy: bool = False  # whether arguments are NumPy arrays
    shared: int = 0  # 1: arguments of one type are one tensor, 2: or the value of a variable of that type
    eagerly: bool = False  # whether traced functions are told to run eagerly, which leaves them their transactions
    tapes: int = 0  # tapes around each call
    replayed: bool = False  # whether eager gradients are compiled the first time that there is one
    threads: int = 0  # calls run on 1, 2 and 3 threads in turn, beginning with this; 0: as usual
    donated: bool = False  # whether calls give their arguments up
    forward: bool = False  # whether tangents of arguments and variables are pushed through each call
    poisoned: bool = False  # whether memory is full of NaN before it is written
    schedule: int = 0  # the number of each kernel's schedule; 0: as usual


USUAL = Settings()


@dataclass(frozen=True)
class Program:
    main: Body
    calls: tuple[tuple[Values, ...], ...]  # arguments, one row for each call
    helpers: tuple[Body, ...] = ()
    variables: Mapping[str, Values] = field(default_factory=dict)
    captured: Mapping[str, Values] = field(default_factory=dict)
    open: tuple[tuple[int, int], ...] = ()  # (parameter, axis) that the signature leaves open
    settings: Settings = USUAL

    @property
    def exact(self) -> bool:
        """Whether messages of errors count: where calls differ in shapes, traces have symbols, and so have messages."""
        return not self.open and len({tuple(values.shape for values in row) for row in self.calls}) <= 1

    def text(self) -> str:
        """The module.  ``make`` returns the program and its variables."""
        lines = [
            "from functools import reduce",
            "import numpy as np",
            "from numpy import inf, nan",
            "import hybridflow as hf",
            "from tests.support.compare_programs import main, op",
            "from tests.support.programs import Settings, Values",
            "",
            "def make(function):",
        ]
        made = [f"{name} = hf.Variable({values}.array())" for name, values in self.variables.items()]
        made += [f"{name} = hf.asarray({values}.array())" for name, values in self.captured.items()]
        made += [helper.text("@function") for helper in self.helpers]
        made.append(self.main.text(f"@function{self.signature()}"))
        made.append(f"return program, [{', '.join(self.variables)}]")
        lines += ["    " + line for block in made for line in block.split("\n")]
        lines += ["", "calls = ["]
        lines += ["    [" + ", ".join(map(str, row)) + "]," for row in self.calls]
        lines += [
            "]",
            f"settings = {self.settings!r}",
            f"exact = {self.exact}",
            "",
            'if __name__ == "__main__":',
            "    main(__file__)",
            "",
        ]
        return "\n".join(lines)

    def signature(self) -> str:
        options = []
        if self.settings.donated and self.main.parameters:
            options.append(f"donate_argnums={tuple(range(len(self.main.parameters)))}")
        if self.open:
            options.append(f"input_signature=[{', '.join(self._specs())}]")
        return f"({', '.join(options)})" if options else ""

    def _specs(self) -> list[str]:
        specs = []
        for k, values in enumerate(self.calls[0]):
            shape = tuple(None if (k, axis) in self.open else n for axis, n in enumerate(values.shape))
            specs.append(f"hf.TensorSpec({shape}, {values.dtype!r})")
        return specs

    # ---- smaller programs

    def without(self, unwanted: Iterable[Statement]) -> Program:
        """The program less these statements, and less all that then has no meaning or no use."""
        gone = set(unwanted)

        def kept(body: Body) -> Body:
            known = {*body.parameters, *self.variables, *self.captured, *(h.name for h in self.helpers)}
            statements = []
            for statement in body.statements:
                if statement not in gone and all(name in known for name in statement.uses if name[0] != "t"):
                    statements.append(statement)
                    known |= statement.makes
            return replace(body, statements=tuple(statements), results=tuple(r for r in body.results if r in known))

        smaller = replace(self, main=kept(self.main), helpers=tuple(map(kept, self.helpers)))
        return smaller.tidy()

    def tidy(self) -> Program:
        """Without nested functions, variables, captured tensors and arguments that nothing uses."""
        helpers = self.helpers
        used = self.main.uses
        while True:
            used = self.main.uses.union(*(h.uses for h in helpers))
            left = tuple(h for h in helpers if h.name in used)
            if left == helpers:
                break
            helpers = left
        wanted = [k for k, name in enumerate(self.main.parameters) if name in used]
        number = {k: position for position, k in enumerate(wanted)}
        return replace(
            self,
            helpers=helpers,
            variables={name: v for name, v in self.variables.items() if name in used},
            captured={name: v for name, v in self.captured.items() if name in used},
            main=replace(self.main, parameters=tuple(self.main.parameters[k] for k in wanted)),
            calls=tuple(tuple(row[k] for k in wanted) for row in self.calls),
            open=tuple((number[k], axis) for k, axis in self.open if k in number),
        )
