"""The shapes of graphs that random programs are made of: what is covered, and how often.

Each is a small structure at which fusion, storage, buffers or rewrites decide something.  ``GRAPH_SHAPES``, at the end,
is the list; what is not in it is found by luck only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ops import TABLE
from tests.support.compare_programs import eagerly
from tests.support.program_texts import (
    ALGEBRA,
    Refused,
    call_text,
    derived,
    joined,
    padded,
    reduced,
    taken,
    taken_along,
    transposed,
)
from tests.support.programs import Body, Values

if TYPE_CHECKING:
    from tests.support.random_programs import Generator


class Shape(NamedTuple):
    weight: float
    grow: Callable[[Generator], None]


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
        s = g.let(reduced(g, a, keepdims=True))
        a = g.combine(a, g.elementwise(s) if g.chance(0.3) else s)


def _reductions(g: Generator) -> None:
    """Several reductions of one value, over the same axes or others."""
    a = g.elementwise(g.any())
    for _ in range(g.pick((2, 3))):
        g.let(reduced(g, a))


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
    flat = g.let(f"hf.reshape({a}.T, (-1,))" if len(g.shape(a)) == 2 else f"hf.reshape({transposed(g, a)}, (-1,))")
    cut = g.let(f"{flat}[{g.pick(('::-1', '-2::-1', '::-2', '1:-1', '-2::-3'))}]")
    g.elementwise(g.let(f"hf.flip({cut})") if g.chance(0.5) else cut)


def _in_the_middle(g: Generator) -> None:
    """Elementwise, a kernel of its own, elementwise."""
    g.elementwise(g.kernel(g.elementwise(g.any())))


def _raising_behind_a_slice(g: Generator) -> None:
    """What may raise, read in part or not at all."""
    a = g.any()
    whole = g.let(g.pick((taken, taken, taken_along, _division))(g, a), keep=g.chance(0.3))
    part = g.view(g.elementwise(whole) if g.chance(0.3) else whole)
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
    both = g.let((joined if g.chance(0.6) else padded)(g, a))
    g.pick((g.view, g.elementwise, g.kernel))(both)


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


# The first two are made by other functions; no function applies those with several results.
_NOT_APPLIED = ("constant", "iota", "max_with_position", "min_with_position")


def _any_op(g: Generator) -> None:
    """An op of the table on its own examples, and on values that the program has."""
    dtype = np.dtype(g.pick(g.dtypes))
    chosen = g.pick([o for o in TABLE.values() if dtype in o.dtypes and o.name not in _NOT_APPLIED])
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
    found = g.let(taken(g, g.any()) if g.chance(0.6) else _division(g, g.any()))
    if g.chance(0.7):
        g.let(f"hf.max({found})" if g.value(found).size else f"hf.sum({found})")
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


def _derived_extents(g: Generator) -> None:
    """Extents that are calculated from open ones, several times over, and kernels over them.

    What is combined with such a value is made of the value itself: an argument's extent is a number or a name.
    """
    a = g.any(lambda name: len(g.shape(name)) >= 1)
    for _ in range(g.pick((1, 2, 3))):
        a = g.let(derived(g, a))
        for _ in range(g.pick((0, 1, 2))):
            other = g.elementwise(a)
            a = g.let(g.pick(OF_ITSELF).format(a, other)) if g.chance(0.4) and g.dtype(a) != "bool" else other
        if g.chance(0.6):
            a = g.let(g.pick((reduced, _sorted_or_scanned))(g, a))
        if not g.shape(a):
            return


OF_ITSELF = ("{0} * {1}", "hf.maximum({0}, {1}[::-1])", "{0} - hf.flip({1}, axis=0)", "hf.where({0} > {1}, {0}, {1})",
             "{0} @ {1}", "{0}.T @ {1}", "{0} @ {1}.T", "hf.concat([{0}, {1}], axis=-1)", "{0} + {1}[:1]",
             "hf.concat([{0}, {1}[1:]], axis=0)", "{0}[hf.argsort({1}, axis=0)]",
             "hf.scatter_add({0}, hf.arange({0}.shape[0]) // 2, {1})")  # fmt: skip


def _sorted_or_scanned(g: Generator, name: str) -> str:
    axis = g.axis(name)
    way = g.pick(("hf.sort({0}, axis={1})", "hf.cumulative_sum({0}, axis={1})", "hf.argsort({0}, axis={1})"))
    return way.format(name, axis)


def _long_chain(g: Generator) -> None:
    """More members than a kernel takes, deeper than a value is computed again."""
    a = g.any(lambda name: dt.is_float(g.value(name).dtype) and g.value(name).size <= 64)
    texts = ("v * 0.75 + k", "hf.where(v > k, hf.tanh(v), v)", "v + {0}", "v[::-1] * 0.5")
    text = g.pick(texts).format(a)
    count = g.pick((14, 30, 30, 140))
    g.let(f"reduce(lambda v, k: {text}, range({count}), {a})")


_COMPLEX = (
    "{0} * {1}", "{0} + {1}", "{0} - {1}", "{0} / {1}", "-{0}", "hf.conj({0})", "hf.exp({0})", "hf.tanh({0})",
    "hf.sqrt({0})", "hf.log({0})", "hf.square({0})", "hf.sin({0})", "{0} * (0.5 - 2j)", "{0} @ {1}",
    "hf.sum({0}, axis=-1)",
    "hf.prod({0}, axis=0)", "hf.cumulative_sum({0}, axis=-1)", "{0}[::-1]", "{0}[..., 1:]", "{0}.T",
    "hf.where({0} == {1}, {0}, {1} * 2)", "hf.concat([{0}, {1}], axis=0)", "hf.reshape({0}, (-1,))",
    "hf.take({0}, hf.asarray([0, 0, -1]), axis=0)", "hf.pad({0}, 1)", "hf.flip({0})", "hf.mean({0})",
    "hf.astype({0}, 'complex128')", "hf.astype({0}, 'complex64')",
)  # fmt: skip


def _complex_numbers(g: Generator) -> None:
    """A value becomes complex, some ops follow, and what comes out is real again, or a result as it is."""
    a = g.any(lambda name: g.dtype(name) in ("float32", "float64"))
    b = g.alike(a) if g.chance(0.6) else a
    z = g.let(f"hf.complex({a}, {b})", keep=False)
    for _ in range(g.pick((1, 2, 2, 3, 4))):
        other = g.let(f"hf.conj({z})", keep=False) if g.chance(0.3) else z
        z = g.let(g.pick(_COMPLEX).format(z, other), keep=False)
    way = g.pick(("hf.real({0})", "hf.imag({0})", "hf.abs({0})", "hf.real({0}) - hf.imag({0})", ""))
    if way:
        g.let(way.format(z))
    else:
        g.pool.append(z)


def _stored(g: Generator) -> None:
    """A dtype that is stored and not computed with: a value is rounded to it, moved about, and read back."""
    a = g.any(lambda name: g.dtype(name) not in ("bool",))
    stored = g.pick(dt.STORED).name
    if g.chance(0.4):
        a = g.let(f"hf.clip({a}, 0, 3)")
    v = g.let(f'hf.astype({a}, "{stored}")', keep=False)
    for _ in range(g.pick((0, 1, 1, 2))):
        v = g.let(g.pick(("{0}[::-1]", "{0}.T", "hf.reshape({0}, (-1,))", "hf.concat([{0}, {0}], axis=0)",
                          "{0}[..., :1]", "hf.flip({0})", "hf.expand_dims({0}, 0)")).format(v), keep=False)  # fmt: skip
    g.let(f'hf.astype({v}, "{g.dtype(a)}")')


def _sparse_product(g: Generator) -> None:
    """A sparse matrix times a value: its numbers are a value as well, and may be computed."""
    x = g.any(lambda name: g.dtype(name) != "bool" and len(g.shape(name)) >= 1)
    rows, count = g.pick((1, 2, 5, 9)), g.pick((0, 1, 4, 4, 12))
    kind = g.pick(("int32", "int64"))
    columns = g.rng.integers(0, max(g.shape(x)[0], 1), count).astype(kind)
    splits = np.sort(np.concatenate([[0, count], g.rng.integers(0, count + 1, rows - 1)])).astype(kind)
    given = [g.parameter(Values.given(part), "k") for part in (columns, splits[:-1], splits[1:])]
    numbers = g.new((count,), g.dtype(x))
    if g.chance(0.4):
        numbers = g.elementwise(numbers)
    if g.dtype(numbers) != g.dtype(x):
        raise Refused
    made = g.let(f"op('csr_matmul', {x}, {numbers}, {', '.join(given)})")
    if g.chance(0.5):
        g.elementwise(made)


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
    "derived extents": Shape(3, _derived_extents),
    "always raises": Shape(0.3, _always_raises),
    "long chain": Shape(0.15, _long_chain),
    "complex numbers": Shape(1.2, _complex_numbers),
    "stored dtypes": Shape(0.8, _stored),
    "sparse product": Shape(0.8, _sparse_product),
}
