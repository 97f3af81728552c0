"""Every op of the table: declarations complete, types inferred as the reference computes them, derivatives right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hybridflow import errors
from hybridflow.compiler.autodiff import Record, backward, records_of
from hybridflow.compiler.interpreter import interpret
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.graph import Graph, Node
from hybridflow.compiler.ir.results import TupleType, parts_of
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.ops import NOT_DIFFERENTIABLE, TABLE, Kind, OpDef, define, value_ranges

OPS = list(TABLE.values())
# Numbers that are drawn by rejection jump; tests/array/test_transformed_distributions.py has their derivatives.
DRAWN = {"random_gamma"}
DIFFERENTIABLE = [
    op for op in OPS if op.vjp is not NOT_DIFFERENTIABLE and op.kind is not Kind.CONTROL and op.name not in DRAWN
]
# Derivatives of complex numbers are tested where losses are real, in tests/array/test_complex.py.
DIFFERENTIABLE = [op for op in DIFFERENTIABLE if not {op.name, *map(str, op.dtypes)} & {"complex", "complex64"}]
# Collectives have meaning among replicas alone: tests/distribute has their derivatives.
DIFFERENTIABLE = [op for op in DIFFERENTIABLE if op.kind is not Kind.COLLECTIVE]
N = Dim("n")


def f32(*shape: Any) -> TensorType:
    return TensorType(shape, dt.float32)


def types_of(arrays: Any) -> tuple[TensorType, ...]:
    return tuple(TensorType(a.shape, a.dtype) for a in arrays)


def canonical(op: OpDef, types: tuple[TensorType, ...], attrs: dict[str, Any]) -> dict[str, Any]:
    return op.canon(types, dict(attrs)) if op.canon is not None else attrs


def run(name: str, *arrays: Any, **attrs: Any) -> np.ndarray:
    """One op through its reference, attributes normalised."""
    op = TABLE[name]
    return op.reference(*arrays, **canonical(op, types_of(arrays), attrs))


def infer(name: str, *types: TensorType, **attrs: Any) -> TensorType:
    op = TABLE[name]
    return op.infer(*types, **canonical(op, types, attrs))


def same_bits(a: np.ndarray, b: Any, dtype: Any = None) -> bool:
    b = np.asarray(b, dtype or a.dtype)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


# ---- declarations


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_infer_says_what_the_reference_computes(op: OpDef) -> None:
    for dtype in op.dtypes:
        samples = op.samples(np.random.default_rng(0), dtype)
        assert samples
        for arrays, attrs in samples:
            types = types_of(arrays)
            assert op.arity is None or len(arrays) == op.arity
            attrs = canonical(op, types, attrs)
            hash(tuple(attrs.items()))
            assert canonical(op, types, attrs) == attrs
            before = [a.copy() for a in arrays]
            result = op.reference(*arrays, **attrs)
            found = types_of(result if isinstance(result, tuple) else (result,))
            assert found == parts_of(op.infer(*types, **attrs))
            assert all(a.tobytes() == b.tobytes() for a, b in zip(arrays, before))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_samples_hold_edge_values_and_are_reproducible(op: OpDef) -> None:
    for dtype in op.dtypes:
        first, second = (op.samples(np.random.default_rng(7), dtype) for _ in range(2))
        for (a, x), (b, y) in zip(first, second, strict=True):
            assert x == y
            assert all(p.tobytes() == q.tobytes() for p, q in zip(a, b, strict=True))
        if op.kind is Kind.ELEMENTWISE and dt.is_float(dtype):
            values = np.concatenate([a.ravel().astype(np.float64) for arrays, _ in first for a in arrays])
            assert np.isnan(values).any() and np.isposinf(values).any() and np.isneginf(values).any()
            assert (np.signbit(values) & (values == 0)).any()
            assert any(a.size == 0 for arrays, _ in first for a in arrays)


@pytest.mark.parametrize("op", [op for op in OPS if op.kind is Kind.ELEMENTWISE], ids=lambda op: op.name)
def test_elementwise_ops_refuse_other_dtypes_and_mixed_types(op: OpDef) -> None:
    for dtype in set(dt.REAL) - set(op.dtypes):
        with pytest.raises(errors.DTypeError, match="Expected"):
            infer(op.name, *[TensorType((2,), dtype)] * op.arity)
    if op.arity == 2:
        dtype = op.dtypes[-1]
        with pytest.raises(errors.ShapeError, match="shapes differ"):
            infer(op.name, TensorType((2,), dtype), TensorType((1,), dtype))
        if len(op.dtypes) > 1:
            with pytest.raises(errors.DTypeError, match="dtypes differ"):
                infer(op.name, TensorType((2,), dtype), TensorType((2,), op.dtypes[0]))


def bounds_asked(op: OpDef, arrays: Any, attrs: Any) -> list[Any]:
    """What the rule for bounds is given: the dtype of the result, and the bounds of the inputs."""
    return [op.infer(*types_of(arrays), **attrs).dtype, *map(value_ranges.elements, arrays)]


def assert_within(result: np.ndarray, said: Any) -> None:
    """All numbers of a result lie within the bounds that are said, but for integers that wrap and NaN."""
    low, high = value_ranges.within(said, result.dtype)
    numbers = [x for x in result.reshape(-1).tolist() if x == x]
    assert all(low <= x <= high for x in numbers)


@pytest.mark.parametrize("op", [op for op in OPS if op.facts], ids=lambda op: op.name)
def test_facts_hold_on_the_samples(op: OpDef) -> None:
    facts = op.facts

    def same(a: np.ndarray, b: np.ndarray) -> bool:
        """Equal bits; any NaN counts as any other."""
        if dt.is_float(a.dtype):
            nan = np.isnan(a.astype(np.float64))
            if not np.array_equal(nan, np.isnan(b.astype(np.float64))):
                return False
            a, b = np.where(nan, a.dtype.type(0), a), np.where(nan, b.dtype.type(0), b)
        return same_bits(a, b)

    def full(value: Any, like: np.ndarray) -> np.ndarray | None:
        """The number in that dtype, if the dtype has it."""
        if dt.is_integer(like.dtype) and np.isinf(value):
            info = np.iinfo(like.dtype)
            value = info.max if value > 0 else info.min
        return np.full(like.shape, value).astype(like.dtype)

    for dtype in op.dtypes:
        for arrays, attrs in op.samples(np.random.default_rng(0), dtype):
            f = op.reference
            attrs = canonical(op, types_of(arrays), attrs)
            x = arrays[0] if arrays else None
            if facts.get("commutative"):
                assert same(f(*arrays), f(*arrays[::-1]))
            if facts.get("idempotent"):
                assert same(f(x, x), x) if op.arity == 2 else same(f(f(x)), f(x))
            if facts.get("involution"):
                assert same(f(f(x, **attrs), **attrs), x)
            if facts.get("associative"):
                y, z = arrays[1], np.flip(x)
                assert same(f(f(x, y), z), f(x, f(y, z)))
            if "identity" in facts:
                assert same(f(x, full(facts["identity"], x)), x) and same(f(full(facts["identity"], x), x), x)
            if "right_identity" in facts:
                assert same(f(x, full(facts["right_identity"], x)), x)
            if "absorbing" in facts:
                assert same(f(x, full(facts["absorbing"], x)), full(facts["absorbing"], x))
            if "bounds" in facts and arrays and all(a.size for a in arrays):
                # Of all numbers that there are, and of a few of them.
                for few in (arrays, [a.reshape(-1)[-1:] for a in arrays]) if op.kind is Kind.ELEMENTWISE else (arrays,):
                    assert_within(f(*few, **attrs), facts["bounds"](*bounds_asked(op, few, attrs), **attrs))


@pytest.mark.parametrize("missing", ["scalar", "vjp", "doc"])
def test_incomplete_declarations_are_refused(missing: str) -> None:
    fields = {
        "doc": "x",
        "infer": lambda x: x,
        "reference": lambda x: x,
        "vjp": NOT_DIFFERENTIABLE,
        "samples": lambda rng, dtype: [],
        "dtypes": dt.REAL,
        "scalar": lambda e, x: x,
    }
    fields[missing] = "" if missing == "doc" else None
    with pytest.raises(ValueError, match=f"lacks {missing}"):
        define("no_such_op", Kind.ELEMENTWISE, 1, **fields)
    fields[missing] = {"scalar": lambda e, x: x, "vjp": NOT_DIFFERENTIABLE, "doc": "x"}[missing]
    with pytest.raises(ValueError, match=r"has no use for combine, the fact 'comutative'"):
        define("no_such_op", Kind.ELEMENTWISE, 1, **fields, combine=lambda e, s, t: s, facts={"comutative": True})
    with pytest.raises(ValueError, match="has no use for jvp"):
        define("no_such_op", Kind.ELEMENTWISE, 1, **fields, jvp=lambda b, tangents, out, x: tangents[0])
    assert "no_such_op" not in TABLE
    with pytest.raises(ValueError, match="declared twice"):
        define("add", Kind.ELEMENTWISE, 1, **fields)


@pytest.mark.parametrize("op", [op for op in OPS if op.numpy is not None], ids=lambda op: op.name)
def test_numpy_has_the_bits_of_the_reference(op: OpDef) -> None:
    assert op.numpy is not None
    for dtype in (d for d in op.dtypes if d.char in op.numpy_chars):
        for arrays, attrs in op.samples(np.random.default_rng(0), dtype):
            assert not attrs
            with np.errstate(all="ignore"):
                assert same_bits(np.asarray(op.numpy(*arrays)), op.reference(*arrays))


@pytest.mark.parametrize("op", [op for op in OPS if op.kind is Kind.CONTRACT], ids=lambda op: op.name)
def test_contractions_contract_the_axes_that_they_name(op: OpDef) -> None:
    assert op.contraction is not None and op.contracting is not None
    for arrays, attrs in op.samples(np.random.default_rng(0), dt.float64):
        types = types_of(arrays)
        attrs = canonical(op, types, attrs)
        found = op.contraction(types, attrs)
        batch, rows, columns, summed = found.extents(*types)
        letters = iter("abcdefghijklmnop")
        b, m, n, k = ([next(letters) for _ in part] for part in (batch, rows, columns, summed))
        left, right = "".join(found.left.arranged(b, m, k)), "".join(found.right.arranged(b, n, k))
        result = np.einsum(f"{left},{right}->{''.join((*b, *m, *n))}", *arrays)
        np.testing.assert_allclose(op.reference(*arrays, **attrs), result, rtol=1e-12, atol=1e-12)
        assert {**attrs, **op.contracting(found)} == attrs
        assert found.left.arranged(batch, rows, summed) == types[0].shape
        # Through a transposition of all axes back to front the op may read its operand, or says that it cannot.
        turned = tuple(range(arrays[0].ndim))[::-1]
        moved = op.contracting(found._replace(left=found.left.through(turned)))
        assert (moved is None) == (len(batch) > 0)
        if moved is not None:
            again = op.reference(arrays[0].transpose(turned), arrays[1], **{**attrs, **moved})
            np.testing.assert_allclose(again, result, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("op", [op for op in OPS if op.shares_memory], ids=lambda op: op.name)
def test_views_that_share_memory_keep_the_order_of_the_elements(op: OpDef) -> None:
    for (x,), attrs in op.samples(np.random.default_rng(0), dt.float32):
        assert np.array_equal(
            op.reference(x, **canonical(op, types_of((x,)), attrs)).ravel(), x.ravel(), equal_nan=True
        )


# ---- derivatives


def first_result(b: GraphBuilder, out: Node) -> Node:
    return b.results(out)[0] if isinstance(out.type, TupleType) else out


def total(b: GraphBuilder, x: Node) -> Node:
    return b.sum(x, axes=tuple(range(x.type.ndim)))


def gradients(b: GraphBuilder, target: Node, sources: list[Node]) -> list[Node]:
    """Gradients of a scalar; zeros where there is none."""
    found = backward(b, records_of(b.nodes), [(target, b.literal(1, target.dtype))], sources)
    return [b.full(0, like=x.type) if g is None else g for x, g in zip(sources, found)]


# Inputs to which there is no derivative, or none of the derivative: who asks gets an error.
NO_DERIVATIVE = {"zeta": {0}, "gammainc_da": {0}, "betainc_da": {0, 1}}
NO_SECOND = {**NO_DERIVATIVE, "gammainc": {0}, "gammaincc": {0}, "betainc": {0, 1}}


class Derivatives:
    """The graph of s = sum(w * op(x)), its gradient along v, and the gradient of that along u.

    Floats are float64; ``along`` are the directions v and u, one array per float input.
    """

    UNKNOWN = (NO_DERIVATIVE, NO_SECOND)

    def __init__(
        self, op: OpDef, arrays: tuple[np.ndarray, ...], attrs: dict[str, Any], rng: np.random.Generator
    ) -> None:
        b = GraphBuilder(TABLE)
        inputs = [b.parameter(t) for t in types_of(arrays)]
        floats = [x for x in inputs if dt.is_float(x.dtype)]
        moved = [[x for x in floats if inputs.index(x) not in known.get(op.name, ())] for known in self.UNKNOWN]
        out = first_result(b, b.emit(op, *inputs, **attrs))
        weight = b.parameter(out.type)
        v, u = ([b.parameter(x.type) for x in floats] for _ in range(2))
        value = total(b, b.multiply(out, weight))
        first = self._along(b, value, moved[0], [d for x, d in zip(floats, v) if x in moved[0]])
        second = self._along(b, first, moved[1], [d for x, d in zip(floats, u) if x in moved[1]])
        self.graph: Graph = b.finish([value, first, second])
        self.arrays = arrays
        self.rest = [np.asarray(rng.standard_normal(x.shape)) for x in (weight, *v, *u)]
        for k, x in enumerate(floats):  # what stands still
            self.rest[1 + k] *= x in moved[0]
            self.rest[1 + len(floats) + k] *= x in moved[1]
        self.v, self.u = self.rest[1 : 1 + len(v)], self.rest[1 + len(v) :]

    @staticmethod
    def _along(b: GraphBuilder, target: Node, sources: list[Node], direction: list[Node]) -> Node:
        result = b.literal(0, dt.float64)
        for g, d in zip(gradients(b, target, sources), direction):
            result = b.add(result, total(b, b.multiply(g, d)))
        return result

    def at(self, direction: list[np.ndarray], step: float) -> list[float]:
        """Value, first and second derivative at the arrays moved along a direction."""
        moves = iter(direction)
        moved = [a + step * next(moves) if dt.is_float(a.dtype) else a for a in self.arrays]
        return [float(x) for x in interpret(self.graph, [*moved, *self.rest])[0]]

    def check(self) -> None:
        h = 1e-5
        _, first, second = self.at(self.v, 0.0)
        slope = (self.at(self.v, h)[0] - self.at(self.v, -h)[0]) / (2 * h)
        assert first == pytest.approx(slope, rel=1e-6, abs=1e-6)
        curve = (self.at(self.u, h)[1] - self.at(self.u, -h)[1]) / (2 * h)
        assert second == pytest.approx(curve, rel=1e-6, abs=1e-6)


def smooth(op: OpDef, arrays: tuple[np.ndarray, ...], rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """The sample with its floats drawn anew, far enough from kinks and poles."""
    domain = op.facts.get("domain", ((-2.0, 2.0),) * len(arrays))
    drawn = []
    for k, a in enumerate(arrays):
        low, high = domain[k % len(domain)]
        drawn.append(np.asarray(rng.uniform(low, high, a.shape)) if dt.is_float(a.dtype) else a)
    return tuple(drawn)


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_first_and_second_derivatives_against_finite_differences(op: OpDef) -> None:
    rng = np.random.default_rng(3)
    checked = 0
    for arrays, attrs in op.samples(rng, dt.float64):
        if op.kind is Kind.ELEMENTWISE and (arrays[0].size > 20 or attrs.get("dtype", dt.float64) != dt.float64):
            continue
        Derivatives(op, smooth(op, arrays, rng), attrs, rng).check()
        checked += arrays[0].size > 0
    assert checked


@pytest.mark.parametrize("op", DIFFERENTIABLE, ids=lambda op: op.name)
def test_cotangents_have_the_types_of_the_inputs(op: OpDef) -> None:
    for dtype in (dt.float16, dt.float32):
        for arrays, attrs in op.samples(np.random.default_rng(0), dtype):
            b = GraphBuilder(TABLE)
            inputs = [b.parameter(t) for t in types_of(arrays)]
            out = first_result(b, b.emit(op, *inputs, **attrs))
            if not dt.is_float(out.dtype):
                continue
            sources = [x for k, x in enumerate(inputs) if k not in NO_DERIVATIVE.get(op.name, ())]
            for x, g in zip(sources, backward(b, records_of(b.nodes), [(out, b.full(1, like=out.type))], sources)):
                assert (g is not None) == dt.is_float(x.dtype)
                assert g is None or g.type == x.type


@pytest.mark.parametrize(("name", "place"), [(name, k) for name, places in NO_DERIVATIVE.items() for k in places])
def test_derivatives_that_nobody_knows_are_refused(name: str, place: int) -> None:
    b = GraphBuilder(TABLE)
    inputs = [b.parameter(f32(3)) for _ in range(TABLE[name].arity or 0)]
    out = b.emit(TABLE[name], *inputs)
    with pytest.raises(errors.GradientError, match="no derivative"):
        backward(b, records_of(b.nodes), [(out, b.full(1, like=out.type))], [inputs[place]])


def derivative(expression: Any, *arrays: Any, order: int = 1) -> list[np.ndarray]:
    """Derivatives of sum(expression(b, *inputs)), or of the sum of its first derivative, by each float64 input."""
    arrays = tuple(np.asarray(a, np.float64) for a in arrays)
    b = GraphBuilder(TABLE)
    inputs = [b.parameter(t) for t in types_of(arrays)]
    target = total(b, expression(b, *inputs))
    found = gradients(b, target, inputs)
    if order == 2:
        target = b.literal(0, dt.float64)
        for g in found:
            target = b.add(target, total(b, g))
        found = gradients(b, target, inputs)
    return interpret(b.finish(found), list(arrays))[0]


def test_subgradients() -> None:
    kinks = np.array([0.0, -0.0, 2.0, -2.0])
    assert same_bits(derivative(lambda b, x: b.abs(x), kinks)[0], [0.0, 0.0, 1.0, -1.0])
    for name in ("maximum", "minimum"):
        gx, gy = derivative(lambda b, x, y, name=name: getattr(b, name)(x, y), [1.0, 1.0, 0.0], [1.0, 1.0, -0.0])
        assert same_bits(gx, [1.0, 1.0, 1.0]) and same_bits(gy, [0.0, 0.0, 0.0])
    for name in ("max", "min"):
        (g,) = derivative(lambda b, x, name=name: getattr(b, name)(x, axes=(0,)), [3.0, 3.0, 3.0, 3.0])
        assert same_bits(g, [0.25] * 4)


_POLES = {
    "sqrt": lambda b, x: b.sqrt(x),
    "rsqrt": lambda b, x: b.rsqrt(x),
    "reciprocal": lambda b, x: b.reciprocal(x),
    "log": lambda b, x: b.log(x),
    "log2": lambda b, x: b.log2(x),
    "log10": lambda b, x: b.log10(x),
    "log1p": lambda b, x: b.log1p(b.subtract(x, b.full(1, like=x.type))),
    "asin": lambda b, x: b.asin(b.subtract(b.full(1, like=x.type), x)),
    "acos": lambda b, x: b.acos(b.subtract(b.full(1, like=x.type), x)),
    "acosh": lambda b, x: b.acosh(b.add(x, b.full(1, like=x.type))),
    "atanh": lambda b, x: b.atanh(b.subtract(b.full(1, like=x.type), x)),
    "divide": lambda b, x: b.divide(b.full(1, like=x.type), x),
    "divide itself": lambda b, x: b.divide(x, x),
    "pow base": lambda b, x: b.pow(x, b.full(0.5, like=x.type)),
    "pow exponent": lambda b, x: b.pow(x, x),
    "hypot": lambda b, x: b.hypot(x, x),
    "atan2": lambda b, x: b.atan2(x, x),
}


@pytest.mark.parametrize("name", _POLES)
@pytest.mark.parametrize("order", [1, 2])
def test_where_shields_from_poles(name: str, order: int) -> None:
    def guarded(b: GraphBuilder, x: Node) -> Node:
        zero = b.full(0, like=x.type)
        return b.where(b.greater(x, zero), _POLES[name](b, x), zero)

    (g,) = derivative(guarded, [0.0, -0.0, -0.5, -1.5, 0.5], order=order)
    assert np.array_equal(g[:4], np.zeros(4))
    assert np.isfinite(g[4])


@pytest.mark.parametrize(
    "name", ["sqrt", "rsqrt", "reciprocal", "log", "log2", "log10", "log1p", "asin", "acos", "divide"]
)
def test_second_derivatives_where_the_cotangent_is_zero(name: str) -> None:
    # f = (u(x) - u(0.5))**2 / 2 has f' = 0 and f'' = u'**2 at 0.5: a zero cotangent must not hide its own derivative.
    (level,) = (interpreted(_POLES[name], 0.5),)

    def well(b: GraphBuilder, x: Node) -> Node:
        return b.square(b.subtract(_POLES[name](b, x), b.full(level, like=x.type)))

    (slope,) = derivative(_POLES[name], 0.5)
    (first,), (second,) = derivative(well, 0.5), derivative(well, 0.5, order=2)
    assert first == 0
    assert second == pytest.approx(2 * slope**2, rel=1e-12)


def interpreted(expression: Any, x: float) -> float:
    b = GraphBuilder(TABLE)
    p = b.parameter(TensorType((), dt.float64))
    return float(interpret(b.finish([expression(b, p)]), [np.asarray(x)])[0][0])


def test_pow_at_zero() -> None:
    base, exponent = derivative(lambda b, x, y: b.pow(x, y), [0.0, 0.0, 0.0, -2.0, -2.0], [0.0, 2.0, 1.0, 3.0, 0.0])
    assert np.array_equal(base, [0.0, 0.0, 1.0, 12.0, 0.0])
    assert np.array_equal(exponent, [0.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "row", [[2.0, 3.0, 4.0], [0.0, 3.0, 4.0], [0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [5.0, 0.0, 0.0, 1.0, 7.0]]
)
def test_prod_at_zeros(row: list[float]) -> None:
    def factors(b: GraphBuilder, *xs: Node) -> Node:
        out = xs[0]
        for x in xs[1:]:
            out = b.multiply(out, x)
        return out

    for order in (1, 2):
        (got,) = derivative(lambda b, x: b.prod(x, axes=(0,)), row, order=order)
        assert np.array_equal(got, derivative(factors, *row, order=order))
    both = derivative(lambda b, x: b.prod(x, axes=(0, 1)), [row, row[::-1]])[0]
    assert np.array_equal(both.ravel(), derivative(factors, *row, *row[::-1]))


def test_prod_of_a_symbolic_extent() -> None:
    b = GraphBuilder(TABLE)
    x = b.parameter(TensorType((N, 3), dt.float64))
    (g,) = backward(b, *_seeded(b, b.prod(x, axes=(0,))), [x])
    data = np.array([[2.0, 0.0, 0.0], [3.0, 5.0, 0.0], [4.0, 7.0, 1.0]])
    expected = [[12.0, 35.0, 0.0], [8.0, 0.0, 0.0], [6.0, 0.0, 0.0]]
    assert np.array_equal(interpret(b.finish([g]), [data])[0][0], expected)


def _seeded(b: GraphBuilder, out: Node) -> tuple[list[Record], list[tuple[Node, Node]]]:
    return records_of(b.nodes), [(out, b.full(1, like=out.type))]


def test_infinities_keep_logaddexp_derivatives_defined() -> None:
    low, high = -np.inf, np.inf
    gx, gy = derivative(lambda b, x, y: b.logaddexp(x, y), [low, low, 1.0, high], [low, 1.0, low, high])
    assert same_bits(gx, [0.5, 0.0, 1.0, 0.5]) and same_bits(gy, [0.5, 1.0, 0.0, 0.5])


# ---- symbolic extents


def test_rules_with_symbolic_extents() -> None:
    x = f32(N, 4)
    assert infer("add", x, x) == x
    assert infer("sum", x, axes=1) == f32(N)
    assert infer("broadcast", f32(N), shape=(3, N), axes=(1,)) == f32(3, N)
    assert infer("reshape", x, shape=(2, N, 2)) == f32(2, N, 2)
    assert infer("reshape", x, shape=(-1, 4)) == x
    assert infer("reshape", x, shape=(N, -1)) == x
    assert infer("transpose", x) == f32(4, N)
    assert infer("slice", x, start=(0, 1), stop=(N, 3)) == f32(N, 2)
    assert infer("pad", x, low=(0, 1), high=(0, 2)) == f32(N, 7)
    assert infer("concat", x, x, axis=1) == f32(N, 8)
    assert infer("matmul", x, f32(4, 5)) == f32(N, 5)
    assert infer("take", x, TensorType((N,), dt.int64), axis=1) == f32(N, N)


def test_arithmetic_with_symbolic_extents() -> None:
    assert infer("slice", f32(N), start=(1,), stop=(N,)) == f32(N - 1)
    assert infer("slice", f32(N), start=(0,), stop=(3,)) == f32(3)  # whoever asks for it sees to it that there are 3
    assert infer("slice", f32(2 * N + 1), start=(0,), stop=(2 * N + 1,), step=(2,)) == f32(N + 1)
    assert infer("pad", f32(N), low=(1,), high=(2,), interior=(1,)) == f32(2 * N + 2)
    assert infer("concat", f32(N, 3), f32(2, 3), f32(N + 1, 3), axis=0) == f32(2 * N + 3, 3)
    assert infer("reshape", f32(N, 6), shape=(-1, 2)) == f32(3 * N, 2)
    for name, types, attrs in (
        ("slice", (f32(N),), {"start": (0,), "stop": (N + 1,)}),
        ("slice", (f32(N),), {"start": (N,), "stop": (N - 1,)}),
        ("slice", (f32(N),), {"start": (1 - N,), "stop": (N,)}),
        ("pad", (f32(N),), {"low": (1 - N,), "high": (0,)}),
    ):
        with pytest.raises(errors.ArgumentError):
            infer(name, *types, **attrs)
    with pytest.raises(errors.ShapeError):
        infer("reshape", f32(N), shape=(-1, 2))


def test_interpreting_binds_symbolic_extents() -> None:
    b = GraphBuilder(TABLE)
    x = b.parameter(f32(N))
    graph = b.finish([b.broadcast(x, shape=(2, N), axes=(1,))], {0: b.add(x, x)})
    (out,), updates = interpret(graph, [np.arange(3, dtype=np.float32)])
    assert np.array_equal(out, [[0, 1, 2], [0, 1, 2]]) and np.array_equal(updates[0], [0, 2, 4])
    with pytest.raises(errors.ShapeError, match="Expected f32"):
        interpret(graph, [np.zeros((2, 2), np.float32)])


# ---- errors


@pytest.mark.parametrize(
    ("name", "types", "attrs", "error", "text"),
    [
        ("sum", (f32(2, 3),), {"axes": (3,)}, errors.ShapeError, r"\[sum\] axis 3 is out of range for f32\[2,3\]"),
        ("sum", (f32(2, 3),), {"axes": (0, -2)}, errors.ShapeError, "twice"),
        ("sum", (f32(2, 3),), {"axes": 1.5}, errors.ArgumentTypeError, r"axis is 1\.5"),
        ("sum", (TensorType((2,), dt.bool_),), {}, errors.DTypeError, "an integer or float dtype"),
        ("max", (f32(0, 3),), {"axes": 0}, errors.ShapeError, "no elements"),
        ("broadcast", (f32(1),), {"shape": (3,), "axes": (0,)}, errors.ShapeError, "does not fit"),
        ("broadcast", (f32(2, 2),), {"shape": (2, 2), "axes": (1, 0)}, errors.ShapeError, "ascending"),
        ("reshape", (f32(2, 3),), {"shape": (7,)}, errors.ShapeError, r"f32\[2,3\] cannot take the shape \[7\]"),
        ("reshape", (f32(2, 3),), {"shape": (4, -1)}, errors.ShapeError, "nothing fits"),
        ("reshape", (f32(2, 3),), {"shape": (-2, -3)}, errors.ShapeError, "negative extent -2"),
        ("transpose", (f32(2, 3),), {"perm": (0, 0)}, errors.ArgumentError, "each of its 2 axes once"),
        ("slice", (f32(5),), {"start": (3,), "stop": (2,)}, errors.ArgumentError, "3:2:1"),
        ("slice", (f32(5),), {"start": (0,), "stop": (6,)}, errors.ArgumentError, "stop <= 5"),
        ("slice", (f32(5, 5),), {"start": (0,), "stop": (5,)}, errors.ArgumentError, "one for each axis"),
        ("pad", (f32(5),), {"low": (-1,), "high": (0,)}, errors.ArgumentError, "no negative number"),
        ("pad", (f32(5),), {"low": (1,), "high": (0,), "value": "x"}, errors.ArgumentTypeError, "Python scalar"),
        ("concat", (), {"axis": 0}, errors.ArgumentError, "at least one"),
        ("concat", (f32(2, 3), f32(2, 4)), {"axis": 0}, errors.ShapeError, "but for axis 0"),
        ("matmul", (f32(2, 3), f32(4, 5)), {}, errors.ShapeError, r"x\.shape\[-1\] must equal y\.shape\[-2\]"),
        ("matmul", (f32(2, 3), f32(4, 3)), {}, errors.ShapeError, r"Did you mean x @ y\.T\?"),
        ("matmul", (f32(3), f32(3, 2)), {}, errors.ShapeError, "at least two axes"),
        ("matmul", (f32(2, 2, 3), f32(3, 3, 4)), {}, errors.ShapeError, "batch axes differ"),
        ("take", (f32(3), f32(2)), {"axis": 0}, errors.DTypeError, "int32 or int64"),
        ("take", (f32(3), TensorType((2,), dt.int64)), {"axis": 1}, errors.ShapeError, "out of range"),
        ("scatter_add", (f32(3), TensorType((2,), dt.int64), f32(3)), {"axis": 0}, errors.ShapeError, "what is taken"),
        ("where", (f32(2), f32(2), f32(2)), {}, errors.DTypeError, "the condition"),
        ("convert", (f32(2),), {"dtype": "datetime64[s]"}, errors.ArgumentTypeError, "not a dtype"),
        ("iota", (), {"shape": (2,), "axis": 0, "dtype": bool}, errors.DTypeError, "an integer or float"),
        ("random_bits", (f32(2),), {"shape": (2,)}, errors.DTypeError, "uint64"),
    ],
)
def test_messages(name: str, types: Any, attrs: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        infer(name, *types, **attrs)


def test_run_time_errors() -> None:
    x = np.arange(3.0)
    for bad in (3, -4):
        with pytest.raises(errors.IndexRangeError, match="axis 0 of shape"):
            run("take", x, np.array([0, bad]), axis=0)
        with pytest.raises(IndexError):
            run("scatter_add_along_axis", x, np.array([bad]), np.ones(1), axis=0)
    for name in ("floor_divide", "remainder"):
        with pytest.raises(ZeroDivisionError, match="divided by zero"):
            run(name, np.array([1]), np.array([0]))


# ---- meanings that NumPy or a hasty implementation has otherwise


def test_convert_is_defined_for_every_value() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 3.9, -3.9, 1e30, -1e30, 255.5, -0.0])
    assert same_bits(run("convert", x, dtype=dt.int32), [0, 2**31 - 1, -(2**31), 3, -3, 2**31 - 1, -(2**31), 255, 0])
    assert same_bits(run("convert", x, dtype=dt.uint8), [0, 255, 0, 3, 0, 255, 0, 255, 0])
    for dtype in (np.float32, np.float64):
        top = run("convert", np.array([2.0**63, 2.0**62, -(2.0**63)], dtype), dtype=dt.int64)
        assert same_bits(top, [2**63 - 1, 2**62, -(2**63)])
    assert same_bits(run("convert", x, dtype=dt.bool_), [True, True, True, True, True, True, True, True, False])
    assert same_bits(run("convert", np.array([300, -1]), dtype=dt.uint8), [44, 255])
    # 1 + 2**-11 + 2**-40 lies just above a tie of float16, which float32 does not see.
    assert run("convert", np.array(1 + 2.0**-11 + 2.0**-40), dtype=dt.float16) == np.float16(1 + 2.0**-10)


def test_integer_powers() -> None:
    x = np.array([2, 2, -1, -1, 1, 0, 0, 3, -3, 7])
    y = np.array([-1, 63, -3, -4, -9, -2, 0, 41, -1, 1000])
    expected = [0, -(2**63), -1, 1, 1, 0, 1, (3**41 + 2**63) % 2**64 - 2**63, 0, (7**1000 + 2**63) % 2**64 - 2**63]
    assert same_bits(run("pow", x, y), expected)


def test_shifts_beyond_the_width() -> None:
    x, y = np.array([-8, 8, -8, 8], np.int8), np.array([8, 9, -1, 7], np.int8)
    assert same_bits(run("bitwise_left_shift", x, y), [0, 0, 0, 0])
    assert same_bits(run("bitwise_right_shift", x, y), [-1, 0, -1, 0])


def test_extremes_order_zeros_and_propagate_nan() -> None:
    x, y = np.array([0.0, -0.0, np.nan, 1.0]), np.array([-0.0, 0.0, 1.0, np.nan])
    assert same_bits(run("maximum", x, y)[:2], [0.0, 0.0]) and np.isnan(run("maximum", x, y)[2:]).all()
    assert same_bits(run("minimum", x, y)[:2], [-0.0, -0.0]) and np.isnan(run("minimum", x, y)[2:]).all()
    assert same_bits(run("max", np.array([-0.0, 0.0, -0.0])), 0.0) and same_bits(run("max", np.array([-0.0])), -0.0)
    assert same_bits(run("min", np.array([0.0, -0.0])), -0.0) and same_bits(run("min", np.array([0.0, 2.0])), 0.0)
    assert np.isnan(run("max", np.array([1.0, np.nan, 2.0])))
    assert run("argmax", np.array([1.0, np.nan, 9.0, np.nan])) == 1


def test_equal_slices_have_equal_attributes() -> None:
    def attrs(*cut: int) -> Any:
        return canonical(TABLE["slice"], (f32(9),), {"start": cut[:1], "stop": cut[1:2], "step": cut[2:]})

    assert attrs(1, 9, 3) == attrs(1, 8, 3) == {"start": (1,), "stop": (8,), "step": (3,)}
    assert attrs(2, 5, 3) == attrs(2, 3, 1)  # one element
    assert attrs(4, 4, 2) == attrs(0, 0, 1)  # none


def test_rounding_and_signs() -> None:
    assert same_bits(run("round", np.array([0.5, 1.5, 2.5, -0.5])), [0.0, 2.0, 2.0, -0.0])
    assert same_bits(run("sign", np.array([-0.0, 0.0, -2.0])), [0.0, 0.0, -1.0]) and np.isnan(
        run("sign", np.array(np.nan))
    )
    assert same_bits(run("remainder", np.array([-1, 1, -7]), np.array([3, -3, 7])), [2, -2, 0])
    assert same_bits(run("floor_divide", np.array([-1, 1, -7]), np.array([3, -3, 7])), [-1, -1, -1])
    assert same_bits(run("remainder", np.array([-1.0, 3.0, -0.0]), np.array([np.inf, -3.0, 2.0])), [np.inf, -0.0, 0.0])
    least = np.array([np.iinfo(np.int64).min])
    assert same_bits(run("floor_divide", least, np.array([-1])), least)


def test_sorting_is_stable_with_nan_last() -> None:
    x = np.array([2.0, np.nan, 1.0, 2.0, np.nan, -0.0, 0.0])
    assert same_bits(run("argsort", x), [5, 6, 2, 0, 3, 1, 4], np.int64)
    assert same_bits(run("argsort", x, descending=True), [0, 3, 2, 5, 6, 1, 4], np.int64)
    least = np.array([np.iinfo(np.int8).min, 0, 127], np.int8)
    assert same_bits(run("argsort", least, descending=True), [2, 1, 0], np.int64)
    assert same_bits(run("argsort", np.array([True, False, True]), descending=True), [0, 2, 1], np.int64)


def test_empty_reductions() -> None:
    nothing = np.zeros((0, 2), np.float32)
    assert same_bits(run("sum", nothing, axes=0), [0.0, 0.0]) and same_bits(run("prod", nothing, axes=0), [1.0, 1.0])
    assert same_bits(run("all", np.zeros(0, bool)), True) and same_bits(run("any", np.zeros(0, bool)), False)


def test_random_bits_are_philox() -> None:
    # The known answer of the Random123 distribution for a zero key and counter.
    words = run("random_bits", np.array([0, 0], np.uint64), shape=(6,))
    assert same_bits(words[:4], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8])
    # Blocks follow each other: counter 1 continues counter 0, and the counter wraps at 64 bits.
    assert same_bits(words[4:], run("random_bits", np.array([0, 1], np.uint64), shape=(2,)))
    wrapped = run("random_bits", np.array([0, 2**64 - 1], np.uint64), shape=(8,))
    assert same_bits(wrapped[4:], words[:4])
