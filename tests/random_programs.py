"""Random programs for the fuzzer: which shapes of graphs there are, and how often.

A program is grown by *shapes*: small structures at which fusion, storage, buffers and rewrites decide something.  A
shape takes values that the program has, adds statements, and runs them at once, so that shapes, dtypes and errors are
those of the real thing.  ``GRAPH_SHAPES`` is the list of what is covered; what is not in it is found by luck only.  All
ops of the table take part, new ones too (``any_op``).

The arrays of a program come from a *world*: a few shapes that fit each other.  In the square world everything fits
everything, so a value can be an operand of a product and of its epilogue at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.graph import Graph
from hybridflow.compiler.ir.types import is_static
from hybridflow.compiler.ops import TABLE, Kind
from hybridflow.compiler.ops.table import OpDef

from .compare_programs import LIMITS, TARGETS, eagerly, load, op, traceable
from .programs import Body, Program, Settings, Statement, Values

MAX_ELEMENTS = 9000  # of a value that is used again; larger ones would only cost time
EXTENT = 5  # of the axes that the symbolic twin leaves open; no other axis has it

# Worlds: the shapes of arguments and variables.  n is an extent that the symbolic twin leaves open.
WORLDS: dict[str, tuple[float, Callable[[_Random, int], list[tuple[int, ...]]]]] = {
    "square": (5, lambda r, n: [(n, n), (n, n), (n, n), (n,), (n, 1), (1, n), (2, n, n)]),
    "matrix": (3, lambda r, n: [(n, m := r.extent()), (n, m), (m,), (n, 1), (m, n), (1, m)]),
    "vector": (2, lambda r, n: [(n,), (n,), (), (1,), (n, 1)]),
    "rank 3": (2, lambda r, n: [(a := r.extent(), n, m := r.extent()), (n, m), (a, n, m), (m,), (a, 1, m)]),
    "tiny": (2, lambda r, n: [tuple(r.pick((0, 1, 1, 2, n)) for _ in range(r.pick((1, 2, 2, 3)))) for _ in range(3)]),
    "long": (0.5, lambda r, n: [(k := r.pick((63, 65, 130, 300, 1030)),), (n, k), (k,), (2, k), (k, 1), (4200,)]),
}
SETTINGS_SHARE = 0.35  # of programs that are compiled under other limits of fusion; likewise the following
SKIP_SHARE, TARGET_SHARE, HELD_SHARE, NUMPY_SHARE, TAPES_SHARE, BAD_SHARE = 0.15, 0.3, 0.3, 0.15, 0.25, 0.4
PASSES = ("simplify", "fold", "cse", "dce", "transpose")

LIMIT_VALUES = {
    "MAX_MEMBERS": (1, 2, 4),
    "MAX_WORK": (1, 20, 100),
    "MAX_REDUCTIONS": (0, 1, 2),
    "RECENT": (0, 1),
    "CHEAP": (0, 3, 100),
    "MAX_DEPTH": (0, 1, 2),
    "MAX_MOVED": (0, 8, 40),
    "MAX_AGAIN": (0, 8, 60),
    "MAX_DIVISIONS": (0, 2),
    "MAX_VIEWS": (0, 1, 3),
    "l2": (0, 64, 4096),
}
assert set(LIMIT_VALUES) == {*LIMITS, "l2"}

FLOATS = ("float32", "float32", "float32", "float64", "float64", "float16", "bfloat16")
INTEGERS = ("int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")


class Refused(Exception):
    """What was tried does not fit the values at hand."""


class _Random:
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


class Shape(NamedTuple):
    weight: float
    grow: Callable[[Generator], None]


class Generator(_Random):
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
        if not isinstance(value, hf.Tensor) or value.size > MAX_ELEMENTS:
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
            return int(np.prod(shape)) <= MAX_ELEMENTS

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
        return Settings(
            target=self.pick(TARGETS) if self.chance(TARGET_SHARE) else "",
            skip=self.pick(PASSES) if self.chance(SKIP_SHARE) else "",
            limits=tuple(limits.items()),
            held=self.chance(HELD_SHARE),
            numpy=self.chance(NUMPY_SHARE),
            tapes=self.pick((1, 1, 1, 2)) if self.chance(TAPES_SHARE) else 0,
        )


def call_text(name: str, operands: Sequence[str], attrs: dict[str, Any]) -> str:
    """The array function of that name where there is one, else the op."""
    if name == "convert":
        return f'hf.astype({operands[0]}, "{attrs["dtype"]}")'
    if not attrs and hasattr(hf, name):
        return f"hf.{name}({', '.join(operands)})"
    parts = [repr(name), *operands]
    for key, value in attrs.items():
        parts.append(f"{key}=np.dtype({str(value)!r})" if isinstance(value, np.dtype) else f"{key}={value!r}")
    return f"op({', '.join(parts)})"


# ---- texts

ALGEBRA = ("{0} + {0}", "{0} * {0}", "{0} - {0}", "{0} * 2", "{0} + 1", "{0} * 1", "{0} + 0", "0 - {0}", "{0} * 0",
           "hf.maximum({0}, {0})", "hf.where({0} > 0, {0}, 0)", "abs({0})", "{0} == {0}", "hf.square({0})")  # fmt: skip
FLOAT_ALGEBRA = ("hf.tanh({0})", "hf.sin({0})", "hf.exp(-abs({0}))", "hf.sigmoid({0})", "{0} * 0.5", "{0} / 3",
                 "{0} / 4", "1 / {0}", "{0} + 0.0", "{0} - 0.0", "-{0}", "-(-{0})", "{0} ** 2", "hf.sqrt(abs({0}))",
                 "hf.nn.relu({0})", "hf.nn.gelu({0})", "hf.exp({0})", "hf.log1p(abs({0}))", "{0} * -0.0")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "hf.maximum({}, {})", "hf.minimum({}, {})", "{} * 2 - {}")
REDUCTIONS = ("sum", "sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin", "logsumexp", "var")


def _rank(g: Generator, name: str, least: int) -> tuple[int, ...]:
    shape = g.shape(name)
    if len(shape) < least:
        raise Refused
    return shape


def _matmul(g: Generator, name: str) -> str:
    shape = _rank(g, name, 1)
    if g.dtype(name) == "bool":
        raise Refused
    others = [o for o in g.pool if g.dtype(o) == g.dtype(name) and len(g.shape(o)) >= 1]
    texts = []
    for other in others:
        given = g.shape(other)
        pairs = [(f"{name}", f"{other}", shape, given)]
        if len(shape) == 2:
            pairs.append((f"{name}.T", f"{other}", shape[::-1], given))
        if len(given) == 2:
            pairs.append((f"{name}", f"{other}.T", shape, given[::-1]))
        texts += [f"{a} @ {b}" for a, b, x, y in pairs if x[-1] == (y[-2] if len(y) > 1 else y[-1])]
    keeping = [t for t in texts if tuple(np.shape(g.run(t))) == shape]
    return g.pick(keeping) if keeping and g.chance(0.7) else g.pick(texts)


def _sorted(g: Generator, name: str) -> str:
    way = g.pick(("sort", "sort", "argsort"))
    return f"hf.{way}({name}, axis={g.axis(name)}, descending={g.chance(0.4)})"


def _taken(g: Generator, name: str) -> str:
    axis = g.axis(name)
    extent = g.shape(name)[axis]
    count = extent if g.chance(0.7) else g.pick((0, 1, 3))
    indices = g.index(extent, (count,))
    return f"hf.take({name}, {indices}, axis={axis})" if axis or g.chance(0.5) else f"{name}[{indices}]"


def _taken_along(g: Generator, name: str) -> str:
    axis = g.axis(name)
    if g.chance(0.5):
        return f"hf.take_along_axis({name}, hf.argsort({name}, axis={axis}), axis={axis})"
    return f"hf.take_along_axis({name}, {g.index(g.shape(name)[axis], g.shape(name))}, axis={axis})"


def _scattered(g: Generator, name: str) -> str:
    if g.dtype(name) == "bool":
        raise Refused
    shape = _rank(g, name, 1)
    axis = g.axis(name) % len(shape)
    indices = g.index(shape[axis], (shape[axis],))
    return f"hf.scatter_add({name}, {indices}, {g.alike(name)}, axis={axis})"


def _reduced(g: Generator, name: str, keepdims: bool | None = None) -> str:
    way = g.pick(REDUCTIONS)
    shape = g.shape(name)
    keepdims = g.chance(0.5) if keepdims is None else keepdims
    axis: Any = None
    if shape and g.chance(0.8):
        axis = g.axis(name)
        if len(shape) > 2 and g.chance(0.4) and not way.startswith("arg"):
            axis = tuple(sorted({axis % len(shape), g.axis(name) % len(shape)}))
    return f"hf.{way}({name}, axis={axis}, keepdims={keepdims})"


def _nn(g: Generator, name: str) -> str:
    way = g.pick(("softmax", "log_softmax", "layer_norm", "rms_norm", "l2_normalize"))
    return f"hf.nn.{way}({name}, axis={g.axis(name)})"


def _joined(g: Generator, name: str) -> str:
    axis = g.axis(name)
    others = [name if g.chance(0.3) else g.alike(name) for _ in range(g.pick((1, 1, 2)))]
    return f"hf.{g.pick(('concat', 'concat', 'stack'))}([{', '.join([name, *others])}], axis={axis})"


def _padded(g: Generator, name: str) -> str:
    rank = len(_rank(g, name, 1))
    if g.chance(0.5):
        widths = [(g.pick((0, 1, 2)), g.pick((0, 0, 1))) for _ in range(rank)]
        return f"hf.pad({name}, {widths}, constant_values={g.pick((0, 1))})"
    low, high = (tuple(g.pick((0, 1, 2, -1)) for _ in range(rank)) for _ in range(2))
    interior = tuple(g.pick((0, 0, 1, 2)) for _ in range(rank))
    return f'op("pad", {name}, low={low}, high={high}, interior={interior}, value=0)'


KERNELS: tuple[Callable[[Generator, str], str], ...] = (
    _matmul, _matmul, _matmul, _sorted, _taken, _taken, _taken_along, _scattered, _nn, _joined, _padded, _reduced,
    lambda g, name: f"hf.cumulative_sum({name}, axis={g.axis(name)})",
    lambda g, name: f"hf.cumulative_sum({name}, axis={g.axis(name)}, include_initial={g.chance(0.5)})",
    lambda g, name: f"hf.roll({name}, {g.pick((1, -2))}, axis={g.axis(name)})",
)  # fmt: skip


def _sliced(g: Generator, name: str) -> str:
    shape = _rank(g, name, 1)
    parts = [g.pick((":", ":", "::-1", "1:", ":-1", "::2", "::-2", "-2::-1", "-1:", "1::3", ":0", "0", "-1", "None"))
             for _ in shape]  # fmt: skip
    return f"{name}[{'..., ' if g.chance(0.2) else ''}{', '.join(parts)}]"


def _reshaped(g: Generator, name: str) -> str:
    shape = g.shape(name)
    size = int(np.prod(shape))
    fitting: list[Any] = [(-1,), (*shape, 1), (1, *shape), (-1, 1), shape[::-1]]
    fitting += [(k, size // k) for k in (2, 3, 4, 5, 6) if size and size % k == 0]
    return f"hf.reshape({name}, {g.pick(fitting)})"


def _transposed(g: Generator, name: str) -> str:
    rank = len(_rank(g, name, 2))
    return f"hf.permute_dims({name}, {tuple(int(a) for a in g.rng.permutation(rank))})"


VIEWS: tuple[Callable[[Generator, str], str], ...] = (
    _sliced, _sliced, _sliced, _reshaped, _reshaped, _transposed, _transposed,
    lambda g, name: f"hf.flip({name}, axis={g.axis(name)})",
    lambda g, name: f"{name}.T",
    lambda g, name: f"hf.expand_dims({name}, {g.pick((0, -1))})",
    lambda g, name: f"hf.broadcast_to({name}, (2, *{name}.shape))",
    lambda g, name: f"hf.broadcast_to(hf.expand_dims({name}, -1), (*{name}.shape, 3))",
    lambda g, name: f"hf.repeat({name}, 2, axis={g.axis(name)})",
    lambda g, name: f"hf.tile({name}, (2,))",
    lambda g, name: f"hf.diagonal({name})",
)  # fmt: skip


# ---- shapes of graphs


def _diamond(g: Generator) -> None:
    """A computed value that a kernel reads, and the kernel's epilogue too: h @ w + h."""
    a = g.elementwise(g.any())
    k = g.kernel(a)
    g.combine(g.elementwise(k) if g.chance(0.3) else k, a)


def _diamond_of_kernels(g: Generator) -> None:
    """The same with a kernel on top: s = a @ b, then softmax(s) + s."""
    s = g.kernel(g.any())
    g.combine(g.kernel(s), s)


def _siblings(g: Generator) -> None:
    """Several readers of one value, some of them results."""
    a = g.any()
    made = [g.pick((g.elementwise, g.view, g.kernel))(a) for _ in range(g.pick((2, 2, 3)))]
    if g.chance(0.5):
        g.combine(made[0], made[-1])


def _long_skip(g: Generator) -> None:
    """The first values meet the last."""
    late = g.elementwise(g.pool[-1])
    g.combine(late, g.pick(g.pool[:2]))


def _reduce_broadcast(g: Generator) -> None:
    """A statistic of rows or columns, used again across them; twice, as a layer norm does."""
    a = g.any()
    if g.chance(0.5):
        a = g.elementwise(a)
    for _ in range(g.pick((1, 1, 2))):
        s = g.let(_reduced(g, a, keepdims=True))
        a = g.combine(a, g.elementwise(s) if g.chance(0.3) else s)


def _reductions(g: Generator) -> None:
    """Several reductions of one value, over the same axes or others."""
    a = g.elementwise(g.any())
    for _ in range(g.pick((2, 3))):
        g.let(_reduced(g, a))


def _views(g: Generator) -> None:
    """A chain of views: reshaped transposes, steps below 0, slices of one element, repeats."""
    a = g.any()
    if g.chance(0.4):
        a = g.elementwise(a)
    for _ in range(g.pick((2, 3, 4))):
        a = g.view(a)
    if g.chance(0.7):
        g.elementwise(a)


def _flipped_transpose(g: Generator) -> None:
    """Divisions of positions that count down."""
    a = g.any(lambda name: len(g.shape(name)) >= 2)
    flat = g.let(f"hf.reshape({a}.T, (-1,))" if len(g.shape(a)) == 2 else f"hf.reshape({_transposed(g, a)}, (-1,))")
    cut = g.let(f"{flat}[{g.pick(('::-1', '-2::-1', '::-2', '1:-1', '-2::-3'))}]")
    g.elementwise(g.let(f"hf.flip({cut})") if g.chance(0.5) else cut)


def _in_the_middle(g: Generator) -> None:
    """Elementwise, a kernel of its own, elementwise."""
    g.elementwise(g.kernel(g.elementwise(g.any())))


def _raising_behind_a_slice(g: Generator) -> None:
    """What may raise, read in part or not at all."""
    a = g.any()
    taken = g.let(g.pick((_taken, _taken, _taken_along, _division))(g, a), keep=g.chance(0.3))
    part = g.view(g.elementwise(taken) if g.chance(0.3) else taken)
    if g.chance(0.3):
        g.combine(part, a)


def _division(g: Generator, name: str) -> str:
    if g.is_float(name) or g.dtype(name) == "bool":
        name = g.let(f'hf.astype({name}, "int32")')
    return f"{name} {g.pick(('//', '%'))} {g.divisor(g.dtype(name))}"


def _dividing(g: Generator) -> None:
    g.elementwise(g.let(_division(g, g.any())))


def _joins(g: Generator) -> None:
    """Concat, stack or pad of computed values, read again in part."""
    a = g.elementwise(g.any())
    joined = g.let((_joined if g.chance(0.6) else _padded)(g, a))
    g.pick((g.view, g.elementwise, g.kernel))(joined)


def _again(g: Generator) -> None:
    """The same statement twice."""
    made = [s for s in g.statements if s.text.startswith("v") and s.inside == g.tapes]
    g.let(g.pick(made).text.partition(" = ")[2])


def _twice(g: Generator) -> None:
    """Duplicates that a rewrite makes equal, one by one."""
    a = g.any()
    text = g.pick(ALGEBRA)
    first, second = g.let(text.format(a)), g.let(text.format(a))
    g.combine(first, second)


def _dead(g: Generator) -> None:
    """Work whose result nothing uses; what may raise in it must raise all the same."""
    count = len(g.pool)
    g.pick((g.elementwise, g.kernel))(g.any())
    del g.pool[count:]


def _any_op(g: Generator) -> None:
    """An op of the table on its own examples, and on values that the program has."""
    dtype = np.dtype(g.pick(g.dtypes))
    chosen = g.pick([o for o in TABLE.values() if dtype in o.dtypes and o.name not in ("constant", "iota")])
    arrays, attrs = g.pick(chosen.samples(g.rng, dtype))
    if any(a.size > 150 for a in arrays):
        raise Refused
    operands = []
    for array in arrays:
        fitting = [v for v in g.pool if g.shape(v) == array.shape and g.dtype(v) == array.dtype.name]
        if fitting and not (chosen.raises and dt.is_integer(array.dtype)):
            operands.append(g.pick(fitting))
        else:
            operands.append(g.parameter(Values.given(array), "k"))
    made = g.let(call_text(chosen.name, operands, attrs))
    if g.chance(0.5):
        g.elementwise(made)


def _assign(g: Generator) -> None:
    """A variable gets a new value; its old one is used on, or it is read again."""
    v = g.a_variable()
    if g.chance(0.4):
        g.let(f"{v}.value()")
    fitting = [x for x in g.pool if g.shape(x) == g.shape(v) and g.dtype(x) == g.dtype(v)]
    if fitting and g.chance(0.7):
        delta = g.pick(fitting)
    else:
        delta = g.let(f'hf.broadcast_to(hf.astype(hf.max({g.any()}), "{g.dtype(v)}"), {v}.shape)')
    way = g.pick(("assign", "assign_add", "assign_add", "assign_sub")) if g.dtype(v) != "bool" else "assign"
    text = f"{v}.{way}({delta})" if g.chance(0.7) else f"{v}.assign({g.combine(v, delta)})"
    if g.chance(0.3) and g.dtype(v) != "bool" and not g.is_float(v):
        text = f"{v}.assign({_division(g, v)})"
    g.run(text)
    g.add(text)
    if v not in g.pool and g.chance(0.6):
        g.pool.append(v)
    if g.chance(0.3):
        g.let(f"{v}.value()")


def _swap(g: Generator) -> None:
    """Two variables exchange their values."""
    a = g.a_variable()
    alike = [v for v in g.variables if v != a and g.shape(v) == g.shape(a) and g.dtype(v) == g.dtype(a)]
    b = g.pick(alike) if alike else g.variable(Values(g.dtype(a), g.shape(a), seed=g.seed()))
    kept = g.let(f"{a}.value()")
    for text in (f"{a}.assign({b})", f"{b}.assign({kept})"):
        g.run(text)
        g.add(text)


def _raises_between_updates(g: Generator) -> None:
    """An update, something that may raise, and an update that needs it."""
    _assign(g)
    taken = g.let(_taken(g, g.any()) if g.chance(0.6) else _division(g, g.any()))
    if g.chance(0.7):
        g.let(f"hf.max({taken})" if g.value(taken).size else f"hf.sum({taken})")
    _assign(g)


def _nested(g: Generator) -> None:
    """A traced function called by the traced function, once or twice."""
    if g.in_helper or g.tapes:
        raise Refused
    given = [g.any() for _ in range(g.pick((1, 1, 2)))]
    parameters = [g.name("p") for _ in given]
    g.namespace.update({p: hf.asarray(g.value(v)) for p, v in zip(parameters, given)})
    outer = g.statements, g.pool
    g.statements, g.pool, g.in_helper = [], list(parameters), True
    try:
        g.shapes_of_graphs(g.pick((1, 1, 2)))
        made = g.pool[-1]
        body = Body(g.name("f"), tuple(parameters), tuple(g.statements), (made,))
    finally:
        (g.statements, g.pool), g.in_helper = outer, False
    g.helpers.append(body)
    g.namespace["function"] = eagerly
    exec(body.text("@function"), g.namespace)
    for _ in range(g.pick((1, 1, 2))):
        g.let(f"{body.name}({', '.join(given)})")


def _tape(g: Generator) -> None:
    """A gradient inside the function; at times a gradient of a gradient."""
    if len(g.tapes) > 1:
        raise Refused
    x = g.any(g.is_float)
    name, before = g.name("t"), g.tapes
    tape = g.namespace[name] = hf.GradientTape()
    tape.__enter__()
    g.tapes = (*before, name)
    try:
        if x[0] != "V":
            g.run(f"{name}.watch({x})")
            g.add(f"{name}.watch({x})")
        y = g.pick((g.elementwise, g.kernel))(x)
        g.shapes_of_graphs(1)
        if not before and g.chance(0.3):
            _tape(g)
        last = g.pool[-1] if g.is_float(g.pool[-1]) else y
        loss = g.let(f"hf.sum({last})") if g.chance(0.6) else last
    finally:
        g.tapes = before
        tape.__exit__(None, None, None)
    g.let(f"{name}.gradient({loss}, {x})")


def _always_raises(g: Generator) -> None:
    """A statement that raises each time, while tracing too."""
    a = g.any()
    g.add(g.pick(("hf.reshape({0}, (7, 11))", "{0}[99]", "{0} @ hf.ones((3, 2, 99))", "hf.max({0}[:0])")).format(a))


def _long_chain(g: Generator) -> None:
    """More members than a kernel takes, deeper than a value is computed again."""
    a = g.any(lambda name: dt.is_float(g.value(name).dtype) and g.value(name).size <= 64)
    texts = ("v * 0.75 + k", "hf.where(v > k, hf.tanh(v), v)", "v + {0}", "v[::-1] * 0.5")
    text = g.pick(texts).format(a)
    count = g.pick((14, 30, 30, 140))
    g.let(f"reduce(lambda v, k: {text}, range({count}), {a})")


GRAPH_SHAPES: dict[str, Shape] = {
    "diamond: a value read by a kernel and by its epilogue": Shape(4, _diamond),
    "diamond of kernels": Shape(2, _diamond_of_kernels),
    "siblings": Shape(3, _siblings),
    "long skip": Shape(2, _long_skip),
    "reduction into broadcast": Shape(3, _reduce_broadcast),
    "several reductions": Shape(1.5, _reductions),
    "chain of views": Shape(3, _views),
    "flipped, reshaped transposes": Shape(1, _flipped_transpose),
    "a kernel of its own in the middle": Shape(2, _in_the_middle),
    "what may raise, behind a slice": Shape(1.5, _raising_behind_a_slice),
    "integer division": Shape(0.7, _dividing),
    "concat, stack, pad": Shape(2, _joins),
    "a statement again": Shape(1, _again),
    "duplicates": Shape(1, _twice),
    "dead code": Shape(1, _dead),
    "any op on its examples": Shape(2.5, _any_op),
    "assignment": Shape(2.5, _assign),
    "swap": Shape(0.5, _swap),
    "an error between updates": Shape(1, _raises_between_updates),
    "nested function": Shape(1.5, _nested),
    "tape inside": Shape(1.5, _tape),
    "always raises": Shape(0.3, _always_raises),
    "long chain": Shape(0.15, _long_chain),
}


def random_program(seed: int) -> Program:
    return Generator(seed).generate()


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


def symbolic_twin(program: Program, seed: int) -> Program | None:
    """The program under a signature that leaves extents open, called with n, 0, 1 and at times more elements there.

    All extents of n are left open or those of one argument, whichever leaves more of the program: what cannot be traced
    so is taken out.  None if nothing is left.
    """
    r = _Random(seed)
    usual = program.calls[0]
    axes = [(k, a) for k, v in enumerate(usual) if v.kind != "given" for a, e in enumerate(v.shape) if e == EXTENT]
    twins = []
    for only in dict.fromkeys((None, r.pick([k for k, _ in axes]))) if axes else ():
        open = tuple((k, a) for k, a in axes if only in (None, k))
        extents = r.pick(((EXTENT, 0, 1), (EXTENT, 1, 0), (1, EXTENT, EXTENT + 2, 0), (0, 1, EXTENT)))
        rows = tuple(tuple(_resized(v, k, open, extent) for k, v in enumerate(usual)) for extent in extents)
        twin = traceable(replace(program, open=open, calls=rows))
        if twin is not None and twin.open and not _sums_in_another_order(twin):
            twins.append(twin)
    return max(twins, key=lambda twin: len(twin.main.statements), default=None)


def _sums_in_another_order(twin: Program) -> bool:
    """Whether a gradient is taken of a stack of matrices, of an open number of rows, times one matrix.

    With known extents that is one large product, and the gradient of the matrix one sum over all rows; where extents
    are open, graphs cannot join the axes of the rows, and it is a sum of sums.
    """
    if not twin.settings.tapes and "GradientTape" not in twin.text():
        return False
    graph = load(twin)["make"](hf.function)[0].get_concrete_function().graph
    stacks = [n for n in graph.nodes if n.op.kind is Kind.CONTRACT and len(n.shape) > 2 and not is_static(n.shape[:-1])]
    return any(source.op.name == "broadcast" for n in stacks for source in n.inputs if not source.is_parameter)


def _resized(values: Values, k: int, open: Sequence[tuple[int, int]], extent: int) -> Values:
    shape = tuple(extent if (k, axis) in open else n for axis, n in enumerate(values.shape))
    return replace(values, shape=shape)
