"""Meshes, specs, and functions of one replica's parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.compiler.ops.evaluation_order import replica_fold
from tests.support.bits import same_bits

D = hf.distribute
P = D.P
MESH = D.make_mesh({"data": 4, "model": 2})


def test_meshes() -> None:
    assert MESH == D.make_mesh((4, 2), ("data", "model")) != D.make_mesh({"model": 2, "data": 4})
    assert hash(MESH) == hash(D.make_mesh((4, 2), ("data", "model")))
    assert (MESH.size, MESH.axis_names, MESH.shape) == (8, ("data", "model"), {"data": 4, "model": 2})
    sharding = D.NamedSharding(MESH, P("model", ("data",)))
    assert sharding.shard_shape((6, 8, 3)) == (3, 2, 3) and not sharding.is_fully_replicated
    assert D.NamedSharding(MESH, P(None)).is_fully_replicated


def test_bad_meshes_and_specs() -> None:
    for sizes in ({}, {"a": 0}, {"a": True}, {"a": 2.0}):
        with pytest.raises(errors.ArgumentError):
            D.make_mesh(sizes)
    with pytest.raises(errors.ArgumentError, match="2 sizes and 1 names"):
        D.make_mesh((2, 2), ("a",))
    with pytest.raises(errors.ArgumentError, match="two axes"):
        P("a", "a")
    with pytest.raises(errors.ArgumentError, match="names the axis 'rows'"):
        D.NamedSharding(MESH, P("rows"))
    with pytest.raises(errors.ArgumentError, match="another order"):
        D.NamedSharding(MESH, P(("model", "data")))
    with pytest.raises(errors.ShapeError, match="equal parts"):
        D.NamedSharding(MESH, P("data")).shard_shape((6,))
    with pytest.raises(errors.ShapeError, match="no axis 1"):
        D.NamedSharding(MESH, P(None, "data")).shard_shape((4,))


@pytest.mark.parametrize("compiled", (False, True))
def test_a_product_whose_depth_is_sharded(compiled: bool) -> None:
    """Rows over "data", the depth over "model": partial products, added up along "model"."""
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) for shape in ((8, 6), (6, 5)))

    def product(x: Any, w: Any) -> Any:
        return D.all_reduce(x @ w, axis="model")

    sharded = D.shard_map(product, mesh=MESH, in_specs=(P("data", "model"), P("model")), out_specs=P("data"))
    found = np.asarray((hf.function(sharded) if compiled else sharded)(x, w))
    halves = np.stack([np.asarray(hf.asarray(x[:, k : k + 3]) @ hf.asarray(w[k : k + 3])) for k in (0, 3)])
    assert same_bits(found, replica_fold(np.add, halves))


def test_columns_and_nested_cuts() -> None:
    x = np.arange(48, dtype=np.float32).reshape(3, 16)

    def scaled(x: Any, by: Any) -> Any:
        return {"x": x * by, "index": D.axis_index("data") * 2 + D.axis_index("model")}

    both = P(None, ("data", "model"))
    found = D.shard_map(
        lambda x, by: hf.tree.map(lambda v: v if v.ndim else hf.reshape(v, (1,)), scaled(x, by)),
        mesh=MESH, in_specs=(both, None), out_specs={"x": both, "index": P(("data", "model"))},
    )(x, 2.0)  # fmt: skip
    assert same_bits(np.asarray(found["x"]), x * 2) and np.asarray(found["index"]).tolist() == list(range(8))


def test_reduced_over_both_axes_in_the_order_that_is_stated() -> None:
    x = (np.random.default_rng(1).normal(size=(8, 7)) * 1e3).astype(np.float32)
    total = D.shard_map(
        lambda v: D.all_reduce(v[0], axis=("data", "model")), mesh=MESH,
        in_specs=P(("data", "model")), out_specs=P(),
    )  # fmt: skip
    inner = np.stack([replica_fold(np.add, x[2 * k : 2 * k + 2]) for k in range(4)])
    assert same_bits(np.asarray(total(x)), replica_fold(np.add, inner))


def test_random_numbers_differ_between_replicas() -> None:
    hf.random.set_seed(3)
    found = np.asarray(
        D.shard_map(lambda: hf.random.uniform((1, 1, 5)), mesh=MESH, in_specs=None, out_specs=P("data", "model"))()
    )
    assert found.shape == (4, 2, 5) and len(np.unique(found)) == 40


def test_gradients_through_it() -> None:
    x = hf.Variable(np.arange(8, dtype=np.float32))
    f = D.shard_map(lambda v: D.all_reduce(hf.sum(v**2), axis="data"), mesh=MESH, in_specs=P("data"), out_specs=P())
    with hf.GradientTape() as tape:
        y = f(x.value())
    assert np.asarray(tape.gradient(y, x)).tolist() == (2 * np.arange(8)).tolist()


def test_bad_calls() -> None:
    x = np.ones((4, 4), np.float32)
    with pytest.raises(errors.ArgumentError, match="differs between the replicas along 'data'"):
        D.shard_map(lambda v: v, mesh=MESH, in_specs=P("data"), out_specs=P())(x)
    with pytest.raises(errors.ShapeError, match="equal parts"):
        D.shard_map(lambda v: v, mesh=MESH, in_specs=P("data"), out_specs=P("data"))(x[:3])
    with pytest.raises(errors.ShapeError, match="more axes"):
        D.shard_map(lambda v: hf.sum(v), mesh=MESH, in_specs=P("data"), out_specs=P("data"))(x)
    with pytest.raises(errors.ArgumentTypeError, match="nested otherwise"):
        D.shard_map(lambda v: v, mesh=MESH, in_specs=(P(), P()), out_specs=P())(x)
    with pytest.raises(errors.ArgumentTypeError, match="make_mesh"):
        D.shard_map(lambda v: v, mesh=4, in_specs=P(), out_specs=P())
    with pytest.raises(errors.ArgumentError, match="lie along 'model' and 'data'; give the axis"):
        D.shard_map(lambda v: D.all_reduce(v), mesh=MESH, in_specs=P(), out_specs=P())(x)
