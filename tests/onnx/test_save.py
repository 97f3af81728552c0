"""Functions and models as ONNX files: run by ONNX's own evaluator, and loaded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import layers

onnx = pytest.importorskip("onnx")

from onnx.reference import ReferenceEvaluator  # noqa: E402

pytestmark = pytest.mark.code
F32 = np.float32
RNG = np.random.default_rng(1)
Spec = hf.TensorSpec


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def listed(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        value = list(value.values())
    return [np.asarray(v) for v in (value if isinstance(value, (tuple, list)) else [value])]


def check(
    obj: Any, folder: Path, arguments: Sequence[np.ndarray], signature: Any = None, opset: int = 21, ulp: int = 1
) -> Any:
    """ONNX's evaluator agrees closely, what is loaded again exactly; returns the file's model."""
    path = hf.onnx.save(obj, folder / "model.onnx", input_signature=signature, opset=opset)
    proto = onnx.load(path)
    wanted = listed(obj(*arguments))
    names = [port.name for port in proto.graph.input]
    found = ReferenceEvaluator(proto).run(None, dict(zip(names, arguments, strict=True)))
    again = listed(hf.onnx.load(path)(*arguments))
    assert len(found) == len(wanted) == len(again)
    for got, back, want in zip(found, again, wanted):
        got = np.asarray(got)
        assert (got.shape, got.dtype, back.shape, back.dtype) == (want.shape, want.dtype) * 2
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)
        np.testing.assert_array_max_ulp(back, want, ulp) if want.dtype.kind == "f" else None
        np.testing.assert_allclose(back, want, rtol=1e-6)
    return proto


def network(shape: tuple[int, ...], *parts: Any) -> hf.Sequential:
    return hf.Sequential([hf.Input(shape), *parts])


NETWORKS: dict[str, Callable[[], tuple[hf.Sequential, tuple[int, ...]]]] = {
    "dense": lambda: (
        network(
            (8,),
            layers.Dense(16, activation="gelu"),
            layers.LayerNormalization(),
            layers.Dropout(0.5),
            layers.Dense(3, activation="softmax"),
        ),
        (3, 8),
    ),
    "convolutions": lambda: (
        network(
            (8, 8, 3),
            layers.Conv2D(4, 3, strides=2, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(2),
            layers.Flatten(),
        ),
        (3, 8, 8, 3),
    ),
    "separable": lambda: (
        network(
            (6, 6, 4),
            layers.DepthwiseConv2D(3, padding="same"),
            layers.SeparableConv2D(6, 3),
            layers.AveragePooling2D(2),
            layers.UpSampling2D(2),
        ),
        (2, 6, 6, 4),
    ),
    "transposed": lambda: (network((4, 4, 3), layers.Conv2DTranspose(2, 3, strides=2, padding="same")), (2, 4, 4, 3)),
    "sequences": lambda: (
        network((10, 3), layers.Conv1D(4, 3, dilation_rate=2, padding="causal"), layers.GlobalMaxPooling1D()),
        (2, 10, 3),
    ),
    "lstm": lambda: (network((5, 3), layers.Bidirectional(layers.LSTM(4))), (2, 5, 3)),
    "gru": lambda: (network((5, 3), layers.GRU(4, return_sequences=True), layers.SimpleRNN(3)), (2, 5, 3)),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, tmp_path: Path) -> None:
    model, shape = NETWORKS[name]()
    proto = check(model, tmp_path, [floats(*shape)])
    (port,) = proto.graph.input
    assert port.type.tensor_type.shape.dim[0].dim_param == "batch"
    names = {weight.name for weight in proto.graph.initializer}
    assert any("kernel" in name for name in names)


def test_functions_of_several_arguments_and_results(tmp_path: Path) -> None:
    def f(x: Any, i: Any) -> Any:
        return {
            "rows": hf.take(x, i, axis=0),
            "joined": hf.concat([x[:, :2], x[:, ::-1]], axis=1),
            "place": hf.argmax(x, axis=1),
            "flat": hf.reshape(x, (-1,)),
            "numbers": hf.arange(x.shape[0]) * 2,
            "gram": hf.matmul(x, hf.matrix_transpose(x)),
            "sorted": hf.sort(x, axis=1),
            "sums": hf.cumulative_sum(x, axis=1),
            "same": x,
        }

    arguments = [floats(6, 8), np.array([0, 3, 5, -1])]
    proto = check(f, tmp_path, arguments, [Spec(["n", 8], name="x"), Spec([4], "int64", name="i")])
    assert [port.name for port in proto.graph.output][:3] == ["rows", "joined", "place"]


def test_elementwise_functions_with_edges(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return (
            hf.expm1(x),
            hf.log1p(hf.abs(x)),
            hf.trunc(x * 3),
            hf.remainder(x, 0.7),
            hf.floor_divide(x, 0.3),
            hf.isfinite(x),
            hf.logsumexp(x, axis=1),
            hf.nn.softplus(x),
            hf.nn.silu(x),
            hf.copysign(hf.ones_like(x), x),
            hf.round(x),
            hf.where(x > 0, x, -1.0),
            hf.one_hot(hf.argmax(x, axis=1), 4),
        )

    x = floats(5, 4)
    x[0] = [0.0, -0.0, 1e-7, -1e-7]
    x[1] = [20.0, -20.0, 0.5, -0.5]
    check(f, tmp_path, [x], [Spec([None, 4])], ulp=4)  # functions that ONNX lacks are made of others


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_an_ordered_row(side: str, tmp_path: Path) -> None:
    row = np.array([-1, 0, 0, 2, np.inf, np.nan, np.nan], F32)
    wanted = np.array([[-2, -1, -0.0], [0.5, 2, np.inf], [np.nan, -np.inf, 1]], F32)
    specs = [Spec([7]), Spec([None, 3])]
    check(lambda x, y: hf.searchsorted(x, y, side=side), tmp_path, [row, wanted], specs)


@pytest.mark.parametrize("opset", [13, 17, 18, 24])
def test_opsets(opset: int, tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return hf.max(x, axis=1), hf.any(x > 0, axis=0), hf.pad(x, [(1, 2), (0, 0)]), hf.sum(x)

    check(f, tmp_path, [floats(3, 4)], [Spec([None, 4])], opset=opset)


def test_control_flow(tmp_path: Path) -> None:
    def loop(x: Any) -> Any:
        return hf.while_loop(lambda i, y: hf.sum(y) < 100, lambda i, y: (i + 1, y * 1.5 + 1), (0, x))

    check(loop, tmp_path, [np.array([1, 2, 3], F32)], [Spec([3])])

    def branch(x: Any) -> Any:
        return hf.cond(hf.sum(x) > 0, lambda: x * 2, lambda: x - 1)

    for sign in (1, -1):
        check(branch, tmp_path, [np.array([1, 2, 3], F32) * F32(sign)], [Spec([3])])
    for backwards in (False, True):

        def scanned(x: Any, backwards: bool = backwards) -> Any:
            return hf.scan(lambda a, row: a * 0.5 + row, x, hf.zeros(3), reverse=backwards)

        check(lambda x: scanned(x), tmp_path, [floats(6, 3)], [Spec([None, 3])])


def test_attention(tmp_path: Path) -> None:
    specs = [Spec([None, 2, n, 4]) for n in (5, 7, 7)]
    arguments = [floats(3, 2, n, 4) for n in (5, 7, 7)]
    check(lambda q, k, v: hf.nn.scaled_dot_product_attention(q, k, v), tmp_path, arguments, specs)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax_and_gelu_are_operators(axis: int, tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        return hf.nn.softmax(hf.nn.gelu(x), axis=axis)

    x = floats(3, 4, 5)
    specs = [Spec([None, 4, 5])]
    proto = check(f, tmp_path, [x], specs)
    assert [n.op_type for n in proto.graph.node] == ["Gelu", "Softmax", "Identity"]
    older = check(f, tmp_path, [x], specs, opset=17)
    assert "Erf" in {n.op_type for n in older.graph.node}
    exact = onnx.load(hf.onnx.save(f, tmp_path / "exact.onnx", specs, exact=True))
    assert not {"Gelu", "Softmax"} & {n.op_type for n in exact.graph.node}


def test_what_only_looks_like_softmax_is_none(tmp_path: Path) -> None:
    def other_axis(x: Any) -> Any:
        e = hf.exp(x - hf.max(x, axis=0, keepdims=True))
        return e / hf.sum(e, axis=1, keepdims=True)

    def turned(x: Any) -> Any:
        e = hf.exp(x - hf.max(x, axis=1))
        return e / hf.sum(e, axis=1)

    def shifted(x: Any) -> Any:
        e = hf.exp(x - hf.max(x + 1, axis=1, keepdims=True))
        return e / hf.sum(e, axis=1, keepdims=True)

    for f in (other_axis, turned, shifted):
        proto = check(f, tmp_path, [floats(4, 4)], [Spec([4, 4])])
        assert "Softmax" not in {n.op_type for n in proto.graph.node}


def test_what_is_loaded_is_saved_again(tmp_path: Path) -> None:
    model, shape = NETWORKS["convolutions"]()
    x = floats(*shape)
    first = hf.onnx.load(hf.onnx.save(model, tmp_path / "a.onnx"))
    second = hf.onnx.load(hf.onnx.save(first, tmp_path / "b.onnx", input_signature=first.signature))
    np.testing.assert_array_equal(second(x), first(x))


def test_what_cannot_be_saved_says_why(tmp_path: Path) -> None:
    with pytest.raises(hf.onnx.OnnxError, match=r"random_bits has no counterpart in ONNX .*test_save\.py"):
        hf.onnx.save(lambda x: x + hf.random.stateless_uniform((3,), (1, 2)), tmp_path / "x.onnx", [Spec([3])])
    count = hf.Variable(0.0)

    def counted(x: Any) -> Any:
        count.assign_add(1.0)
        return x * count

    with pytest.raises(hf.errors.ArgumentError, match="assigns variables"):
        hf.onnx.save(counted, tmp_path / "x.onnx", [Spec([3])])
    with pytest.raises(hf.errors.ArgumentError, match="opset is 9"):
        hf.onnx.save(lambda x: x, tmp_path / "x.onnx", [Spec([3])], opset=9)
    with pytest.raises(hf.errors.ArgumentError):
        hf.onnx.save(hf.function(lambda x: x), tmp_path / "x.onnx")
    assert not (tmp_path / "x.onnx").exists()


def ops_of(proto: Any) -> list[str]:
    return [node.op_type for node in proto.graph.node if node.op_type != "Identity"]


OPERATORS: dict[str, tuple[Callable[[], list[Any]], tuple[int, ...], list[str]]] = {
    "batch normalization": (lambda: [layers.BatchNormalization(scale=False)], (5,), ["BatchNormalization"]),
    "of images": (
        lambda: [layers.BatchNormalization(center=False, epsilon=0.01)],
        (4, 3, 5),
        ["Transpose", "BatchNormalization", "Transpose"],
    ),
    "layer normalization": (lambda: [layers.LayerNormalization()], (4, 5), ["LayerNormalization"]),
    "without an offset": (lambda: [layers.LayerNormalization(center=False)], (4, 5), ["LayerNormalization"]),
    "without a scale": (lambda: [layers.LayerNormalization(scale=False)], (4, 5), ["LayerNormalization"]),
    "activations": (
        lambda: [layers.ReLU(), layers.Dense(4), layers.ReLU(max_value=6)],
        (5,),
        ["Relu", "Gemm", "Clip"],
    ),
    "a network of images": (
        lambda: [
            layers.Conv2D(6, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.DepthwiseConv2D(3, padding="same", strides=2),
            layers.ReLU(max_value=6),
            layers.MaxPooling2D(3, 2, padding="same"),
            layers.AveragePooling2D((1, 2), 1),
            layers.SeparableConv2D(5, 2),
            layers.GlobalAveragePooling2D(),
            layers.Dense(3),
        ],
        (13, 12, 4),
        ["Transpose", "Conv", "Relu", "BatchNormalization", "Conv", "Clip", "MaxPool", "AveragePool", "Conv", "Conv",
         "ReduceMean", "Gemm"],
    ),
    "a series": (
        lambda: [layers.Conv1D(6, 3, activation="gelu"), layers.MaxPooling1D(2), layers.GlobalMaxPooling1D()],
        (13, 4),
        ["Transpose", "Conv", "Gelu", "MaxPool", "ReduceMax"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_what_several_operations_compute_is_one_operator(name: str, tmp_path: Path) -> None:
    parts, shape, wanted = OPERATORS[name]
    model = network(shape, *parts())
    for weight in model.weights:
        weight.assign(RNG.uniform(0.5, 1.5, weight.shape).astype(F32))
    x = floats(2, *shape)
    proto = check(model, tmp_path, [x], ulp=64)
    assert ops_of(proto) == wanted
    path = hf.onnx.save(model, tmp_path / "exact.onnx", exact=True)
    plain = onnx.load(path)
    assert {"BatchNormalization", "LayerNormalization", "MaxPool", "Relu", "Gemm"}.isdisjoint(ops_of(plain))
    np.testing.assert_allclose(hf.onnx.load(path)(x), model(x), rtol=2e-5, atol=2e-6)
    assert all(input_ for node in proto.graph.node for input_ in node.input[-1:])  # no name without a value at the end


def test_images_join_branch_and_are_reduced_in_the_order_of_onnx(tmp_path: Path) -> None:
    class Branches(hf.Model):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.narrow = layers.Conv2D(4, 3, padding="same"), layers.Conv2D(4, 1)
            self.gate = layers.Dense(4)

        def call(self, x: Any) -> Any:
            y = self.wide(x)
            z = hf.maximum(y + self.narrow(x), 0.0)
            gate = hf.nn.sigmoid(self.gate(hf.mean(z, axis=(1, 2))))
            joined = hf.concat([z * hf.reshape(gate, (-1, 1, 1, 4)), y, x], axis=-1)
            rows = hf.reshape(hf.mean(y, axis=2), (-1, 6, 1, 4))
            return (
                joined,
                hf.max(joined, axis=-1),
                hf.sum(joined, axis=1),
                joined[:, 1:-1, ::2, :3],
                hf.where(y > 0, z, 2 * y) - rows,
                hf.pad(y, [(0, 0), (1, 0), (0, 2), (0, 0)], constant_values=-1.0),
            )

    model = Branches()
    x = floats(2, 6, 5, 3)
    model(x)
    check(model, tmp_path, [x], signature=[Spec(["n", 6, 5, 3])], ulp=512)


def test_an_operand_that_is_broadcast_is_the_same_beside_images_and_joined_to_them(tmp_path: Path) -> None:
    """As many columns as channels: what is spread along the wrong axis has a shape that fits, too."""
    convolution, vector = layers.Conv2D(4, 3, padding="same"), hf.asarray(np.arange(1.0, 5.0, dtype=F32))

    def f(x: Any) -> Any:
        y = convolution(x)
        b = hf.broadcast_to(vector, (2, 4, 4, 4))
        before = hf.ones((2, 4, 4, 4)) - b
        return hf.concat([y, b], axis=-1), y * b, hf.where(y > b, b, y), before, b - 1

    x = floats(2, 4, 4, 3)
    f(x)
    check(hf.function(f), tmp_path, [x], signature=[Spec([2, 4, 4, 3])], ulp=8)


@pytest.mark.parametrize("part", [layers.BatchNormalization, layers.LayerNormalization])
def test_an_epsilon_of_float64_is_not_rounded(part: Any, tmp_path: Path) -> None:
    model = network((3,), part(epsilon=1e-3, dtype="float64"))
    x = 1e-3 * RNG.standard_normal((4, 3))
    path = hf.onnx.save(model, tmp_path / "model.onnx", input_signature=[Spec([4, 3], hf.float64)])
    (found,) = ReferenceEvaluator(onnx.load(path)).run(None, {onnx.load(path).graph.input[0].name: x})
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, model(x), rtol=1e-12)


def test_what_only_looks_like_pooling_or_a_norm_is_none(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        pool = hf.maximum(hf.maximum(x[:, 1:6:2], x[:, 1:7:2]), x[:, 1:8:2][:, :3])
        left_over = hf.maximum(x[:, 0:3:2], x[:, 1:4:2])
        mean = hf.mean(x, axis=1, keepdims=True)
        other = (x - mean) / hf.sqrt(hf.mean((x - mean) ** 2, axis=2, keepdims=True) + 0.1)
        third = hf.sum(x, axis=1) / 9.0
        return pool, left_over, other, third, hf.minimum(hf.maximum(x, 2.0), 1.0)

    x = floats(2, 8, 3)
    function = hf.function(f, input_signature=[Spec(["n", 8, 3])])
    proto = check(function, tmp_path, [x], ulp=4)
    assert {"MaxPool", "LayerNormalization", "ReduceMean", "Clip"}.isdisjoint(ops_of(proto))
