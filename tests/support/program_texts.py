"""What random programs are written with: the texts of single statements, on a value that the program has.

Those that take a generator choose axes, shapes and further operands; they raise Refused where the value does not fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import hybridflow as hf

if TYPE_CHECKING:
    from tests.support.random_programs import Generator


class Refused(Exception):
    """What was tried does not fit the values at hand."""


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


ALGEBRA = ("{0} + {0}", "{0} * {0}", "{0} - {0}", "{0} * 2", "{0} + 1", "{0} * 1", "{0} + 0", "0 - {0}", "{0} * 0",
           "hf.maximum({0}, {0})", "hf.where({0} > 0, {0}, 0)", "abs({0})", "{0} == {0}", "hf.square({0})")  # fmt: skip
FLOAT_ALGEBRA = ("hf.tanh({0})", "hf.sin({0})", "hf.exp(-abs({0}))", "hf.sigmoid({0})", "{0} * 0.5", "{0} / 3",
                 "{0} / 4", "1 / {0}", "{0} + 0.0", "{0} - 0.0", "-{0}", "-(-{0})", "{0} ** 2", "hf.sqrt(abs({0}))",
                 "hf.nn.relu({0})", "hf.nn.gelu({0})", "hf.exp({0})", "hf.log1p(abs({0}))", "{0} * -0.0")  # fmt: skip
BINARY = ("{} + {}", "{} - {}", "{} * {}", "hf.maximum({}, {})", "hf.minimum({}, {})", "{} * 2 - {}")
REDUCTIONS = ("sum", "sum", "max", "min", "mean", "prod", "any", "all", "argmax", "argmin", "logsumexp", "var")


def shape_of(g: Generator, name: str, least: int) -> tuple[int, ...]:
    shape = g.shape(name)
    if len(shape) < least:
        raise Refused
    return shape


def _matmul(g: Generator, name: str) -> str:
    shape = shape_of(g, name, 1)
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


def _einsum(g: Generator, name: str) -> str:
    size = len(shape_of(g, name, 1))
    if g.dtype(name) == "bool":
        raise Refused
    texts = ("i,i->", "i,j->ij") if size == 1 else ("ij,ij->i", "ij,kj->ik", "ij,ij->", "ij,ik->jk", "ij,kj->ki")
    if size > 2:
        raise Refused
    return f'hf.einsum("{g.pick(texts)}", {name}, {g.alike(name)})'


def _sorted(g: Generator, name: str) -> str:
    way = g.pick(("sort", "sort", "argsort"))
    return f"hf.{way}({name}, axis={g.axis(name)}, descending={g.chance(0.4)})"


def taken(g: Generator, name: str) -> str:
    axis = g.axis(name)
    extent = g.shape(name)[axis]
    count = extent if g.chance(0.7) else g.pick((0, 1, 3))
    indices = g.index(extent, (count,))
    return f"hf.take({name}, {indices}, axis={axis})" if axis or g.chance(0.5) else f"{name}[{indices}]"


def taken_along(g: Generator, name: str) -> str:
    axis = g.axis(name)
    if g.chance(0.5):
        return f"hf.take_along_axis({name}, hf.argsort({name}, axis={axis}), axis={axis})"
    return f"hf.take_along_axis({name}, {g.index(g.shape(name)[axis], g.shape(name))}, axis={axis})"


def _scattered(g: Generator, name: str) -> str:
    if g.dtype(name) == "bool":
        raise Refused
    shape = shape_of(g, name, 1)
    axis = g.axis(name) % len(shape)
    indices = g.index(shape[axis], (shape[axis],))
    return f"hf.scatter_add({name}, {indices}, {g.alike(name)}, axis={axis})"


def reduced(g: Generator, name: str, keepdims: bool | None = None) -> str:
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


def joined(g: Generator, name: str) -> str:
    axis = g.axis(name)
    others = [name if g.chance(0.3) else g.alike(name) for _ in range(g.pick((1, 1, 2)))]
    return f"hf.{g.pick(('concat', 'concat', 'stack'))}([{', '.join([name, *others])}], axis={axis})"


def padded(g: Generator, name: str) -> str:
    rank = len(shape_of(g, name, 1))
    if g.chance(0.5):
        widths = [(g.pick((0, 1, 2)), g.pick((0, 0, 1))) for _ in range(rank)]
        return f"hf.pad({name}, {widths}, constant_values={g.pick((0, 1))})"
    low, high = (tuple(g.pick((0, 1, 2, -1)) for _ in range(rank)) for _ in range(2))
    interior = tuple(g.pick((0, 0, 1, 2)) for _ in range(rank))
    return f'op("pad", {name}, low={low}, high={high}, interior={interior}, value=0)'


KERNELS: tuple[Callable[[Generator, str], str], ...] = (
    _matmul, _matmul, _matmul, _sorted, taken, taken, taken_along, _scattered, _nn, _einsum, joined, padded, reduced,
    lambda g, name: f"hf.cumulative_sum({name}, axis={g.axis(name)})",
    lambda g, name: f"hf.cumulative_sum({name}, axis={g.axis(name)}, include_initial={g.chance(0.5)})",
    lambda g, name: f"hf.roll({name}, {g.pick((1, -2))}, axis={g.axis(name)})",
)  # fmt: skip


def _sliced(g: Generator, name: str) -> str:
    shape = shape_of(g, name, 1)
    parts = [g.pick((":", ":", "::-1", "1:", ":-1", "::2", "::-2", "-2::-1", "-1:", "1::3", ":0", "0", "-1", "None"))
             for _ in shape]  # fmt: skip
    return f"{name}[{'..., ' if g.chance(0.2) else ''}{', '.join(parts)}]"


def _reshaped(g: Generator, name: str) -> str:
    shape = g.shape(name)
    size = int(np.prod(shape))
    fitting: list[Any] = [(-1,), (*shape, 1), (1, *shape), (-1, 1), shape[::-1]]
    fitting += [(k, size // k) for k in (2, 3, 4, 5, 6) if size and size % k == 0]
    return f"hf.reshape({name}, {g.pick(fitting)})"


def transposed(g: Generator, name: str) -> str:
    rank = len(shape_of(g, name, 2))
    return f"hf.permute_dims({name}, {tuple(int(a) for a in g.rng.permutation(rank))})"


VIEWS: tuple[Callable[[Generator, str], str], ...] = (
    _sliced, _sliced, _sliced, _reshaped, _reshaped, transposed, transposed,
    lambda g, name: f"hf.flip({name}, axis={g.axis(name)})",
    lambda g, name: f"{name}.T",
    lambda g, name: f"hf.expand_dims({name}, {g.pick((0, -1))})",
    lambda g, name: f"hf.broadcast_to({name}, (2, *{name}.shape))",
    lambda g, name: f"hf.broadcast_to(hf.expand_dims({name}, -1), (*{name}.shape, 3))",
    lambda g, name: f"hf.repeat({name}, 2, axis={g.axis(name)})",
    lambda g, name: f"hf.tile({name}, (2,))",
    lambda g, name: f"hf.diagonal({name})",
    lambda g, name: f"hf.tril({name}, {g.pick((0, -1, 1))})",
    lambda g, name: f"hf.unstack({name}, axis={g.axis(name)})[{g.pick((0, -1))}]",
)  # fmt: skip


def _half(g: Generator, name: str, n: str) -> str:
    return g.pick((f"{name}[:{n} // 2]", f"{name}[{n} // 2:]", f"{name}[::-1][:({n} + 1) // 2]", f"{name}[1:{n} - 1]"))


def _positions(g: Generator, name: str, n: str) -> str:
    made = f"hf.arange({g.pick((n, f'1, {n} + 1', f'{n} - 1, -1, -1', f'0, {n}, 2', f'2 * {n}'))})"
    return g.pick((made, f'hf.astype({made}, "float32")', f"{made} % 3", f"{made} * 2 + 1"))


def _made(g: Generator, name: str, n: str) -> str:
    """An array of a dtype and an extent of its own, that follows another one's."""
    shape = g.pick((f"({n},)", f"({n} + 1,)", f"(2, {n})", f"({n}, {n})", f"({n} * 2, 3)", f"({n} // 2, 2)"))
    way = g.pick(("hf.ones({0})", "hf.full({0}, 0.5)", "hf.broadcast_to(hf.sum({1}), {0})", "hf.zeros({0})"))
    return way.format(shape, name)


def _joined_with_itself(g: Generator, name: str, n: str) -> str:
    part = g.pick((f"{name}[1:]", f"{name}[:{n} // 2]", f"{name}[::-1]", f"{name}[::2]", f"{name} * 2", f"{name}[:1]"))
    return f"hf.concat([{', '.join(g.pick(((name, part), (part, name), (part, part, name))))}], axis=0)"


def _flattened(g: Generator, name: str, n: str) -> str:
    return g.pick(
        (
            f"hf.reshape({name}, (-1,))",
            f"hf.reshape({name}, ({n}, -1, 1))",
            f"hf.reshape({name}, (-1, {n}))",
            f"hf.reshape(hf.stack([{name}, {name}], axis={g.pick((0, 1, -1))}), ({n} * 2, *{name}.shape[1:]))",
            f"hf.reshape(hf.repeat({name}, 6, axis=0), (3, -1))",
            f"hf.reshape(hf.concat([{name}, {name}], axis=0), (2, {n}, *{name}.shape[1:]))",
        )
    )


def _around(g: Generator, name: str, n: str) -> str:
    rest = ", ".join(["(0, 0)"] * (len(g.shape(name)) - 1))
    return g.pick(
        (
            f"hf.pad({name}, [({g.pick((0, 1, 2))}, {g.pick((0, 1))}), {rest}])",
            f"{name}[1:] - {name}[:-1]" if g.dtype(name) != "bool" else f"{name}[1:] ^ {name}[:-1]",
            f"hf.roll({name}, {g.pick((1, -1, 2))}, axis=0)",
            f"hf.diff({name}, axis=0)",
            f"{name}[::{g.pick((2, 3, -2))}]",
            f"hf.take({name}, hf.arange({n}) // 2, axis=0)",
            f"hf.take({name}, hf.arange({n} - 1, -1, -2), axis=0)",
            f"hf.tile({name}, (2,{' 1,' * (len(g.shape(name)) - 1)}))",
            f"{name} / {n}" if g.is_float(name) else f"{name} == {n}",
        )
    )


DERIVED: tuple[Callable[[Generator, str, str], str], ...] = (
    _half, _positions, _made, _joined_with_itself, _joined_with_itself, _flattened, _around, _around,
)  # fmt: skip


def derived(g: Generator, name: str) -> str:
    """A value whose extents are calculated from those of ``name``, along its first axis."""
    shape_of(g, name, 1)
    return g.pick(DERIVED)(g, name, f"{name}.shape[0]")
