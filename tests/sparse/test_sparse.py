"""Sparse tensors against dense ones in float64, eagerly and compiled, with the parts that people hand in by mistake."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import config, errors
from hybridflow.compiler.ops import TABLE
from hybridflow.eager.dispatch import apply
from hybridflow.eager.fast_path import make_native
from hybridflow.sparse import COO, CSR

RNG = np.random.default_rng(7)


def entries(rows: int, columns: int, count: int, dtype: str = "float32", index: str = "int32") -> COO:
    """Unsorted entries, some of them at one place."""
    at = np.stack([RNG.integers(0, rows, count), RNG.integers(0, columns, count)], axis=1)
    return COO(at.astype(index), RNG.normal(size=count).astype(dtype), (rows, columns))


def dense(x: COO) -> np.ndarray:
    out = np.zeros(x.shape, np.float64)
    np.add.at(out, tuple(x.indices.numpy().T), x.values.numpy())
    return out


def close(found: hf.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found.numpy(), expected, rtol=2e-5, atol=2e-5)


SIZES = [(7, 5, 11), (1, 1, 3), (4, 3, 0), (30, 17, 90)]


@pytest.mark.parametrize(("rows", "columns", "count"), SIZES)
@pytest.mark.parametrize("inner", [None, 1, 9, 33])
def test_products(rows: int, columns: int, count: int, inner: int | None) -> None:
    coo = entries(rows, columns, count)
    x = RNG.normal(size=columns if inner is None else (columns, inner)).astype(np.float32)
    for a in (coo, coo.to_csr(), coo.T.T, coo.to_csr().T.T):
        found = a @ x
        close(found, dense(coo) @ x)
        compiled = hf.function(lambda a, x: a @ x)(a, x)
        assert found.numpy().tobytes() == compiled.numpy().tobytes()
        close(x.T @ a.T, x.T @ dense(coo).T)


def test_threads_change_no_bits() -> None:
    a = entries(700, 300, 9000).to_csr()
    x = RNG.normal(size=(300, 40)).astype(np.float32)

    @hf.function
    def products(a: CSR, x: hf.Tensor) -> tuple[hf.Tensor, hf.Tensor, hf.Tensor]:
        gradient = hf.grad(lambda v: hf.sum(hf.tanh(a.with_values(v) @ x)))(a.values)
        return a @ x, gradient, hf.sparse.softmax(a).values

    before, bits = config.get_num_threads(), set()
    try:
        for threads in (1, 2, 3):
            config.set_num_threads(threads)
            bits.add(tuple(part.numpy().tobytes() for part in products(a, x)))
            bits.add(tuple(part.numpy().tobytes() for part in hf.function(products)(a, x)))
    finally:
        config.set_num_threads(before)
    assert len(bits) == 1


def test_order_of_a_row_is_that_of_its_entries() -> None:
    a = CSR([0, 3], [0, 0, 0], np.float32([1e8, 1.0, -1e8]), (1, 1))
    assert (a @ np.float32([1.0])).tolist() == [np.float32(np.float32(1e8) + np.float32(1)) - np.float32(1e8)]


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0])
def test_special_values_stay_in_their_rows(special: float) -> None:
    a = CSR([0, 1, 1, 2], [0, 1], np.float32([1.0, 2.0]), (3, 2))
    found = (a @ np.float32([special, 1.0])).numpy()
    np.testing.assert_array_equal(found, np.float32([np.float32(0) + special, 0.0, 2.0]))


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "complex64"])
def test_dtypes(dtype: str) -> None:
    a = entries(6, 5, 12).to_csr()
    values = np.asarray(RNG.integers(-3, 4, 12) * (1 + 1j if dtype == "complex64" else 1)).astype(dtype)
    a = a.with_values(values)
    x = RNG.integers(-3, 4, (5, 3)).astype(dtype)
    whole = np.zeros((6, 5), dtype)
    np.add.at(whole, tuple(a.to_coo().indices.numpy().T), values)
    assert (a @ x).dtype == np.dtype(dtype)
    np.testing.assert_array_equal((a @ x).numpy(), whole @ x)


@pytest.mark.parametrize("inner", [2, 12])
@pytest.mark.parametrize("as_csr", [False, True])
def test_gradients(inner: int, as_csr: bool) -> None:
    coo = entries(9, 6, 25, "float64")
    a = coo.to_csr() if as_csr else coo
    x = hf.asarray(RNG.normal(size=(6, inner)))

    def loss(values: hf.Tensor, x: hf.Tensor) -> hf.Tensor:
        return hf.sum((a.with_values(values) @ x) ** 2)

    for compute in (hf.grad(loss, argnums=(0, 1)), hf.function(hf.grad(loss, argnums=(0, 1)))):
        of_values, of_x = compute(a.values, x)
        outer = 2 * dense(coo) @ x.numpy()
        rows, columns = a.to_coo().coords.numpy()
        close(of_values, (outer[rows] * x.numpy()[columns]).sum(-1))
        close(of_x, dense(coo).T @ outer)
    tangent = hf.jvp(lambda x: a @ x, (x,), (hf.ones_like(x),))[1]
    close(tangent, dense(coo) @ np.ones((6, inner)))
    second = hf.grad(lambda x: hf.sum(hf.grad(loss, argnums=1)(a.values, x) ** 2))(x)
    square = 2 * dense(coo).T @ dense(coo)
    close(second, 2 * square @ square @ x.numpy())


def test_vmap_over_matrices_and_vectors() -> None:
    a = entries(5, 4, 9).to_csr()
    x = RNG.normal(size=(3, 4, 2)).astype(np.float32)
    close(hf.vmap(lambda x: a @ x)(x), dense(a.to_coo()) @ x)
    several = hf.tree.map(lambda part: hf.stack([part, part]), a)
    assert several.shape == (2, 5, 4)
    close(hf.vmap(lambda a, x: a @ x)(several, x[:2]), dense(a.to_coo()) @ x[:2])
    close(
        hf.vmap(lambda v: a.with_values(v) @ x[0])(hf.stack([a.values, 2 * a.values]))[1], 2 * dense(a.to_coo()) @ x[0]
    )


def test_travel_through_functions_datasets_and_checkpoints(tmp_path: object) -> None:
    a = entries(4, 3, 6)

    @hf.function
    def doubled(a: COO) -> COO:
        return a * 2.0

    out = doubled(a)
    assert isinstance(out, COO)
    assert out.shape == (4, 3)
    close(out.to_dense(), 2 * dense(a))
    assert doubled(entries(5, 3, 6)).shape == (5, 3)
    (batch,) = hf.data.Dataset.from_tensors(a).batch(1)
    assert isinstance(batch, COO)
    assert batch.shape == (1, 4, 3)
    kept = hf.fori_loop(0, 3, lambda i, b: b * 2.0, a)
    close(kept.to_dense(), 8 * dense(a))
    leaves, structure = hf.tree.flatten(a)
    hf.checkpoint.save_arrays(f"{tmp_path}/a", {str(k): leaf for k, leaf in enumerate(leaves)})
    back = hf.checkpoint.load_arrays(f"{tmp_path}/a")
    close(hf.tree.unflatten(structure, [back[str(k)] for k in range(len(leaves))]).to_dense(), dense(a))


def test_conversions_and_structure() -> None:
    a = entries(6, 4, 15)
    whole = dense(a)
    for x in (a, a.to_csr()):
        close(x.to_dense(), whole)
        close(x.T.to_dense(), whole.T)
        close(x.coalesce().to_dense(), whole)
        close(hf.sparse.reorder(x).to_dense(), whole)
        close((x * 3.0 - x).to_dense(), 2 * whole)
        close((-x).to_dense(), -whole)
        close(hf.sparse.multiply(x, whole).to_dense(), whole * whole) if x.coalesce().nnz == x.nnz else None
        close(hf.sparse.add(x, whole), 2 * whole)
        close(hf.sparse.concat(1, [x, x]).to_dense(), np.concatenate([whole, whole], 1))
        for axis in (None, 0, 1, -1, (0, 1)):
            close(x.sum(axis), whole.sum(axis))
            close(x.sum(axis, keepdims=True), whole.sum(axis, keepdims=True))
    flat = hf.sparse.reorder(a).indices.numpy() @ [4, 1]
    assert (np.diff(flat) >= 0).all()
    rows = a.to_csr()
    close(rows[1:4].to_dense(), whole[1:4])
    close(rows[4:2].to_dense(), whole[4:2])
    back = hf.sparse.from_dense(whole.astype(np.float32), "csr")
    close(back.to_dense(), whole)
    three = np.zeros((2, 3, 4))
    three[1, 2, 0], three[0, 1, 3] = 5.0, 6.0
    cube = hf.sparse.from_dense(three)
    close(cube.to_dense(), three)
    close(cube.transpose((2, 0, 1)).to_dense(), three.transpose(2, 0, 1))
    close(cube.sum((0, 2)), three.sum((0, 2)))
    flags = COO([[0], [0]], [True, True], (2,)).to_dense()
    assert flags.tolist() == [True, False]


def test_scipy_both_ways() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    given = sparse.random(6, 5, 0.4, format="csr", rng=np.random.default_rng(0))
    for x in (given, given.tocoo(), given.tocsc(), sparse.coo_array(given)):
        close(hf.sparse.from_scipy(x).to_dense(), given.toarray())
    np.testing.assert_array_equal(hf.sparse.from_scipy(given).to_scipy().toarray(), given.toarray())
    np.testing.assert_array_equal(hf.sparse.from_scipy(given.tocoo()).to_scipy().toarray(), given.toarray())


def test_sums_of_narrow_numbers_do_not_stop_growing() -> None:
    """float16 is added up in float32 and small integers in 64 bits, whatever the format and the number of columns."""
    count = 5000
    ones, nowhere = np.ones(count, np.float16), np.zeros((count, 2), np.int32)
    coo = COO(nowhere, ones, (1, 1))
    for a in (coo, coo.to_csr()):
        assert a.to_dense().tolist() == a.sum(0, keepdims=True).tolist() == [[count]] and a.sum().tolist() == count
        for x in (np.ones(1, np.float16), np.ones((1, 3), np.float16), np.ones((1, 9), np.float16)):
            assert set(np.ravel((a @ x).numpy())) == {count} and (a @ x).dtype == np.float16
    rows = coo.to_csr()
    for across in (3, 9):
        x = hf.ones((1, across), dtype="float16")
        assert set(np.ravel(hf.grad(lambda x: hf.sum(rows @ x))(x).numpy())) == {count}
    small = COO(nowhere[:3], np.full(3, 100, np.int8), (1, 1))
    assert small.sum(0).tolist() == [300] and small.sum().tolist() == 300
    assert small.to_dense().dtype == np.int8
    assert hf.sparse.from_dense([[True, False], [True, True]]).sum(0).tolist() == [2, 1]


@pytest.mark.parametrize("as_csr", [False, True])
def test_tensors_from_the_left(as_csr: bool) -> None:
    coo = entries(4, 3, 7)
    a, x = coo.to_csr() if as_csr else coo, RNG.normal(size=(2, 4)).astype(np.float32)
    expected = a.__rmatmul__(x)
    for left in (x, hf.asarray(x), hf.Variable(x)):
        assert (left @ a).numpy().tobytes() == expected.numpy().tobytes()
    assert hf.function(lambda x, a: x @ a)(x, a).numpy().tobytes() == expected.numpy().tobytes()
    for wrong in (object(), "text", coo.T):
        with pytest.raises((errors.ArgumentTypeError, errors.ShapeError)):
            hf.asarray(x) @ wrong


@pytest.mark.parametrize("as_csr", [False, True])
@pytest.mark.parametrize("native", [False, True])
def test_dense_operands_of_operators(as_csr: bool, native: bool) -> None:
    """From both sides, also of native code, on a tape, and compiled: products are sparse, sums dense."""
    coo = entries(4, 3, 7)
    a, whole = coo.to_csr() if as_csr else coo, dense(coo)
    x, row = (RNG.normal(size=shape).astype(np.float32) for shape in ((4, 3), (3,)))
    if native:
        make_native()
    cases = [
        (lambda a, x, row: x * a, whole * x),
        (lambda a, x, row: a * row, whole * row),
        (lambda a, x, row: a / x, whole / x),
        (lambda a, x, row: x + a, whole + x),
        (lambda a, x, row: a - x, whole - x),
        (lambda a, x, row: x - a / 2, x - whole / 2),
    ]
    for function, expected in cases:
        with hf.GradientTape() as tape:
            left = hf.asarray(x)
            tape.watch(left)
            found = function(a, left, hf.asarray(row))
            found = found.to_dense() if isinstance(found, (COO, CSR)) else found
        close(found, expected)
        assert tape.gradient(found, left) is not None or expected is cases[1][1]
        again = hf.function(function)(a, x, row)
        close(again.to_dense() if isinstance(again, (COO, CSR)) else again, expected)
    for wrong in (lambda: hf.ones((2, 3)) * a, lambda: a + hf.ones(3), lambda: a / hf.ones((1, 4, 3))):
        with pytest.raises(errors.ShapeError):
            wrong()
    for wrong in (lambda: a + 1, lambda: 1 - a, lambda: a * a, lambda: hf.multiply(hf.ones((4, 3)), a)):
        with pytest.raises(errors.ArgumentTypeError):
            wrong()


def test_large_extents() -> None:
    far = 2**40
    a = COO(np.array([[1, 5]], np.int32), [2.0], (3, far))
    assert a.indices.dtype == np.int64 and hf.sparse.reorder(a).indices.tolist() == [[1, 5]]
    assert CSR(np.array([0, 1], np.int32), np.array([7], np.int32), [1.0], (1, far)).indices.dtype == np.int64


def test_softmax_sddmm_and_extremes() -> None:
    a = hf.sparse.from_dense(np.where(RNG.random((7, 5)) < 0.5, RNG.normal(size=(7, 5)), 0).astype(np.float32))
    whole = a.to_dense().numpy().astype(np.float64)
    shares = np.where(whole != 0, np.exp(whole), 0)
    with np.errstate(invalid="ignore"):
        shares = np.nan_to_num(shares / shares.sum(1, keepdims=True))
    x, y = RNG.normal(size=(7, 3)), RNG.normal(size=(5, 3))
    for m in (a, a.to_csr()):
        close(hf.sparse.softmax(m).to_dense(), shares)
        close(hf.sparse.sddmm(m, x, y).to_dense(), np.where(whole != 0, x @ y.T, 0))
        some = (whole != 0).any(1)
        close(hf.sparse.reduce_max(m)[some], np.where(whole != 0, whole, -np.inf).max(1)[some])
        close(hf.sparse.reduce_min(m, 1)[some], np.where(whole != 0, whole, np.inf).min(1)[some])
    large = hf.sparse.COO([[0, 0], [0, 1]], [1000.0, 1000.0], (1, 2))
    assert hf.sparse.softmax(large).values.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: COO([[5]], [1.0], (3,)), errors.IndexRangeError),
        (lambda: COO([[-1]], [1.0], (3,)), errors.IndexRangeError),
        (lambda: COO([[0.5]], [1.0], (3,)), errors.DTypeError),
        (lambda: COO([[0]], [1.0, 2.0], (3,)), errors.ShapeError),
        (lambda: COO([[0]], [1.0], (3, 3)), errors.ShapeError),
        (lambda: COO([[0]], [1.0], ()), errors.ShapeError),
        (lambda: COO([[0]], [1.0], (-1,)), errors.ShapeError),
        (lambda: COO([[0, 0]], [1.0], (2**40, 2**40)), errors.ShapeError),
        (lambda: hf.sparse.reduce_max(COO([[0]], [1j], (2,))), errors.DTypeError),
        (lambda: CSR([0, 2, 1], [0], [1.0], (2, 2)), errors.ArgumentError),
        (lambda: CSR([1, 1, 1], [0], [1.0], (2, 2)), errors.ArgumentError),
        (lambda: CSR([0, 1], [0], [1.0], (2, 2)), errors.ShapeError),
        (lambda: CSR([0, 1, 1], [2], [1.0], (2, 2)), errors.IndexRangeError),
        (lambda: hf.function(lambda at: COO(at, [1.0], (3,)))(hf.asarray([[7]])), errors.IndexRangeError),
        (lambda: hf.function(lambda p: CSR(p, [0], [1.0], (2, 2)))(hf.asarray([0, 2, 1])), errors.ArgumentError),
        (lambda: hf.sparse.eye(2) @ np.ones(3), errors.ShapeError),
        (lambda: hf.sparse.eye(2) @ hf.sparse.eye(2), errors.ArgumentTypeError),
        (lambda: hf.sparse.eye(2).to_csr()[0], errors.ArgumentTypeError),
        (lambda: hf.sparse.eye(2).to_csr()[::2], errors.ArgumentTypeError),
        (lambda: hf.sparse.eye(2).with_values([1.0]), errors.ShapeError),
        (lambda: hf.sparse.eye(2).transpose((0, 0)), errors.ArgumentError),
        (lambda: hf.sparse.eye(2) + hf.sparse.eye(3), errors.ShapeError),
        (lambda: hf.sparse.softmax(np.ones((2, 2))), errors.ArgumentTypeError),
        (
            lambda: hf.function(lambda x: hf.sparse.from_dense(x)).get_concrete_function(hf.ones((2, 2))),
            errors.TraceError,
        ),
    ],
)
def test_bad_parts(make: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("inner", [(), (5,), (64,), (None,)])
def test_products_of_open_sizes_read_nothing_that_is_not_there(inner: tuple[int | None, ...]) -> None:
    def open_(*shape: int | None, dtype: str = "float32") -> hf.TensorSpec:
        return hf.TensorSpec(shape, dtype)

    many = open_(None, dtype="int32")
    product = hf.function(
        lambda x, v, columns, starts, ends: apply(TABLE["csr_matmul"], x, v, columns, starts, ends),
        input_signature=[open_(None, *inner), open_(None), many, many, many],
    )
    shape = tuple(7 if extent is None else extent for extent in inner)

    def found(rows: int, columns: list[int], starts: list[int], ends: list[int]) -> np.ndarray:
        x, v = np.ones((rows, *shape), np.float32), np.ones(len(columns), np.float32)
        return product(x, v, *(np.array(part, np.int32) for part in (columns, starts, ends))).numpy()

    assert found(0, [0, 5], [0, 1], [1, 2]).sum() == 0
    assert found(3, [], [0, 0], [0, 9]).sum() == 0
    np.testing.assert_array_equal(found(3, [-4, 9], [-3, 1], [1, 99]), np.ones((2, *shape)))
    assert found(3, [0, 1], [], []).shape == (0, *shape)


@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 12)])
def test_derivatives_take_columns_out_of_range_for_the_nearest_as_the_product_does(shape: tuple[int, ...]) -> None:
    x, v = hf.asarray(np.arange(1.0, 1 + np.prod(shape)).reshape(shape)), hf.asarray(np.arange(1.0, 5.0))
    starts, ends = hf.asarray([0, 2]), hf.asarray([2, 4])

    def gradients(x: hf.Tensor, v: hf.Tensor, columns: hf.Tensor) -> list[hf.Tensor]:
        with hf.GradientTape() as tape:
            tape.watch(x), tape.watch(v)
            y = hf.sum(apply(TABLE["csr_matmul"], x, v, columns, starts, ends) ** 2)
        return tape.gradient(y, [x, v])

    columns = np.array([0, 9, -3, 2])
    expected = gradients(x, v, hf.asarray(columns.clip(0, 2)))
    for found in (gradients(x, v, hf.asarray(columns)), hf.function(gradients)(x, v, hf.asarray(columns))):
        for a, b in zip(found, expected):
            np.testing.assert_array_equal(a.numpy(), b.numpy())
