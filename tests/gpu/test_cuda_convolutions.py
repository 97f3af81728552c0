"""Convolutions on a GPU by tiles of teams of threads: the bits of the CPU, zeros around images included."""

from __future__ import annotations

import numpy as np
import pytest

import hybridflow as hf
from hybridflow.compiler.ir import dtypes as dt
from hybridflow.compiler.ir.build import GraphBuilder
from hybridflow.compiler.ir.types import Dim, TensorType
from hybridflow.compiler.loops import grouped_conv_tiles
from hybridflow.compiler.loops.grouped_conv_tiles import RegisterTile
from hybridflow.compiler.ops import TABLE
from tests.gpu.test_cuda_products import check, floats, graph_of, small  # noqa: F401
from tests.support.cuda_emulator import emulated  # noqa: F401

pytestmark = [pytest.mark.usefixtures("small"), pytest.mark.sample(4)]


def convolution(x, f, dtype=dt.float32, **attrs):
    b = GraphBuilder(TABLE, "convolution")
    images, filter = b.parameter(TensorType(x, dtype)), b.parameter(TensorType(f, dtype))
    return b.finish([b.convolve(images, filter, **attrs)])


def derivative(x, g, dtype=dt.float32, **attrs):
    b = GraphBuilder(TABLE, "derivative")
    images, cotangents = b.parameter(TensorType(x, dtype)), b.parameter(TensorType(g, dtype))
    return b.finish([b.convolve_filter(images, cotangents, **attrs)])


CASES = {
    "one axis": ((2, 19, 1, 3), (3, 3, 1, 5), {}),
    "padded": ((2, 7, 9, 1, 3), (3, 2, 3, 1, 9), {"low": (1, 2), "high": (1, 0)}),
    "strided": ((1, 12, 11, 1, 8), (3, 3, 8, 1, 5), {"step": (2, 3), "low": (1, 1)}),
    "dilated": ((1, 9, 10, 1, 4), (2, 3, 4, 1, 6), {"dilation": (2, 3), "low": (0, 2), "high": (1, 3)}),
    "cut off": ((1, 9, 12, 1, 2), (2, 2, 2, 1, 4), {"low": (-1, -2), "high": (0, -1)}),
    "groups": ((2, 5, 6, 3, 2), (2, 2, 2, 3, 5), {"low": (1, 0)}),
    "three axes": ((1, 4, 5, 6, 1, 2), (2, 2, 2, 2, 1, 4), {"high": (0, 1, 0)}),
    "one channel": ((2, 9, 9, 1, 1), (3, 3, 1, 1, 8), {"low": (1, 1), "high": (1, 1)}),
    "16 channels": ((1, 6, 6, 1, 16), (3, 3, 16, 1, 12), {"low": (1, 1), "high": (1, 1)}),
}


@pytest.mark.parametrize("name", CASES)
def test_windows(emulated, name):  # noqa: F811
    x, f, attrs = CASES[name]
    check(emulated, convolution(x, f, **attrs), [floats(*x), floats(*f)], "tiles", ("forward",))


@pytest.mark.parametrize("offset", [0, 1])
def test_many_channels_in_every_order(emulated, offset):  # noqa: F811
    """Vectors of channels, also where buffers do not begin where these may."""
    x, f = (1, 5, 7, 1, 12), (3, 3, 12, 1, 10)
    graph = convolution(x, f, low=(1, 1), high=(1, 1))
    check(emulated, graph, [floats(*x), floats(*f)], "tiles", ("reversed", "shuffled"), offset)


@pytest.mark.parametrize("name", [name for name in CASES if name != "one axis"])
def test_derivatives_by_the_filter(emulated, name):  # noqa: F811
    x, f, attrs = CASES[name]
    (result,) = convolution(x, f, **attrs).outputs
    size = f[:-3]
    graph = derivative(x, result.shape, size=size, **attrs)
    check(emulated, graph, [floats(*x), floats(*result.shape)], "", ("forward",))


def test_zeros_between_elements_are_factors_of_a_filter(emulated):  # noqa: F811
    x, attrs = (1, 5, 6, 1, 8), {"interior": (1, 2), "low": (1, 1), "size": (2, 3)}
    (result,) = convolution(x, (2, 3, 8, 1, 5), **{k: v for k, v in attrs.items() if k != "size"}).outputs
    cotangents = floats(*result.shape)
    cotangents[0, 1, 1, 0, 2] = np.inf
    check(emulated, derivative(x, result.shape, **attrs), [floats(*x), cotangents], "tiles", ("forward",))


@pytest.mark.parametrize(
    "attrs",
    [
        {"interior": (1, 1), "low": (2, 2), "high": (2, 2)},
        {"interior": (1, 2), "low": (1, 0), "high": (0, 1), "dilation": (2, 1)},
        {"interior": (2, 1), "step": (2, 2), "low": (-1, 3), "high": (1, 0)},
        {"interior": (3, 0), "step": (2, 1)},
    ],
    ids=str,
)
@pytest.mark.parametrize("channels", [3, 8])
def test_zeros_between_elements_of_images_are_none(emulated, attrs, channels):  # noqa: F811
    """They are not multiplied with infinities either."""
    x, f = (2, 5, 6, 1, channels), (3, 3, channels, 1, 5)
    filter = floats(*f)
    filter[1, 1, 2, 0, 3], filter[0, 2, 1, 0, 1], filter[2, 0, 0, 0, 4] = np.inf, -np.inf, np.nan
    check(emulated, convolution(x, f, **attrs), [floats(*x), filter], "tiles", ("forward",))


def test_derivatives_of_strided_convolutions(emulated):  # noqa: F811
    arrays = [floats(2, 9, 10, 6), floats(3, 3, 6, 8)]

    def derivatives(x, f):
        with hf.GradientTape() as tape:
            tape.watch(x)
            tape.watch(f)
            loss = hf.sum(hf.square(hf.nn.conv2d(x, f, strides=2, padding="SAME")))
        return tape.gradient(loss, [x, f])

    program = check(emulated, graph_of(derivatives, arrays), arrays, "tiles", ("shuffled",))
    assert not any("an element a thread" in kernel.schedule for kernel in program.kernels)


def test_zeros_around_images_are_factors(emulated):  # noqa: F811
    x, f = (1, 6, 6, 1, 3), (3, 3, 3, 1, 5)
    images, filter = floats(*x), floats(*f)
    images[0, 2, 2, 0, 1], filter[0, 1, 2, 0, 3] = np.nan, np.inf
    check(emulated, convolution(x, f, low=(1, 1), high=(1, 1)), [images, filter], "tiles", ("forward",))


def test_a_long_sum_over_places(emulated):  # noqa: F811
    """Blocks of the places go to different teams."""
    x, g = (3, 18, 18, 1, 4), (3, 18, 18, 1, 5)
    graph = derivative(x, g, size=(3, 3), low=(1, 1), high=(1, 1))
    program = check(emulated, graph, [floats(*x), floats(*g)], "4 blocks of the depth")
    assert len(program.launches) == 2


@pytest.mark.parametrize("images", [0, 1, 3])
def test_symbolic_images(emulated, images):  # noqa: F811
    n = Dim("n")
    x, f, g = (5, 7, 1, 3), (2, 3, 3, 1, 8), (5, 6, 1, 8)
    arrays = [floats(images, *x), floats(*f)]
    check(emulated, convolution((n, *x), f, low=(1, 1)), arrays, "tiles", ("forward",))
    arrays = [floats(images, *x), floats(images, *g)]
    check(emulated, derivative((n, *x), (n, *g), size=(2, 3), low=(1, 1)), arrays, "tiles", ("forward",))


@pytest.mark.parametrize("dtype", [hf.float64, hf.float16, hf.bfloat16, hf.int32], ids=str)
def test_dtypes(emulated, dtype):  # noqa: F811
    x, f = (1, 9, 9, 1, 8), (3, 3, 8, 1, 9)
    arrays = [(3 * floats(*shape)).astype(dtype) for shape in (x, f)]
    check(emulated, convolution(x, f, dtype, low=(1, 0)), arrays, "tiles", ("forward",))


GROUPS = {
    "depthwise": ((2, 9, 11, 8, 1), (3, 3, 1, 8, 1), {"low": (1, 1), "high": (1, 1)}),
    "strided": ((2, 12, 13, 4, 1), (3, 3, 1, 4, 1), {"step": (2, 2), "low": (1, 1)}),
    "dilated": ((1, 9, 12, 4, 1), (2, 3, 1, 4, 1), {"dilation": (2, 3), "low": (0, 2), "high": (1, 3)}),
    "cut off": ((1, 9, 12, 4, 2), (2, 2, 2, 4, 2), {"low": (-1, -2), "high": (0, -1)}),
    "three columns": ((1, 7, 9, 4, 1), (3, 3, 1, 4, 3), {"high": (1, 1)}),
    "three channels": ((1, 7, 9, 4, 3), (3, 2, 3, 4, 2), {"low": (-1, 2)}),
    "odd groups": ((1, 7, 9, 5, 2), (3, 2, 2, 5, 1), {}),
    "one axis": ((2, 19, 6, 1), (5, 1, 6, 1), {"low": (4,)}),
    "three axes": ((1, 4, 5, 6, 4, 1), (2, 2, 2, 1, 4, 1), {"high": (0, 1, 0)}),
    "large windows": ((1, 20, 21, 4, 1), (17, 17, 1, 4, 1), {"low": (3, 3)}),
    "many channels": ((1, 9, 10, 2, 8), (6, 7, 8, 2, 1), {"low": (3, 3)}),
    "zeros between": ((2, 5, 6, 4, 1), (3, 3, 1, 4, 1), {"interior": (1, 1), "low": (2, 2), "high": (2, 2)}),
    "zeros and gaps": (
        (2, 5, 6, 4, 2),
        (3, 3, 2, 4, 1),
        {"interior": (2, 1), "step": (2, 2), "low": (-1, 3), "high": (1, 0)},
    ),
}


@pytest.fixture(params=["large", "small"])
def bundled(request, monkeypatch):
    """The largest bundles, or as small ones as so few threads leave."""
    monkeypatch.setattr(grouped_conv_tiles, "ENOUGH_ON_GPU", 1 if request.param == "large" else 60)


def with_extremes(array, seed):
    """Some elements of the array are infinite or NaN: none is multiplied that no sum has."""
    draw = np.random.default_rng(seed)
    array.reshape(-1)[draw.integers(0, array.size, 2)] = draw.choice([np.inf, -np.inf, np.nan, -0.0], 2)
    return array


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_few_columns(emulated, bundled, name, offset):  # noqa: F811
    x, f, attrs = GROUPS[name]
    arrays = [with_extremes(floats(*x), 1), with_extremes(floats(*f), 2)]
    check(emulated, convolution(x, f, **attrs), arrays, "bundles", ("forward", "shuffled"), offset)


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("name", GROUPS)
def test_derivatives_by_the_filter_of_few_columns(emulated, bundled, name, offset):  # noqa: F811
    x, f, attrs = GROUPS[name]
    (result,) = convolution(x, f, **attrs).outputs
    graph = derivative(x, result.shape, size=f[:-3], **attrs)
    arrays = [with_extremes(floats(*x), 1), with_extremes(floats(*result.shape), 2)]
    check(emulated, graph, arrays, "bundles", ("forward", "shuffled"), offset)


def test_bundles_are_of_neighbouring_groups_and_places():
    """Of as many as leave enough threads: places are given up first."""
    of = {"channels": 1, "columns": 1, "itemsize": 4, "depth": 9, "taps": 3}
    assert grouped_conv_tiles.choose(256, lines=32 * 56, line=56, **of) == RegisterTile(4, 4, 3)
    assert grouped_conv_tiles.choose(256, lines=14, line=14, **of) == RegisterTile(2, 1, 3)
    assert grouped_conv_tiles.choose(512, lines=28, line=5, **of) == RegisterTile(4, 1, 3)
    assert grouped_conv_tiles.choose(255, lines=32 * 56, line=56, **of) == RegisterTile(1, 4, 3)
    assert grouped_conv_tiles.choose(2, **of | {"depth": 300, "channels": 3}, lines=1 << 16, line=9) is None


@pytest.mark.parametrize("dtype", [hf.float64, hf.float16, hf.bfloat16, hf.int8], ids=str)
def test_dtypes_of_few_columns(emulated, bundled, dtype):  # noqa: F811
    x, f = (1, 9, 9, 16, 1), (3, 3, 1, 16, 1)
    arrays = [(3 * floats(*shape)).astype(dtype) for shape in (x, f)]
    check(emulated, convolution(x, f, dtype, low=(1, 0)), arrays, "bundles", ("forward",))
    arrays[1] = (3 * floats(1, 8, 7, 16, 1)).astype(dtype)
    check(emulated, derivative(x, (1, 8, 7, 16, 1), dtype, size=(3, 3), low=(1, 0)), arrays, "bundles", ("forward",))


@pytest.mark.parametrize("images", [0, 1, 4])
def test_symbolic_images_of_few_columns(emulated, bundled, images):  # noqa: F811
    n = Dim("n")
    x, f, g = (9, 10, 4, 1), (2, 3, 1, 4, 1), (9, 10, 4, 1)
    attrs = {"low": (1, 1), "high": (0, 1)}
    arrays = [floats(images, *x), floats(*f)]
    check(emulated, convolution((n, *x), f, **attrs), arrays, "bundles", ("forward",))
    arrays = [floats(images, *x), floats(images, *g)]
    program = check(emulated, derivative((n, *x), (n, *g), size=(2, 3), **attrs), arrays, "bundles", ("forward",))
    assert len(program.launches) == 2


def test_nothing_to_see(emulated, bundled):  # noqa: F811
    x, f = (2, 0, 5, 4, 1), (2, 2, 1, 4, 1)
    arrays = [floats(*x), floats(*f)]
    check(emulated, convolution(x, f, low=(2, 1), high=(1, 1)), arrays, "bundles", ("forward",))


def test_what_is_computed_on_the_way_to_few_columns(emulated, bundled):  # noqa: F811
    arrays = [floats(2, 8, 9, 8), floats(3, 3, 8, 1), floats(8), floats(2, 8, 9, 8)]

    def layer(x, f, bias, other):
        def of(x, f):
            return hf.nn.gelu(hf.nn.depthwise_conv2d(x * 2 + 1, f, padding="SAME") + bias) + other

        with hf.GradientTape() as tape:
            tape.watch((x, f))
            y = of(x, f)
        return y, *tape.gradient(y, (x, f))

    program = check(emulated, graph_of(layer, arrays), arrays, "bundles", ("shuffled",))
    assert sum("bundles" in kernel.schedule for kernel in program.kernels) >= 3


def test_what_is_computed_on_the_way(emulated):  # noqa: F811
    arrays = [floats(2, 8, 8, 3), floats(3, 3, 3, 8), floats(8)]

    def layer(x, f, bias):
        return hf.nn.relu(hf.nn.conv2d(x * 2 + 1, f, padding="SAME") + bias)

    check(emulated, graph_of(layer, arrays), arrays, "tiles", ("shuffled",))


def test_attention(emulated):  # noqa: F811
    """Both of its products go by tiles."""
    arrays = [floats(2, 3, 9, 16) for _ in range(3)]

    def attention(q, k, v):
        return hf.nn.softmax(q @ hf.permute_dims(k, (0, 1, 3, 2)) * 0.25, axis=-1) @ v

    program = check(emulated, graph_of(attention, arrays), arrays, "tiles", ("forward",))
    assert sum("tiles" in kernel.schedule for kernel in program.kernels) == 2
