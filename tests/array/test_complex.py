"""Complex numbers: NumPy's results, bit for bit where IEEE 754 fixes them, eagerly and compiled alike."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from tests.support.bits import same_bits

DTYPES = (np.complex64, np.complex128)
EDGES = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf, np.nan, 1e30, 1e-30)


def numbers(shape: Any, dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def edges(dtype: Any) -> np.ndarray:
    out = np.empty((len(EDGES), len(EDGES)), dtype)
    out.real, out.imag = np.meshgrid(np.array(EDGES), np.array(EDGES))
    return out.reshape(-1)


def same(a: Any, b: Any) -> None:
    """Equal bits, any NaN as good as any other."""
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape
    for x, y in ((a.real, b.real), (a.imag, b.imag)):
        np.testing.assert_array_equal(x, y)
        known = ~np.isnan(x)
        np.testing.assert_array_equal(np.signbit(x)[known], np.signbit(y)[known])


def both(function: Callable[..., Any], *arrays: Any) -> np.ndarray:
    """What a function gives eagerly, once it is known that its compiled form gives the same bits."""
    tensors = [hf.asarray(a) for a in arrays]
    eager = np.asarray(function(*tensors))
    compiled = np.asarray(hf.function(function)(*tensors))
    assert same_bits(eager, compiled)
    return eager


# ---- arithmetic


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["add", "subtract", "divide"])
def test_arithmetic_has_numpys_bits_at_edges(name: str, dtype: Any) -> None:
    x, y = (np.ascontiguousarray(a) for a in zip(*itertools.product(edges(dtype), repeat=2)))
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x, y)
    same(both(getattr(hf, name), np.array(x, dtype), np.array(y, dtype)), expected)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_is_four_real_ones(dtype: Any) -> None:
    # Not NumPy's own, which fuses a multiplication with an addition on some machines.
    x, y = (np.array(a, dtype) for a in zip(*itertools.product([*edges(dtype), *numbers(9, dtype)], repeat=2)))
    with np.errstate(all="ignore"):
        expected = np.empty(x.shape, dtype)
        expected.real = x.real * y.real - x.imag * y.imag
        expected.imag = x.real * y.imag + x.imag * y.real
    same(both(hf.multiply, x, y), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["negative", "conj", "real", "imag", "isnan", "isinf", "isfinite", "positive"])
def test_parts_and_tests_have_numpys_bits(name: str, dtype: Any) -> None:
    for x in (edges(dtype), numbers((3, 67), dtype), numbers((0, 2), dtype), numbers((), dtype)):
        same(both(getattr(hf, name), x), getattr(np, name)(x))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["abs", "angle", "reciprocal", "square", "sign"])
def test_functions_of_one_operand_are_near_numpys(name: str, dtype: Any) -> None:
    of_numpy = {"sign": lambda z: np.where(z == 0, 0, z / np.abs(z))}.get(name) or getattr(np, name)
    x = numbers((5, 67), dtype)
    result = both(getattr(hf, name), x)
    expected = of_numpy(x)
    assert result.dtype == expected.dtype
    assert np.all(np.abs(result - expected) <= 8 * np.finfo(dtype).eps * np.abs(expected))
    with np.errstate(all="ignore"):
        special, known = both(getattr(hf, name), edges(dtype)), of_numpy(edges(dtype))
    if name not in ("sign", "square"):  # a square is a product, see above
        np.testing.assert_allclose(special, known, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
def test_equality_compares_both_parts(dtype: Any) -> None:
    x, y = (np.array(a, dtype) for a in zip(*itertools.product(edges(dtype), repeat=2)))
    same(both(hf.equal, x, y), x == y)
    same(both(hf.not_equal, x, y), x != y)


def test_complex_keeps_signed_zeros_and_infinities() -> None:
    z = hf.complex([0.0, -0.0, np.inf], [-0.0, 0.0, np.nan])
    assert z.dtype == hf.complex64
    np.testing.assert_array_equal(np.signbit(np.asarray(z).real), [False, True, False])
    np.testing.assert_array_equal(np.signbit(np.asarray(z).imag)[:2], [True, False])
    assert hf.complex(hf.ones(2, hf.float64), 1).dtype == hf.complex128
    assert hf.complex(1, 2).dtype == hf.complex64
    with pytest.raises(errors.DTypeError, match="complex"):
        hf.complex(1j, 2.0)


# ---- promotion and conversion


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("complex64", "float32", "complex64"),
        ("complex64", "float64", "complex128"),
        ("complex64", "int64", "complex64"),
        ("complex128", "float16", "complex128"),
        ("complex64", "bfloat16", "complex64"),
        ("complex64", "bool", "complex64"),
        ("complex64", "complex128", "complex128"),
    ],
)
def test_promotion_of_dtypes(a: str, b: str, result: str) -> None:
    kinds = [getattr(hf, n) if n != "bool" else hf.bool_ for n in (a, b)]
    assert hf.result_type(*kinds) == hf.result_type(*kinds[::-1]) == getattr(hf, result)
    assert (hf.ones(2, kinds[0]) + hf.ones(2, kinds[1])).dtype == getattr(hf, result)


def test_pythons_complex_is_weak() -> None:
    assert (hf.ones(2, hf.float32) * 1j).dtype == hf.complex64
    assert (hf.ones(2, hf.float64) * 1j).dtype == hf.complex128
    assert (hf.ones(2, hf.int32) + 1j).dtype == hf.complex64
    assert (hf.ones(2, hf.complex128) * 1j).dtype == hf.complex128
    assert (hf.ones(2, hf.complex64) * 2.5).dtype == hf.complex64
    assert hf.asarray(1j).dtype == hf.complex64 and hf.asarray([1j, 2]).tolist() == [1j, 2]
    assert hf.asarray(np.complex128(1j)).dtype == hf.complex128
    assert hf.asarray(np.array([1j], ">c8")).tolist() == [1j]


def test_conversions() -> None:
    z = hf.asarray([0j, 1 + 2j, complex(0, -0.0), complex(0, np.nan)])
    same(z.astype(hf.complex128), np.asarray(z).astype(np.complex128))
    assert z.astype(hf.bool_).tolist() == [False, True, False, True]
    same(hf.astype([1, 2], hf.complex64), np.array([1, 2], np.complex64))
    same(hf.ones(2, hf.bfloat16).astype(hf.complex64), np.ones(2, np.complex64))
    for dtype in (hf.float32, hf.float64, hf.int64):
        with pytest.raises(errors.DTypeError, match="real"):
            z.astype(dtype)
    with pytest.raises(errors.DTypeError, match="complex"):
        hf.asarray(1j, dtype=hf.float32)
    real = hf.Variable(np.zeros(4, np.float32))
    for lost in (
        lambda z: hf.asarray(z, dtype=hf.float32),
        lambda z: hf.sum(z, dtype=hf.float64),
        lambda z: hf.special.beta(z, 2),
        lambda z: hf.special.xlogy(2, z),
        lambda z: hf.random.normal((4,), z),
        lambda z: hf.random.poisson((4,), z),
        lambda z: hf.bincount(z, length=3),
        lambda z: hf.histogram(z, range=(0, 1)),
        lambda z: hf.percentile(1.0, z),
        lambda z: real.assign(z),
    ):
        for call in (lost, hf.function(lost)):
            with pytest.raises(errors.DTypeError, match="complex"):
                call(z)
    assert complex(z[1]) == 1 + 2j == z[1].item()
    with pytest.raises(errors.DTypeError, match="is complex"):
        float(z[1])
    with pytest.raises(errors.DTypeError, match="is complex"):
        int(z[1])
    assert bool(z[1]) and not z[0]
    assert "c64[4]" in repr(z)
    big = hf.ones(2000, hf.complex64)
    assert "max=1" in repr(big)


# ---- what only moves


@pytest.mark.parametrize("dtype", DTYPES)
def test_views_gathers_and_joins_move_whole_numbers(dtype: Any) -> None:
    x, y = numbers((4, 5), dtype), numbers((4, 5), dtype, 1)
    where = np.array([3, 0, 0])
    same(both(lambda a: a.T[::-1, 1:], x), x.T[::-1, 1:])
    same(both(lambda a: hf.reshape(a, (2, 10)) + 1j, x), x.reshape(2, 10) + dtype(1j))
    same(both(lambda a, b: hf.concat([a, b], axis=1), x, y), np.concatenate([x, y], 1))
    same(both(lambda a, i: hf.take(a, i, axis=0), x, where), x[where])
    same(both(lambda a, i: hf.take(a * 2, i, axis=1), x, where), (x * 2)[:, where])
    same(both(lambda a: hf.pad(a, [(1, 0), (0, 2)]), x), np.pad(x, [(1, 0), (0, 2)]))
    same(both(lambda a: hf.roll(a, 2, axis=1), x), np.roll(x, 2, 1))
    same(both(lambda a, b: hf.where(hf.abs(a) > 1, a, b), x, y), np.where(np.abs(x) > 1, x, y))
    same(both(lambda a, b: hf.where(hf.abs(a) > 1, a, -b), x, y), np.where(np.abs(x) > 1, x, -y))
    same(both(lambda a: hf.broadcast_to(a[:, :1], (4, 3)), x), np.broadcast_to(x[:, :1], (4, 3)))
    changed = hf.asarray(x)
    changed[1] = 5j
    expected = x.copy()
    expected[1] = 5j
    same(changed, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 15, 16, 17, 33, 1000])
def test_every_length_of_vectors(dtype: Any, n: int) -> None:
    x, y = numbers(n, dtype), numbers(n, dtype, 1)
    same(both(lambda a, b: (a + b)[::-1] - hf.conj(b), x, y), (x + y)[::-1] - np.conj(y))
    same(both(lambda a, b: a[::2] + b[::2], x, y), x[::2] + y[::2])


# ---- sums and products


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_products(dtype: Any) -> None:
    x, y = numbers((33, 40), dtype), numbers((40, 17), dtype, 1)
    near = {"rtol": 1e-4 if dtype == np.complex64 else 1e-12, "atol": 1e-4 if dtype == np.complex64 else 1e-12}
    np.testing.assert_allclose(both(lambda a: hf.sum(a, axis=1), x), x.sum(1), **near)
    np.testing.assert_allclose(both(lambda a: hf.mean(a), x), x.mean(), **near)
    np.testing.assert_allclose(both(lambda a: hf.cumulative_sum(a, axis=0), x), x.cumsum(0), **near)
    np.testing.assert_allclose(both(lambda a, b: a @ b, x, y), x @ y, **near)
    np.testing.assert_allclose(both(lambda a, b: hf.einsum("ij,jk->ki", a, b), x, y), (x @ y).T, **near)
    np.testing.assert_allclose(both(lambda a, b: hf.tensordot(a, b, 1), x, y), x @ y, **near)
    np.testing.assert_allclose(both(lambda a, b: hf.vecdot(a, b), x, x[0]), np.vecdot(x, x[0]), **near)
    assert hf.sum(hf.asarray(numbers(0, dtype))).item() == 0


# ---- what there is not


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z < z,
        hf.max,
        hf.argmin,
        hf.sort,
        hf.argsort,
        hf.floor,
        hf.atan2,
        lambda z: z // 2,
        lambda z: z % 2,
        lambda z: hf.maximum(z, z),
        lambda z: hf.clip(z, 0, 1),
        lambda z: hf.arange(3, dtype=z.dtype),
        lambda z: hf.searchsorted(z, z),
        hf.signbit,
    ],
)
def test_what_has_no_meaning_for_complex_numbers_says_so(function: Callable[..., Any]) -> None:
    z = hf.asarray([1j, 2])
    if function is hf.atan2:
        function = lambda z: hf.atan2(z, z)  # noqa: E731
    with pytest.raises(errors.DTypeError, match=r"test_complex\.py|c64|complex"):
        function(z)


# ---- derivatives


def descent(loss: Callable[..., Any], z: np.ndarray) -> np.ndarray:
    """dL/dx + i dL/dy by central differences."""
    out = np.empty_like(z)
    for k in np.ndindex(z.shape):
        for step in (1e-6, 1e-6j):
            moved = [z.copy(), z.copy()]
            moved[0][k] += step
            moved[1][k] -= step
            slope = (float(loss(hf.asarray(moved[0]))) - float(loss(hf.asarray(moved[1])))) / 2e-6
            out[k] = slope if step == 1e-6 else out[k] + 1j * slope
    return out


W = numbers((3, 3), np.complex128, 5)

LOSSES: dict[str, Callable[..., Any]] = {
    "abs": lambda z: hf.sum(hf.abs(z)),
    "product": lambda z: hf.sum(hf.real(z * z * hf.conj(z) * (1 - 2j))),
    "quotient": lambda z: hf.sum(hf.imag((z + 2j) / (z - 3))),
    "angle": lambda z: hf.sum(hf.angle(z)),
    "parts": lambda z: hf.sum(hf.real(z) * hf.imag(z) ** 2),
    "complex": lambda z: hf.sum(hf.abs(hf.complex(hf.imag(z), hf.real(z) * 2)) ** 2),
    "matmul": lambda z: hf.sum(hf.abs(hf.asarray(W) @ hf.reshape(z, (3, 1))) ** 2),
    "vecdot": lambda z: hf.abs(hf.vecdot(z, hf.asarray(W[0]))),
    "sign": lambda z: hf.sum(hf.real(hf.sign(z) * (2 + 1j))),
    "reciprocal": lambda z: hf.sum(hf.imag(hf.reciprocal(z))),
    "take": lambda z: hf.sum(hf.abs(z[hf.asarray([0, 0, 2])]) ** 2),
    "cumulative": lambda z: hf.sum(hf.abs(hf.cumulative_sum(z)) ** 2),
    "real dtype": lambda z: hf.sum(hf.abs(hf.real(z) * (1 + 2j)) ** 2),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_point_where_a_real_loss_grows(name: str) -> None:
    loss = LOSSES[name]
    z = numbers(3, np.complex128, 7)
    expected = descent(loss, z)
    with hf.GradientTape() as tape:
        x = hf.asarray(z)
        tape.watch(x)
        value = loss(x)
    np.testing.assert_allclose(tape.gradient(value, x), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(hf.grad(loss)(hf.asarray(z)), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(hf.function(hf.grad(loss))(hf.asarray(z)), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_tangents_are_directional_derivatives(name: str) -> None:
    loss = LOSSES[name]
    z, t = numbers(3, np.complex128, 7), numbers(3, np.complex128, 8)
    slope = (float(loss(hf.asarray(z + 1e-6 * t))) - float(loss(hf.asarray(z - 1e-6 * t)))) / 2e-6
    _, tangent = hf.jvp(loss, (hf.asarray(z),), (hf.asarray(t),))
    np.testing.assert_allclose(tangent, slope, rtol=1e-6, atol=1e-6)


def test_output_gradients_are_conjugated_as_gradients_are() -> None:
    z = hf.asarray(numbers(3, np.complex128))
    g = hf.asarray(numbers(3, np.complex128, 1))
    with hf.GradientTape() as tape:
        tape.watch(z)
        y = z * z
    # As TensorFlow has it: g conj(dy/dz).
    np.testing.assert_allclose(tape.gradient(y, z, g), np.asarray(g) * np.conj(2 * np.asarray(z)))


def test_descent_along_gradients_finds_the_least_value() -> None:
    goal = hf.asarray([1 - 2j, 3j])
    z = hf.Variable(hf.zeros(2, hf.complex64))

    @hf.function
    def step() -> Any:
        with hf.GradientTape() as tape:
            loss = hf.sum(hf.abs(z - goal) ** 2)
        z.assign_sub(0.25 * tape.gradient(loss, z))
        return loss

    for _ in range(40):
        step()
    np.testing.assert_allclose(z, goal, atol=1e-5)


def test_a_gradient_of_ones_own_is_conjugated_like_others() -> None:
    @hf.custom_gradient
    def squared_length(z: Any) -> Any:
        return hf.abs(z) ** 2, lambda g: 2 * z * g

    z = hf.asarray(numbers(3, np.complex128))
    np.testing.assert_allclose(hf.grad(lambda z: hf.sum(squared_length(z)))(z), 2 * np.asarray(z))


def test_losses_are_real() -> None:
    with pytest.raises(errors.DTypeError, match="real"):
        hf.grad(lambda z: z * z)(hf.asarray(1j))
    with hf.GradientTape() as tape:
        z = hf.asarray([1j])
        tape.watch(z)
        y = z * z
    with pytest.raises(errors.DTypeError, match="Jacobian"):
        tape.jacobian(y, z)


# ---- programs


def test_control_flow_carries_complex_values() -> None:
    def iterate(z: Any, n: Any) -> Any:
        for _ in range(n):
            z = z * z * 0.5 + 0.25j if hf.abs(z) < 4 else hf.conj(z)
        return z

    z = hf.asarray(0.5 + 0.5j)
    expected = 0.5 + 0.5j
    for _ in range(5):
        expected = expected * expected * 0.5 + 0.25j if abs(expected) < 4 else expected.conjugate()
    np.testing.assert_allclose(hf.function(iterate)(z, hf.asarray(5)), expected, rtol=1e-6)


def test_vectorized_map_over_complex_numbers() -> None:
    z, w = numbers((4, 3), np.complex64), numbers((3, 3), np.complex64)
    result = hf.vectorized_map(lambda row: hf.asarray(w) @ hf.conj(row), hf.asarray(z))
    np.testing.assert_allclose(result, np.conj(z) @ w.T, rtol=1e-5)


def test_symbolic_extents() -> None:
    f = hf.function(lambda z: hf.sum(z * hf.conj(z)) + z[0], input_signature=[hf.TensorSpec([None], hf.complex64)])
    for n in (1, 5, 100):
        z = numbers(n, np.complex64)
        np.testing.assert_allclose(f(hf.asarray(z)), np.sum(z * np.conj(z)) + z[0], rtol=1e-4)


def test_other_libraries_share_memory() -> None:
    z = numbers((2, 3), np.complex64)
    x = hf.asarray(z)
    assert np.asarray(x).tobytes() == z.tobytes()
    same(np.from_dlpack(x), z)
    same(hf.from_dlpack(z), z)
    same(np.conj(x), np.conj(z))
    assert type(np.multiply(x, 2)) is type(x)


# ---- elementary functions

FUNCTIONS = ["exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan"]
FUNCTIONS += ["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]
SPECIAL = (0.0, -0.0, 1.0, -2.5, 0.5, np.inf, -np.inf, np.nan, 300.0, -300.0)
# NumPy's differ from Annex G there (infinite and NaN arguments), and its log1p loses digits near 0.
OWN_VALUES = ("expm1",)


def of_numpy(name: str) -> Any:
    return getattr(np, {"a": "arc"}.get(name[0], name[0]) + name[1:]) if name[0] == "a" else getattr(np, name)


def accurate(name: str, z: np.ndarray) -> np.ndarray:
    """The function in twice the precision, or in what NumPy has."""
    wide = z.astype(np.complex128 if z.dtype == np.complex64 else np.clongdouble)
    if name == "log1p":
        x, y = wide.real, wide.imag
        return np.log1p(x * (2 + x) + y * y) / 2 + 1j * np.arctan2(y, 1 + x)
    return np.asarray(of_numpy(name)(wide))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_elementary_functions_are_right_within_three_units(name: str, dtype: Any) -> None:
    z = np.concatenate([numbers(2000, dtype, k) * dtype(scale) for k, scale in enumerate((1e-3, 1, 1, 10, 30))])
    z = z[np.abs(z.real) < 80]
    result, expected = np.asarray(getattr(hf, name)(hf.asarray(z))), accurate(name, z)
    assert result.dtype == dtype
    there = (np.abs(expected) < np.finfo(dtype).max / 4) & (np.abs(expected) > np.finfo(dtype).tiny)
    assert np.all(np.abs(result - expected)[there] <= 3 * np.finfo(dtype).eps * np.abs(expected)[there])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in OWN_VALUES])
def test_elementary_functions_at_edges_and_on_branch_cuts(name: str, dtype: Any) -> None:
    z = np.empty((len(SPECIAL), len(SPECIAL)), dtype)
    z.real, z.imag = np.meshgrid(np.array(SPECIAL), np.array(SPECIAL))
    with np.errstate(all="ignore"):
        expected = of_numpy(name)(z)
    result = np.asarray(getattr(hf, name)(hf.asarray(z)))
    for x, y, other in ((result.real, expected.real, expected.imag), (result.imag, expected.imag, expected.real)):
        np.testing.assert_allclose(np.abs(x), np.abs(y), rtol=1e-5)
        known = ~np.isnan(x) & ~np.isnan(other)  # beside a NaN signs are open
        np.testing.assert_array_equal(np.signbit(x)[known], np.signbit(y)[known])


@pytest.mark.parametrize("dtype", DTYPES)
def test_expm1_at_edges_is_that_of_annex_g(dtype: Any) -> None:
    z = np.array([complex(np.inf, 0), complex(-np.inf, np.inf), complex(np.nan, 0), complex(np.inf, np.nan), 0], dtype)
    expected = np.array([complex(np.inf, 0), -1, complex(np.nan, 0), complex(np.inf, np.nan), 0], dtype)
    same(hf.expm1(hf.asarray(z)), expected)


def test_compiled_chains_of_functions_have_the_bits_of_eager_ones() -> None:
    z = numbers(67, np.complex64)
    both(lambda z: hf.exp(1j * hf.real(z)) * z, z)
    both(lambda z: hf.log(hf.sqrt(z) + hf.tanh(z)) ** 2, z)
    both(lambda z: hf.asin(z) / hf.acosh(z) - z**0.5, z.astype(np.complex128))


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers(dtype: Any) -> None:
    z, w = numbers(500, dtype), numbers(500, dtype, 1)
    near = {"rtol": 1e-5 if dtype == np.complex64 else 1e-13}
    np.testing.assert_allclose(both(lambda z, w: z**w, z, w), z**w, **near)
    for exponent in (0, 1, 2, 3, 4, -1, 0.5, -0.5, 2.5, 1 + 1j, 7):
        np.testing.assert_allclose(
            both(lambda z, e=exponent: z**e, z), z**exponent, rtol=1e-4 if dtype == np.complex64 else 1e-12
        )
    zero = hf.zeros(1, hf.complex128)
    assert (zero**0).tolist() == [1] and (zero**2.5).tolist() == [0]
    assert np.isnan(np.asarray(zero**1j)).all()
    np.testing.assert_allclose(hf.rsqrt(hf.asarray(z)), 1 / np.sqrt(z), **near)


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "sin", "tan", "asin", "acos", "atan", "tanh", "asinh", "acosh"])
def test_derivatives_of_elementary_functions(name: str) -> None:
    loss = lambda z: hf.sum(hf.real(getattr(hf, name)(z) * (1 - 2j)))  # noqa: E731
    z = numbers(3, np.complex128, 11)
    np.testing.assert_allclose(hf.grad(loss)(hf.asarray(z)), descent(loss, z), rtol=1e-6, atol=1e-6)


def test_derivatives_of_powers_and_products() -> None:
    for loss in (
        lambda z: hf.sum(hf.real(z ** (1.5 - 1j))),
        lambda z: hf.sum(hf.imag((1 + 2j) ** z)),
        lambda z: hf.real(hf.prod(z) * (1 + 1j)),
        lambda z: hf.sum(hf.abs(hf.cumulative_prod(z)) ** 2),
        lambda z: hf.var(z),
    ):
        z = numbers(3, np.complex128, 11)
        np.testing.assert_allclose(hf.grad(loss)(hf.asarray(z)), descent(loss, z), rtol=1e-6, atol=1e-6)
    holes = hf.asarray([2j, 0, 3.0, 1 + 1j])
    np.testing.assert_allclose(hf.grad(lambda z: hf.real(hf.prod(z)))(holes), [0, np.conj(2j * 3 * (1 + 1j)), 0, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_products_along_axes(dtype: Any) -> None:
    near = {"rtol": 1e-4 if dtype == np.complex64 else 1e-12}
    for shape, axis in (((5, 7), 0), ((5, 7), 1), ((2, 3, 4), (0, 2)), ((33,), None), ((0, 3), 0)):
        z = numbers(shape, dtype)
        np.testing.assert_allclose(both(lambda z, a=axis: hf.prod(z, axis=a), z), np.prod(z, axis=axis), **near)
    z = numbers((4, 30), dtype)
    np.testing.assert_allclose(both(lambda z: hf.cumulative_prod(z, axis=1), z), np.cumprod(z, axis=1), **near)
    np.testing.assert_allclose(both(lambda z: hf.var(z, axis=0), z), np.var(z, axis=0), **near)


def test_attributes_and_methods() -> None:
    x = numbers((2, 3), np.complex64)
    z = hf.asarray(x)
    same(z.real, x.real)
    same(z.imag, x.imag)
    same(z.conj(), x.conj())
    same(z.conjugate(), x.conj())
    same(z.H, x.conj().T)
    same(hf.ones((2, 2, 3)).mH, np.ones((2, 3, 2), np.float32))
    same(hf.Variable(z).real, x.real)
    assert hf.ones(2).imag.tolist() == [0, 0]


# ---- the rest of the library


def test_norms_are_real() -> None:
    x = numbers((3, 4), np.complex128)
    for order in (1, 2, 3, np.inf, -np.inf, 0):
        expected = np.linalg.norm(x[0], order)
        np.testing.assert_allclose(both(lambda z, p=order: hf.linalg.vector_norm(z, ord=p), x[0]), expected)
    np.testing.assert_allclose(hf.linalg.matrix_norm(hf.asarray(x)), np.linalg.norm(x))
    np.testing.assert_allclose(hf.linalg.norm(hf.asarray(x), 1), np.linalg.norm(x, 1))


def test_round_and_nan_to_num_work_on_parts() -> None:
    x = np.array([1.5 - 2.5j, complex(np.nan, np.inf), -0.4 + 0.6j], np.complex64)
    same(both(hf.round, x), np.round(x))
    same(both(hf.nan_to_num, x), np.nan_to_num(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_normal_numbers_have_half_of_the_variance_in_each_part(dtype: Any) -> None:
    hf.random.set_seed(5)
    z = np.asarray(hf.random.normal((40000,), mean=1j, stddev=2.0, dtype=dtype))
    assert z.dtype == dtype
    np.testing.assert_allclose([z.real.mean(), z.imag.mean()], [0, 1], atol=0.05)
    np.testing.assert_allclose([z.real.var(), z.imag.var()], [2, 2], rtol=0.05)
    assert abs(np.mean((z.real - 0) * (z.imag - 1))) < 0.05
    draw = lambda: hf.random.stateless_normal((100,), seed=[1, 2], dtype=dtype)  # noqa: E731
    same(draw(), hf.function(draw)())


def test_files_keep_complex_numbers(tmp_path: Any) -> None:
    values = {str(d.__name__): hf.Variable(numbers((2, 3), d)) for d in DTYPES}
    before = {name: v.numpy().copy() for name, v in values.items()}
    checkpoint = hf.checkpoint.Checkpoint(**values)
    path = checkpoint.save(tmp_path / "complex")
    for v in values.values():
        v.assign(v * 0)
    checkpoint.restore(path)
    for name, v in values.items():
        same(v, before[name])
    f = hf.function(lambda z: hf.exp(z) * 1j, input_signature=[hf.TensorSpec([None, 3], hf.complex64)])
    hf.saved.save(f, tmp_path / "saved")
    x = numbers((5, 3), np.complex64)
    same(hf.saved.load(tmp_path / "saved")(hf.asarray(x)), f(hf.asarray(x)))


def test_operators_of_native_code_have_the_same_bits() -> None:
    for dtype in DTYPES:
        z, w = hf.asarray(numbers(33, dtype)), hf.asarray(numbers(33, dtype, 1))

        def results(z: Any = z, w: Any = w) -> list[bytes]:
            made = [z * w, z + w, z / w, z - w[0], z[0] * w, -z, abs(z), z == w, z != w, z**w]
            made += [z * 2.5, 1j - z, 3 / z, z - 1, z == 1.0, z**2, z * -0.0, z * float("nan"), z * 2**40]
            return [np.asarray(x).tobytes() for x in made]

        first = results()
        for _ in range(300):
            again = results()
        assert again == first
        with pytest.raises(errors.DTypeError, match="less"):
            z < w  # noqa: B015


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_change_no_bit(threads: int) -> None:
    z = numbers(300_000, np.complex64)
    expected = z * np.conj(z[::-1])
    before = hf.config.get_num_threads()
    try:
        hf.config.set_num_threads(threads)
        result = hf.function(lambda a: a * hf.conj(a[::-1]))(hf.asarray(z))
        total = hf.function(lambda a: hf.sum(a * a))(hf.asarray(z))
    finally:
        hf.config.set_num_threads(before)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert total.numpy().tobytes() == np.asarray(hf.sum(hf.asarray(z) * hf.asarray(z))).tobytes()


def test_fills_and_angles() -> None:
    x = numbers((2, 3), np.complex64)
    expected = np.pad(x, [(1, 0), (0, 2)], constant_values=2 - 1j)
    same(both(lambda z: hf.pad(z, [(1, 0), (0, 2)], constant_values=2 - 1j), x), expected)
    assert hf.angle([0.0, -0.0, -2.0, 3.0]).tolist() == np.angle(np.float32([0, -0.0, -2, 3])).tolist()
    np.testing.assert_allclose(np.angle(hf.asarray(x)), np.angle(x), rtol=1e-6)


# ---- matrices


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 40])
def test_equations_inverses_and_determinants(n: int, dtype: Any) -> None:
    a, y = numbers((2, n, n), dtype), numbers((2, n, 3), dtype, 1)
    near = {"rtol": 2e-3, "atol": 2e-3} if dtype == np.complex64 else {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(both(hf.linalg.solve, a, y), np.linalg.solve(a, y), **near)
    np.testing.assert_allclose(both(hf.linalg.inv, a), np.linalg.inv(a), **near)
    expected = np.linalg.det(a)
    np.testing.assert_allclose(both(hf.linalg.det, a) / expected, np.ones(2), **near)


@pytest.mark.parametrize("name", ["inv", "det", "solve"])
def test_derivatives_of_equations(name: str) -> None:
    y = hf.asarray(numbers((2, 1), np.complex128, 3))
    loss = {
        "inv": lambda a: hf.sum(hf.abs(hf.linalg.inv(a)) ** 2),
        "det": lambda a: hf.abs(hf.linalg.det(a)) ** 2,
        "solve": lambda a: hf.sum(hf.real(hf.linalg.solve(a, y) * (1 - 2j))),
    }[name]
    a = numbers((2, 2), np.complex128, 4)
    np.testing.assert_allclose(hf.grad(loss)(hf.asarray(a)), descent(loss, a), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_powers_of_zero_and_float_power(dtype: Any) -> None:
    exponents = np.array([1 + 1j, 0.5 - 3j, 2, 0, -1 + 1j, -2, 1j], dtype)
    with np.errstate(all="ignore"):
        same(both(hf.pow, np.zeros_like(exponents), exponents), np.zeros_like(exponents) ** exponents)
    z, w = numbers(9, dtype), numbers(9, dtype, 1)
    for x, y in ((z, 2), (2, z), (z, w), (z, 0.5), (z.real, w)):
        operands = [a for a in (x, y) if isinstance(a, np.ndarray)]
        given = lambda *a, x=x, y=y: hf.float_power(  # noqa: E731
            a[0] if isinstance(x, np.ndarray) else x, a[-1] if isinstance(y, np.ndarray) else y
        )
        result = both(given, *operands)
        assert result.dtype == np.complex128
        np.testing.assert_allclose(result, np.float_power(x, y), rtol=1e-12)


def test_a_singular_complex_matrix_is_named() -> None:
    with pytest.raises(hf.errors.LinAlgError, match=r"c64\[2,2,2\], at \[1\] of the stack"):
        hf.linalg.inv(hf.asarray(np.array([np.eye(2), np.zeros((2, 2))], np.complex64)))


@pytest.mark.runs_eagerly
def test_numbers_of_python_in_compiled_code() -> None:
    def carried(z: Any, n: Any) -> Any:
        c = 0.0
        for _ in range(n):
            c = c * 2 + 1j  # the Python number has no one type: such a call runs eagerly
        return c * z

    z = numbers(3, np.complex64)
    result = hf.function(carried)(hf.asarray(z), hf.asarray(3))
    np.testing.assert_allclose(result, z * 7j, rtol=1e-6)
    chosen = hf.function(lambda z: (1j if hf.abs(z[0]) > 100 else 2j) * z)(hf.asarray(z))
    np.testing.assert_allclose(chosen, 2j * z, rtol=1e-6)
    scaled = hf.function(lambda z, c: z * c)
    for number in (2j, 1 - 1j, np.complex64(3j)):
        np.testing.assert_allclose(scaled(hf.asarray(z), number), z * np.complex64(number), rtol=1e-6)
    for convert in (float, int):
        with pytest.raises((errors.DTypeError, errors.TraceError)):
            hf.function(lambda z, f=convert: f(z[0]) * 2)(hf.asarray(z))
