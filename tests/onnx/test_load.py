"""Models of ONNX files: loaded, called, cut, trained; bad files."""

from __future__ import annotations

import random
import time
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf

onnx = pytest.importorskip("onnx")

from onnx import helper, numpy_helper  # noqa: E402

from tests.support.onnx_files import model_of, reference, saved  # noqa: E402

pytestmark = pytest.mark.code
node = helper.make_node
F32 = np.float32
RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(F32)


def mlp() -> onnx.ModelProto:
    return model_of(
        [
            node("Gemm", ["x", "w", "b"], ["h"], transB=1, name="first"),
            node("Relu", ["h"], ["r"], name="relu"),
            node("MatMul", ["r", "v"], ["y"], name="second"),
        ],
        {"x": (F32, ["batch", 3])},
        ["y"],
        {"w": floats(4, 3), "b": floats(4), "v": floats(4, 2)},
    )


def close(got: object, wanted: np.ndarray) -> None:
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-6)


def test_a_model_is_a_module_that_serves_all_batches_with_one_program(tmp_path: Path) -> None:
    proto = mlp()
    model = hf.onnx.load(saved(proto, tmp_path))
    assert isinstance(model, hf.Module) and model.variables == []
    assert (model.input_names, model.output_names) == (("x",), ("y",))
    assert model.signature == (hf.TensorSpec([None, 3], F32),)
    for batch in (5, 7, 2, 11):
        x = floats(batch, 3)
        got = model(x)
        close(got, reference(proto, x=x)[0])
        np.testing.assert_array_equal(got, hf.eager(model.function)(x))
    assert len(model.function.signatures()) == 1
    for batch in (0, 1):
        x = floats(batch, 3)
        close(model(x=x), reference(proto, x=x)[0])


def test_lists_take_the_dtype_of_the_input_and_arrays_keep_theirs(tmp_path: Path) -> None:
    model = hf.onnx.load(saved(mlp(), tmp_path))
    assert model([[1, 2, 3]]).dtype == F32
    with pytest.raises(hf.errors.DTypeError, match=r"input 'x' of .* is float64; expected float32"):
        model(np.ones((1, 3)))
    with pytest.raises(hf.errors.ArgumentError, match="has 1 inputs"):
        model()
    with pytest.raises(hf.errors.ArgumentError, match="has 1 inputs"):
        model(y=np.ones((1, 3), F32))


def test_outputs_cut_a_model(tmp_path: Path) -> None:
    proto = mlp()
    path = saved(proto, tmp_path)
    x = floats(3, 3)
    features = hf.onnx.load(path, outputs=["r"])
    assert features.output_names == ("r",)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    close(features(x), np.maximum(x @ arrays["w"].T + arrays["b"], 0))
    assert [v.name for v in hf.onnx.load(path, trainable=True, outputs=["r"]).variables] == ["w", "b"]
    with pytest.raises(hf.onnx.OnnxError, match="makes no value 'z'"):
        hf.onnx.load(path, outputs=["z"])


def test_trainable_weights_are_variables_by_their_names(tmp_path: Path) -> None:
    proto = mlp()
    model = hf.onnx.load(saved(proto, tmp_path), trainable=True)
    assert sorted(model.named_variables()) == ["b", "v", "w"]
    x, wanted = floats(16, 3), floats(16, 2)

    def loss(x: object) -> object:
        return hf.mean((model(x) - wanted) ** 2)

    @hf.function
    def gradients(x: object) -> object:
        with hf.GradientTape() as tape:
            value = loss(x)
        return tape.gradient(value, model.trainable_variables)

    for compiled, eager in zip(gradients(x), hf.eager(gradients)(x)):
        np.testing.assert_array_equal(compiled, eager)
    variable = model.named_variables()["w"]
    index, step = (1, 2), 1e-2  # the loss is rounded: to less than 1e-7 of its own size
    kept = variable.numpy().copy()
    found = []
    for sign in (1, -1):
        moved = kept.copy()
        moved[index] += sign * step
        variable.assign(moved)
        found.append(float(loss(x)))
    variable.assign(kept)
    position = [v is variable for v in model.trainable_variables].index(True)
    assert float(gradients(x)[position][index]) == pytest.approx((found[0] - found[1]) / (2 * step), rel=2e-2, abs=5e-4)
    optimizer = hf.optimizers.SGD(0.05)
    before = float(loss(x))
    for _ in range(20):
        optimizer.apply_gradients(zip(gradients(x), model.trainable_variables))
    assert float(loss(x)) < 0.7 * before


def test_statistics_and_settings_are_no_trainable_weights(tmp_path: Path) -> None:
    proto = model_of(
        [
            node("BatchNormalization", ["x", "s", "b", "m", "v"], ["n"]),
            node("Clip", ["n", "low", "high"], ["c"]),
            node("Resize", ["c", "", "scales"], ["y"], mode="nearest"),
        ],
        {"x": (F32, [1, 2, 3, 3])},
        ["y"],
        {
            "s": floats(2),
            "b": floats(2),
            "m": floats(2),
            "v": np.abs(floats(2)),
            "low": F32(-1.0),
            "high": F32(1.0),
            "scales": np.array([1, 1, 2, 2], F32),
        },
    )
    model = hf.onnx.load(saved(proto, tmp_path), trainable=True)
    assert sorted(v.name for v in model.trainable_variables) == ["b", "s"]
    assert sorted(v.name for v in model.non_trainable_variables) == ["m", "v"]
    x = floats(1, 2, 3, 3)
    close(model(x), reference(proto, x=x)[0])


def test_a_model_within_a_function_is_part_of_it(tmp_path: Path) -> None:
    proto = mlp()
    model = hf.onnx.load(saved(proto, tmp_path))
    f = hf.function(lambda x: hf.sum(model(x) * 2))
    x = floats(4, 3)
    close(f(x), 2 * reference(proto, x=x)[0].sum())


def test_shape_arithmetic_stays_open(tmp_path: Path) -> None:
    """The usual way to flatten: by the shape of the tensor itself."""
    proto = model_of(
        [
            node("Shape", ["x"], ["shape"]),
            node("Gather", ["shape", "zero"], ["n"], axis=0),
            node("Unsqueeze", ["n", "axes"], ["rows"]),
            node("Concat", ["rows", "rest"], ["form"], axis=0),
            node("Reshape", ["x", "form"], ["y"]),
            node("Mul", ["n", "two"], ["m"]),
            node("Range", ["zero", "m", "one"], ["r"]),
        ],
        {"x": (F32, ["batch", 2, "width"])},
        ["y", "r", "shape"],
        {
            "zero": np.array(0, np.int64),
            "one": np.array(1, np.int64),
            "two": np.array(2, np.int64),
            "axes": np.array([0], np.int64),
            "rest": np.array([-1], np.int64),
        },
    )
    model = hf.onnx.load(saved(proto, tmp_path))
    for shape in ((3, 2, 5), (4, 2, 7), (6, 2, 2)):
        x = floats(*shape)
        for got, wanted in zip(model(x), reference(proto, x=x)):
            np.testing.assert_array_equal(got, wanted)
            assert got.dtype == wanted.dtype
    assert len(model.function.signatures()) == 1


@pytest.mark.runs_eagerly
def test_results_that_depend_on_values_run_eagerly(tmp_path: Path) -> None:
    proto = model_of([node("NonZero", ["x"], ["y"])], {"x": (F32, [None, 3])}, ["y"])
    model = hf.onnx.load(saved(proto, tmp_path))
    x = np.array([[0, 1, 0], [2, 0, 3]], F32)
    np.testing.assert_array_equal(model(x), reference(proto, x=x)[0])


def test_if_by_a_known_condition_takes_one_branch_and_by_a_tensor_both(tmp_path: Path) -> None:
    def branch(name: str, op: str) -> onnx.GraphProto:
        return helper.make_graph(
            [node(op, ["x"], [f"{name}_y"])], name, [], [helper.make_tensor_value_info(f"{name}_y", 1, None)]
        )

    known = model_of(
        [
            node("Shape", ["x"], ["s"]),
            node("Size", ["s"], ["rank"]),
            node("Equal", ["rank", "two"], ["c"]),
            node("If", ["c"], ["y"], then_branch=branch("a", "Neg"), else_branch=branch("b", "Flatten")),
        ],
        {"x": (F32, [2, 3])},
        ["y"],
        {"two": np.array(2, np.int64)},
    )
    x = floats(2, 3)
    np.testing.assert_array_equal(hf.onnx.load(saved(known, tmp_path))(x), -x)
    open_ = model_of(
        [node("If", ["c"], ["y"], then_branch=branch("a", "Neg"), else_branch=branch("b", "Abs"))],
        {"x": (F32, [2, 3]), "c": (np.bool_, [])},
        ["y"],
    )
    model = hf.onnx.load(saved(open_, tmp_path))
    np.testing.assert_array_equal(model(x, np.array(True)), -x)
    np.testing.assert_array_equal(model(x, np.array(False)), np.abs(x))
    assert len(model.function.signatures()) == 1


def test_a_number_that_picks_a_branch_has_programs_of_its_own(tmp_path: Path) -> None:
    """As of a model for two rates of sampling: a branch may be none for the operands that the other takes."""

    def branch(name: str, weight: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(f"{name}_y", 1, None)
        return helper.make_graph([node("MatMul", ["x", weight], [f"{name}_y"])], name, [], [output])

    proto = model_of(
        [
            node("Equal", ["rate", "wide"], ["c"]),
            node("If", ["c"], ["y"], then_branch=branch("a", "w3"), else_branch=branch("b", "w2")),
        ],
        {"x": (F32, [None, None]), "rate": (np.int64, [])},
        ["y"],
        {"wide": np.array(16, np.int64), "w3": floats(3, 2), "w2": floats(2, 2)},
    )
    model = hf.onnx.load(saved(proto, tmp_path))
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    three, two = floats(4, 3), floats(5, 2)
    close(model(three, 16), three @ arrays["w3"])
    close(model(two, rate=np.array(8, np.int64)), two @ arrays["w2"])
    close(model(three, hf.asarray(16)), three @ arrays["w3"])
    with pytest.raises(hf.onnx.OnnxError, match="inner sizes differ"):
        model(three, 8)
    close(hf.eager(model)(two, 8), two @ arrays["w2"])


@pytest.mark.runs_eagerly
def test_a_branch_that_cannot_be_traced_is_run_when_it_is_taken(tmp_path: Path) -> None:
    def branch(name: str, weight: str) -> onnx.GraphProto:
        output = helper.make_tensor_value_info(f"{name}_y", 1, None)
        return helper.make_graph([node("MatMul", ["x", weight], [f"{name}_y"])], name, [], [output])

    proto = model_of(
        [node("If", ["c"], ["y"], then_branch=branch("a", "w3"), else_branch=branch("b", "w2"))],
        {"x": (F32, [None, None]), "c": (np.bool_, [1])},
        ["y"],
        {"w3": floats(3, 2), "w2": floats(2, 2)},
    )
    model = hf.onnx.load(saved(proto, tmp_path))
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in proto.graph.initializer}
    x = floats(4, 3)
    close(model(x, np.array([True])), x @ arrays["w3"])
    with pytest.raises(hf.onnx.OnnxError, match="inner sizes differ"):
        model(x, np.array([False]))


def test_functions_of_a_file_and_their_attributes(tmp_path: Path) -> None:
    body = [node("LeakyRelu", ["a"], ["t"]), node("Add", ["t", "b"], ["c"])]
    attribute = body[0].attribute.add()
    attribute.name, attribute.ref_attr_name, attribute.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    function = helper.make_function("mine", "Fused", ["a", "b"], ["c"], body, [helper.make_opsetid("", 21)], ["slope"])
    proto = model_of(
        [node("Fused", ["x", "x"], ["y"], domain="mine", slope=0.5)],
        {"x": (F32, [4])},
        ["y"],
        domains={"mine": 1},
        functions=[function],
    )
    x = np.array([-2, -0.5, 0, 3], F32)
    np.testing.assert_array_equal(hf.onnx.load(saved(proto, tmp_path))(x), np.where(x < 0, x * F32(0.5), x) + x)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("shape", [(64, 96), (66, 80), (63, 128), (128, 1), (8, 16)])
def test_products_of_bytes(tmp_path: Path, shape: tuple[int, int], known: bool) -> None:
    """Exact sums, whether the second factor is known when the file is read, and lies in panels then, or is given."""
    k, n = shape
    rng = np.random.default_rng(k)
    b = rng.integers(-128, 128, shape, dtype=np.int8)
    b[:4], b[:, : n // 2] = -128, 127
    zero = np.uint8(200)
    ports = {"a": (np.uint8, ["rows", k])} | ({} if known else {"b": (np.int8, [k, n])})
    constants = {"zero": np.array(zero)} | ({"b": b} if known else {})
    product = node("MatMulInteger", ["a", "b", "zero"], ["y"])
    model = hf.onnx.load(saved(model_of([product], ports, ["y"], constants), tmp_path))
    for rows in (0, 1, 2, 7):
        a = rng.integers(0, 256, (rows, k), dtype=np.uint8)
        a[:, :3] = 255
        given = (a,) if known else (a, b)
        wanted = (a.astype(np.int64) - int(zero)) @ b.astype(np.int64)
        for call in (model, hf.eager(model.function)):
            got = call(*map(hf.asarray, given))
            assert got.dtype == np.int32
            np.testing.assert_array_equal(got.numpy(), wanted)


@pytest.mark.parametrize("eager", [True, False])
def test_windows_larger_than_an_axis_are_there_as_far_as_the_axis_is(tmp_path: Path, eager: bool) -> None:
    def pooled(op: str, x: np.ndarray, open_sizes: bool = False, **attributes: object) -> np.ndarray:
        sizes = [None] * x.ndim if open_sizes else list(x.shape)
        proto = model_of([node(op, ["x"], ["y"], **attributes)], {"x": (F32, sizes)}, ["y"])
        model = hf.onnx.load(saved(proto, tmp_path))
        result: np.ndarray = (hf.eager(model) if eager else model)(x).numpy()
        return result

    x = np.array([[[[1, -2, 3]]]], F32)
    for open_sizes in (False, True):
        largest = pooled("MaxPool", x, open_sizes, kernel_shape=[2, 2], strides=[2, 2])
        np.testing.assert_array_equal(largest, [[[[1]]]])
        mean = pooled("AveragePool", x, open_sizes, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
        np.testing.assert_array_equal(mean, [[[[-0.5, 3]]]])
        assert pooled("MaxPool", x, open_sizes, kernel_shape=[3, 3], strides=[2, 2]).shape == (1, 1, 0, 1)
        with pytest.raises(hf.onnx.OnnxError, match="a window takes 5 elements of 1 along axis 0"):
            pooled("MaxPool", x, open_sizes, kernel_shape=[5, 1], strides=[2, 1])


def test_operands_go_together_by_an_axis_before_opset_7(tmp_path: Path) -> None:
    x, row, channels = floats(2, 3, 4), floats(4), floats(3)
    statistics = np.stack([floats(3), floats(3), floats(3), np.abs(floats(3)) + 1])
    proto = model_of(
        [
            node("Add", ["x", "row"], ["a"], broadcast=1),
            node("Mul", ["a", "channels"], ["b"], broadcast=1, axis=1),
            node("PRelu", ["b", "channels"], ["c"]),
            node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["y"], is_test=1),
        ],
        {"x": (F32, [None, 3, 4])},
        ["y"],
        {"row": row, "channels": channels, **dict(zip(("scale", "shift", "mean", "var"), statistics))},
        opset=6,
    )
    across = channels[:, None]
    b = (x + row) * across
    c = np.where(b < 0, b * across, b)
    scale, shift, mean, var = statistics[..., None]
    wanted = (c - mean) / np.sqrt(var + F32(1e-5)) * scale + shift
    np.testing.assert_allclose(hf.onnx.load(saved(proto, tmp_path))(x), wanted, rtol=1e-5, atol=1e-6)


def test_results_without_a_shape(tmp_path: Path) -> None:
    proto = model_of([node("Neg", ["x"], ["y"])], {"x": (F32, [2])}, ["y"])
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    np.testing.assert_array_equal(hf.onnx.load(saved(proto, tmp_path))(np.array([1, 2], F32)), [-1, -2])


# ---- bad files


def test_what_is_missing_says_the_node_and_the_file(tmp_path: Path) -> None:
    proto = model_of(
        [node("Relu", ["x"], ["h"]), node("MaxRoiPool", ["h", "r"], ["y"], name="pool", pooled_shape=[1, 1])],
        {"x": (F32, [1, 1, 4, 4]), "r": (F32, [1, 5])},
        ["y"],
        opset=16,
    )
    path = saved(proto, tmp_path, "roi.onnx")
    report = hf.onnx.check(path)
    assert not report.runs and "node 'pool' (MaxRoiPool) of opset 16" in report.missing
    with pytest.raises(hf.onnx.OnnxError, match=r"roi.onnx: node 'pool' \(MaxRoiPool\) of opset 16 is not supported"):
        hf.onnx.load(path)(floats(1, 1, 4, 4), floats(1, 5))


def test_operands_that_do_not_fit_say_the_node(tmp_path: Path) -> None:
    proto = model_of(
        [node("MatMul", ["x", "w"], ["y"], name="product")], {"x": (F32, [2, 3])}, ["y"], {"w": floats(4, 2)}
    )
    with pytest.raises(hf.onnx.OnnxError, match=r"node 'product' \(MatMul\): .*inner sizes differ"):
        hf.onnx.load(saved(proto, tmp_path))(floats(2, 3))


@pytest.mark.parametrize("data", [b"", b"\x08", b"no model at all", b"\xff" * 100, bytes(1000)])
def test_what_is_no_model(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "x.onnx"
    path.write_bytes(data)
    with pytest.raises(hf.onnx.OnnxError, match=r"x\.onnx"):
        hf.onnx.load(path)


def test_data_outside_of_the_folder_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    inner = tmp_path / "inner"
    inner.mkdir()
    proto = model_of([node("Add", ["x", "w"], ["y"])], {"x": (F32, [4])}, ["y"], {"w": floats(4)})
    tensor = proto.graph.initializer[0]
    for location in ("../secret", str(tmp_path / "secret")):
        tensor.ClearField("raw_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        del tensor.external_data[:]
        entry = tensor.external_data.add()
        entry.key, entry.value = "location", location
        with pytest.raises(hf.onnx.OnnxError):
            hf.onnx.load(saved(proto, inner))
    tensor.external_data[0].value = "weights"
    (inner / "weights").write_bytes(np.arange(4, dtype=F32).tobytes())
    np.testing.assert_array_equal(hf.onnx.load(saved(proto, inner))(np.zeros(4, F32)), np.arange(4))


def test_sizes_are_refused_before_anything_is_allocated(tmp_path: Path) -> None:
    huge = model_of(
        [node("ConstantOfShape", ["s"], ["y"], name="fill")], {}, ["y"], {"s": np.array([2**31, 2**31], np.int64)}
    )
    with pytest.raises(hf.onnx.OnnxError, match="node 'fill'"):
        hf.onnx.load(saved(huge, tmp_path))()
    proto = mlp()
    proto.graph.initializer[0].dims[:] = [2**40, 2**20]
    with pytest.raises(hf.onnx.OnnxError, match="shape"):
        hf.onnx.load(saved(proto, tmp_path))


def test_a_function_that_calls_itself(tmp_path: Path) -> None:
    function = helper.make_function(
        "mine",
        "Loop",
        ["a"],
        ["b"],
        [node("Neg", ["a"], ["b"])],
        [helper.make_opsetid("", 21), helper.make_opsetid("mine", 1)],
    )
    proto = model_of(
        [node("Loop", ["x"], ["y"], domain="mine")], {"x": (F32, [1])}, ["y"], domains={"mine": 1}, functions=[function]
    )
    proto.functions[0].node[0].CopyFrom(node("Loop", ["a"], ["b"], domain="mine"))
    with pytest.raises(hf.onnx.OnnxError):
        hf.onnx.load(saved(proto, tmp_path))(floats(1))


def network() -> onnx.ModelProto:
    """One of each kind: convolution, pooling, shapes, a loop, a branch."""
    body = helper.make_graph(
        [node("Add", ["carried", "carried"], ["next"]), node("Identity", ["goes"], ["again"])],
        "body",
        [
            helper.make_tensor_value_info("turn", 7, []),
            helper.make_tensor_value_info("goes", 9, []),
            helper.make_tensor_value_info("carried", 1, None),
        ],
        [helper.make_tensor_value_info("again", 9, []), helper.make_tensor_value_info("next", 1, None)],
    )
    return model_of(
        [
            node("Conv", ["x", "w", "b"], ["c"], pads=[1, 1, 1, 1], name="conv"),
            node("Relu", ["c"], ["r"]),
            node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
            node("Reshape", ["p", "form"], ["f"]),
            node("Loop", ["three", "", "f"], ["l"], body=body),
            node("Softmax", ["l"], ["y"], axis=-1),
        ],
        {"x": (F32, [None, 2, 4, 4])},
        ["y"],
        {"w": floats(3, 2, 3, 3), "b": floats(3), "form": np.array([0, -1], np.int64), "three": np.array(3, np.int64)},
    )


def mutated(data: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(data)
    kind = rng.randrange(4)
    if kind == 0:
        return bytes(damaged[: rng.randrange(len(damaged))])
    if kind == 1:
        place = rng.randrange(len(damaged))
        return bytes(damaged[:place] + damaged[place + rng.randrange(1, 20) :])
    for _ in range(rng.randrange(1, 6)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256) if kind == 2 else rng.choice((0, 0x7F, 0x80, 0xFF))
    return bytes(damaged)


def test_mutated_files_are_errors_of_ours_or_run(tmp_path: Path) -> None:
    data, rng = network().SerializeToString(), random.Random(7)
    x = floats(2, 2, 4, 4)
    path = tmp_path / "mutated.onnx"
    refused = 0
    start = time.process_time()
    for _ in range(200):
        path.write_bytes(mutated(data, rng))
        try:
            model = hf.onnx.load(path)
            hf.eager(model.function)(*[x] * len(model.input_names))
        except hf.errors.HybridflowError:
            refused += 1
    assert refused > 60
    assert time.process_time() - start < 600  # none takes for ever
