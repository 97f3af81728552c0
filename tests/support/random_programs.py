"""Random programs for the fuzzer.

A program is grown by shapes of graphs (see ``graph_shapes``): each takes values that the program has, adds statements,
and runs them at once, so that extents, dtypes and errors are those of the real thing.  All ops of the table take part,
new ones too.

The arrays of a program come from a *world*: a few shapes that fit each other.  In the square world everything fits
everything, so a value can be an operand of a product and of its epilogue at once.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.checked_integers import WRAPPING
from hybridflow.compiler.ops.op_table import OpDef
from hybridflow.compiler.passes.pass_pipeline import SKIPPABLE
from tests.support.compare_programs import CACHES, LIMITS, TARGETS, load, op
from tests.support.graph_shapes import GRAPH_SHAPES
from tests.support.program_texts import ALGEBRA, BINARY, FLOAT_ALGEBRA, KERNELS, VIEWS, Refused, call_text
from tests.support.programs import Body, Program, Settings, Statement, Values

MAX_ELEMENTS = 9000  # of a value that is used again; larger ones would only cost time
EXTENT = 5  # of the axes that the symbolic twin leaves open; no other axis has it

# Worlds: the shapes of arguments and variables.  n is an extent that the symbolic twin leaves open.
WORLDS: dict[str, tuple[float, Callable[[Random, int], list[tuple[int, ...]]]]] = {
    "square": (5, lambda r, n: [(n, n), (n, n), (n, n), (n,), (n, 1), (1, n), (2, n, n)]),
    "matrix": (3, lambda r, n: [(n, m := r.extent()), (n, m), (m,), (n, 1), (m, n), (1, m)]),
    "vector": (2, lambda r, n: [(n,), (n,), (), (1,), (n, 1)]),
    "rank 3": (2, lambda r, n: [(a := r.extent(), n, m := r.extent()), (n, m), (a, n, m), (m,), (a, 1, m)]),
    "tiny": (2, lambda r, n: [tuple(r.pick((0, 1, 1, 2, n)) for _ in range(r.pick((1, 2, 2, 3)))) for _ in range(3)]),
    "long": (0.5, lambda r, n: [(k := r.pick((63, 65, 130, 300, 1030)),), (n, k), (k,), (2, k), (k, 1), (4200,)]),
}
SETTINGS_SHARE = 0.35  # of programs that are compiled under other limits of fusion; likewise the following
SKIP_SHARE, TARGET_SHARE, HELD_SHARE, NUMPY_SHARE = 0.15, 0.3, 0.3, 0.15
THREADS_SHARE, DONATED_SHARE, POISONED_SHARE, FORWARD_SHARE = 0.6, 0.5, 0.6, 0.6
SCHEDULE_SHARE = 0.4
SHARED_SHARE, EAGERLY_SHARE, TAPES_SHARE, BAD_SHARE, REPLAYED_SHARE = 0.15, 0.04, 0.25, 0.4, 0.3

LIMIT_VALUES = {
    "MAX_MEMBERS": (1, 2, 4),
    "MAX_WORK": (1, 20, 100),
    "MAX_REDUCTIONS": (0, 1, 2),
    "RECENT": (0, 1),
    "CHEAP": (0, 3, 100),
    "MAX_DEPTH": (0, 1, 2),
    "MAX_MOVED": (0, 8, 40),
    "MAX_RECOMPUTED": (0, 8, 60),
    "MAX_DIVISIONS": (0, 2),
    "MAX_VIEWS": (0, 1, 3),
    "l2": (0, 64, 4096),
    "l3": (0, 64, 4096),
}
assert set(LIMIT_VALUES) == {*LIMITS, *CACHES}

FLOATS = ("float32", "float32", "float32", "float64", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")


class Random:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)

    def pick(self, items: Sequence[Any]) -> Any:
        if not items:
            raise Refused
        return items[self.rng.integers(len(items))]

    def weighted(self, choices: dict[Any, float]) -> Any:
        weights = np.array(list(choices.values()))
        return list(choices)[self.rng.choice(len(weights), p=weights / weights.sum())]

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def seed(self) -> int:
        return int(self.rng.integers(10**6))

    def extent(self) -> int:
        return self.pick((1, 2, 3, 3, 4, 7, 8, 9, 17, 33))


class Generator(Random):
    most_elements = MAX_ELEMENTS

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        world = self.weighted({name: weight for name, (weight, _) in WORLDS.items()})
        n = EXTENT if self.chance(0.85) else self.pick((1, 2, 3, 4, 8, 9, 17))
        self.shapes = WORLDS[world][1](self, n)
        self.dtypes = [self.pick(FLOATS) if self.chance(0.75) else self.pick((*INTEGERS, "bool"))]
        if self.chance(0.25):
            self.dtypes.append(self.pick((*FLOATS, *INTEGERS, "bool")))
        self.namespace: dict[str, Any] = {
            "reduce": functools.reduce,
            "hf": hf,
            "np": np,
            "op": op,
            "nan": np.nan,
            "inf": np.inf,
        }
        self.arguments: dict[str, Values] = {}
        self.variables: dict[str, Values] = {}
        self.captured: dict[str, Values] = {}
        self.helpers: list[Body] = []
        self.statements: list[Statement] = []
        self.pool: list[str] = []  # values that may be used, the latest last
        self.tapes: tuple[str, ...] = ()
        self.grown: list[str] = []  # the shapes of graphs in it
        self.count = 0
        self.in_helper = False

    # ---- names, statements, values

    def name(self, letter: str) -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def add(self, text: str) -> None:
        self.statements.append(Statement(text, self.tapes))

    def let(self, text: str, keep: bool = True) -> str:
        """A new value.  Raises Refused if it cannot be made, or is of no use."""
        name = self.name("v")
        value = self.run(text)
        if not isinstance(value, hf.Tensor) or value.size > self.most_elements:
            raise Refused
        self.namespace[name] = value
        self.add(f"{name} = {text}")
        if keep:
            self.pool.append(name)
        return name

    def run(self, text: str) -> Any:
        try:
            with np.errstate(all="ignore"):
                return eval(text, self.namespace)
        except Exception as error:
            raise Refused from error

    def value(self, name: str) -> Any:
        return self.namespace[name]

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.value(name).shape)

    def dtype(self, name: str) -> str:
        return str(self.value(name).dtype)

    def is_float(self, name: str) -> bool:
        return dt.is_float(self.value(name).dtype)

    def any(self, wanted: Callable[[str], bool] = lambda name: True) -> str:
        """A value, rather a late one."""
        fitting = [name for name in self.pool if wanted(name)]
        if not fitting:
            raise Refused
        return self.pick(fitting[-3:]) if self.chance(0.6) else self.pick(fitting)

    def parameter(self, values: Values, letter: str = "x") -> str:
        """A new argument of the program; inside a nested function a captured tensor."""
        name = self.name("C" if self.in_helper else letter)
        (self.captured if self.in_helper else self.arguments)[name] = values
        self.namespace[name] = hf.asarray(values.array())
        return name

    def new(self, shape: tuple[int, ...] | None = None, dtype: str | None = None) -> str:
        """A new array, by one of the ways in which arrays come into a program."""
        values = Values(
            dtype or self.pick(self.dtypes),
            self.pick(self.shapes) if shape is None else shape,
            "edges" if self.chance(0.15) else "plain",
            self.seed(),
        )
        way = self.weighted({"argument": 6, "captured": 1, "variable": 1.5})
        if way == "argument" or (way == "variable" and self.in_helper):
            name = self.parameter(values)
        elif way == "captured":
            name = self.name("C")
            self.captured[name] = values
            self.namespace[name] = hf.asarray(values.array())
        else:
            name = self.variable(values)
        self.pool.append(name)
        return name

    def variable(self, values: Values) -> str:
        name = self.name("V")
        self.variables[name] = values
        self.namespace[name] = hf.Variable(values.array())
        return name

    def a_variable(self) -> str:
        """One that there is, or a new one."""
        if self.variables and self.chance(0.7):
            return self.pick(list(self.variables))
        return self.variable(Values(self.pick(self.dtypes), self.pick(self.shapes), seed=self.seed()))

    def index(self, bound: int, shape: tuple[int, ...]) -> str:
        """Positions of an axis, which may be made invalid in some calls."""
        return self.parameter(Values(self.pick(("int64", "int64", "int32")), shape, "index", self.seed(), bound), "i")

    def alike(self, name: str) -> str:
        """A value of the same shape and kind of dtype: one that there is, or one made to fit."""
        fitting = [other for other in self.pool if self.shape(other) == self.shape(name)]
        same = [other for other in fitting if self.dtype(other) == self.dtype(name)]
        if same and self.chance(0.8):
            return self.pick(same)
        if fitting and self.chance(0.3):
            return self.let(f'hf.astype({self.pick(fitting)}, "{self.dtype(name)}")')
        return self.new(self.shape(name), self.dtype(name))

    def axis(self, name: str) -> int:
        rank = len(self.shape(name))
        if not rank:
            raise Refused
        return int(self.rng.integers(-rank, rank))

    # ---- single ops

    def elementwise(self, name: str) -> str:
        """Mostly tame, so that values stay apart from NaN and infinities."""
        if self.chance(0.4):
            return self.any_elementwise(name)
        texts = [*ALGEBRA, *(FLOAT_ALGEBRA if self.is_float(name) else ())]
        return self.let(self.pick(texts).format(name))

    def any_elementwise(self, name: str) -> str:
        """Any elementwise op of the table, on this value if its dtype is one of the op's."""
        own = self.value(name).dtype
        chosen: OpDef = self.pick([o for o in TABLE.values() if o.kind is Kind.ELEMENTWISE and own in o.dtypes])
        # What nobody reads is an error eagerly and none in a program; and eager code has no such ops.
        chosen = TABLE[WRAPPING.get(chosen.name, chosen.name)]
        arrays, attrs = self.pick(chosen.samples(self.rng, own))
        operands, placed = [], False
        for array in arrays:
            if array.dtype == own and not placed:
                operands.append(name)
                placed = True
            elif chosen.raises is not None and dt.is_integer(array.dtype):
                operands.append(self.divisor(array.dtype.name))
            else:
                operands.append(self.partner(name, array.dtype.name))
        return self.let(call_text(chosen.name, operands, attrs))

    def divisor(self, dtype: str) -> str:
        """Integers other than 0, at least in calls that do not ask for an error."""
        return self.parameter(Values(dtype, self.pick([(), *self.shapes[:2]]), "divisor", self.seed()), "d")

    def partner(self, name: str, dtype: str) -> str:
        """A value of the dtype that broadcasts with ``name``."""

        def fits(other: str) -> bool:
            try:
                shape = np.broadcast_shapes(self.shape(other), self.shape(name))
            except ValueError:
                return False
            return int(np.prod(shape)) <= self.most_elements

        fitting = [other for other in self.pool if fits(other)]
        same = [other for other in fitting if self.dtype(other) == dtype]
        if same and self.chance(0.85):
            return self.pick(same)
        if fitting and self.chance(0.5):
            return self.let(f'hf.astype({self.pick(fitting)}, "{dtype}")')
        return self.new(self.shape(name), dtype)

    def combine(self, a: str, b: str) -> str:
        """An op of two values; shapes that do not broadcast are brought together."""
        try:
            np.broadcast_shapes(self.shape(a), self.shape(b))
        except ValueError:
            b = self.brought(b, a)
        if self.is_float(a) != self.is_float(b) or self.dtype(a) != self.dtype(b):
            b = self.let(f'hf.astype({b}, "{self.dtype(a)}")')
        if self.dtype(a) == "bool":
            return self.let(self.pick(("{} & {}", "{} | {}", "{} ^ {}", "{} == {}")).format(a, b))
        return self.let(self.pick(BINARY).format(a, b))

    def brought(self, name: str, to: str) -> str:
        """``name`` in a shape that broadcasts with ``to``."""
        if self.value(name).size == self.value(to).size:
            return self.let(f"hf.reshape({name}, {to}.shape)")
        if len(self.shape(name)) == 2 and self.shape(name)[::-1] == self.shape(to):
            return self.let(f"{name}.T")
        return self.let(f"{self.pick(('hf.max', 'hf.min'))}({name})" if self.chance(0.3) else f"hf.sum({name})")

    def kernel(self, name: str) -> str:
        """An op that has a kernel of its own, or reads other elements than its own; mostly it keeps the shape."""
        return self.let(self.pick(KERNELS)(self, name))

    def view(self, name: str) -> str:
        return self.let(self.pick(VIEWS)(self, name))

    # ---- the whole

    def generate(self) -> Program:
        open = [shape for shape in self.shapes if EXTENT in shape]
        if open and self.chance(0.9):  # else there is little for a symbolic twin
            self.pool.append(self.parameter(Values(self.dtypes[0], self.pick(open), seed=self.seed())))
        for _ in range(self.pick((0, 1, 1, 2) if self.pool else (1, 2, 2, 3))):
            self.new()
        self.shapes_of_graphs(self.pick((1, 2, 2, 3, 3, 4)))
        if not self.statements:
            self.let(f"{self.pool[0]} == {self.pool[0]}")
        results = self.results()
        main = Body("program", tuple(self.arguments), tuple(self.statements), results)
        program = Program(main, self.calls(), tuple(self.helpers), self.variables, self.captured)
        return replace(program, settings=self.settings()).tidy()

    def shapes_of_graphs(self, count: int) -> None:
        grown = tries = 0
        while grown < count and tries < 5 * count:
            tries += 1
            try:
                name = self.weighted({name: shape.weight for name, shape in GRAPH_SHAPES.items()})
                GRAPH_SHAPES[name].grow(self)
                self.grown.append(name)
                grown += 1
            except Refused:
                continue

    def results(self) -> tuple[str, ...]:
        """Few results leave more to fusion and dead code, many hide less; arguments, variables and repeats are among
        them."""
        made = [name for name in self.pool if name[0] == "v"]
        share = self.pick((0.0, 0.2, 0.6))
        found = [name for name in made if self.chance(share)] + made[-1:]
        for name in (*self.arguments, *self.variables):
            if self.chance(0.08):
                with contextlib.suppress(Refused):  # a large one
                    found.insert(0, name if name in self.arguments else self.let(f"{name}.value()"))
        if found and self.chance(0.05):
            found.append(found[0])
        return tuple(found or self.pool[:1])

    def calls(self) -> tuple[tuple[Values, ...], ...]:
        """Three calls: usual ones, and one between them with edge values, or that should raise."""
        usual = tuple(self.arguments.values())
        bad = [k for k, v in enumerate(usual) if v.kind in ("index", "divisor")]
        other = [v.reseeded(self.seed()) for v in usual]
        if bad and self.chance(BAD_SHARE):
            k = self.pick(bad)
            other[k] = other[k].spoilt()
        elif self.chance(0.5):
            other = [v.with_edges() for v in other]
        return (usual, tuple(other), usual) if self.chance(0.8) else (tuple(other), usual, tuple(other))

    def settings(self) -> Settings:
        limits: dict[str, int] = {}
        if self.chance(SETTINGS_SHARE):
            for _ in range(self.pick((1, 2, 3))):
                limit = self.pick(list(LIMIT_VALUES))
                limits[limit] = self.pick(LIMIT_VALUES[limit])
        tapes = self.pick((1, 1, 1, 2)) if self.chance(TAPES_SHARE) else 0
        # To a tape an argument and a variable are different things inside a function, whatever was passed for them.
        taped = tapes or any(s.inside for body in (self, *self.helpers) for s in body.statements)
        ways = (1,) if taped else (1, 2)
        settings = Settings(
            target=self.pick(TARGETS) if self.chance(TARGET_SHARE) else "",
            skip=self.pick(tuple(SKIPPABLE)) if self.chance(SKIP_SHARE) else "",
            limits=tuple(limits.items()),
            held=self.chance(HELD_SHARE),
            numpy=self.chance(NUMPY_SHARE),
            shared=self.pick(ways) if self.chance(SHARED_SHARE) else 0,
            eagerly=self.chance(EAGERLY_SHARE),
            tapes=tapes,
            replayed=bool(taped) and self.chance(REPLAYED_SHARE),
        )
        alone = not (taped or settings.shared or settings.eagerly or settings.numpy)
        threads = self.pick((1, 2, 3)) if self.chance(THREADS_SHARE) else 0
        donated = alone and self.chance(DONATED_SHARE)
        poisoned = self.chance(POISONED_SHARE)
        forward = alone and not donated and self.chance(FORWARD_SHARE)
        schedule = self.pick((1, 2, 3, 4, 6, 9)) if self.chance(SCHEDULE_SHARE) else 0
        return settings._replace(
            threads=threads, donated=donated, poisoned=poisoned, forward=forward, schedule=schedule
        )


class TurnedGenerator(Generator):
    """Programs of maps over two or more outer loops whose operands lie in another order of axes, large enough to be
    cut, and most of them written over what they read: ``z + permute_dims(w, (0, 3, 1, 2))``, z donated."""

    most_elements = 30_000

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.whole = self.large_shape()
        self.shapes = [self.whole, self.whole[-1:], (1,)]
        self.dtypes = [self.pick(("float32", "float32", "float32", "float64", "float16", "int8", "int32", "int64"))]

    def large_shape(self) -> tuple[int, ...]:
        while True:
            rank = self.pick((3, 3, 4, 4, 5))
            shape = tuple(int(self.pick((2, 2, 3, 5, 9, 16, 17, 19, 33, 40))) for _ in range(rank))
            if self.chance(0.4):  # then it may be turned itself
                first, second = self.rng.permutation(rank)[:2]
                shape = tuple(shape[second] if axis == first else n for axis, n in enumerate(shape))
            if 1000 <= int(np.prod(shape)) <= self.most_elements // 2:
                return shape

    def generate(self) -> Program:
        values = Values(self.dtypes[0], self.whole, seed=self.seed())
        target = self.parameter(values) if self.chance(0.6) else self.variable(values)
        self.pool.append(target)
        for _ in range(self.pick((1, 1, 2))):
            self.add_turned(target)
        self.shapes_of_graphs(self.pick((0, 0, 0, 1)))
        body = Body("program", tuple(self.arguments), tuple(self.statements), self.results())
        program = Program(body, self.calls(), tuple(self.helpers), self.variables, self.captured)
        return replace(program, settings=self.settings()).tidy()

    def add_turned(self, target: str) -> None:
        """A map of the target and of something that lies otherwise, which may be the target itself."""
        turned = self.turned_itself(target) if self.chance(0.3) else self.turned_other()
        text = self.pick(("{0} + {1}", "{0} - {1}", "{1} - {0}", "{0} * {1} - {0}", "hf.where({0} > {1}, {0}, {1})"))
        made = self.let(text.format(target, turned))
        if target in self.variables and self.chance(0.8):
            statement = f"{target}.assign({made})"
            self.run(statement)
            self.add(statement)

    def turned_itself(self, target: str) -> str:
        rank = len(self.whole)
        alike = [(a, b) for a in range(rank) for b in range(a) if self.whole[a] == self.whole[b]]
        if alike and self.chance(0.7):
            a, b = self.pick(alike)
            order = [b if axis == a else a if axis == b else axis for axis in range(rank)]
            return self.let(f"hf.permute_dims({target}, {tuple(order)})", keep=False)
        return self.let(f"hf.flip({target}, axis={self.axis(target)})", keep=False)

    def turned_other(self) -> str:
        rank = len(self.whole)
        order = self.rng.permutation(rank)
        while (order == np.arange(rank)).all():
            order = self.rng.permutation(rank)
        shape = [0] * rank
        for axis, source in enumerate(order):
            shape[source] = self.whole[axis]
        other = self.parameter(Values(self.dtypes[0], tuple(shape), seed=self.seed()))
        if self.chance(0.3):
            other = self.let(f"{other} * {other}")
        return self.let(f"hf.permute_dims({other}, {tuple(map(int, order))})", keep=self.chance(0.2))

    def settings(self) -> Settings:
        """Always on several threads, and most often written in place."""
        settings = super().settings()._replace(threads=self.pick((2, 3)), skip="")
        donated = not (settings.tapes or settings.shared or settings.eagerly or settings.numpy) and self.chance(0.8)
        return settings._replace(donated=donated, forward=settings.forward and not donated)


def random_program(seed: int) -> Program:
    return Generator(seed).generate()


def turned_program(seed: int) -> Program:
    return TurnedGenerator(seed).generate()


def traced(seed: int) -> tuple[Graph, list[np.ndarray]] | None:
    """The graph of a random program and an array for each of its inputs; None if tracing raises, as some do."""
    program = random_program(seed)
    module = load(replace(program, settings=Settings()))
    arguments = [hf.asarray(values.array()) for values in module["calls"][0]]
    function, _ = module["make"](hf.function)
    try:
        concrete = function.get_concrete_function(*arguments)
    except Exception:
        return None
    return concrete.graph, [x.numpy() for x in concrete.staged._inputs(arguments)]
