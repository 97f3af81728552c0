"""Random numbers under TensorFlow's names: with a seed they are TensorFlow's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow.compat.tf as tf
from hybridflow.compiler.ops.philox import philox

# What TensorFlow 2.21 gives on a CPU; the seed is (1, 2), or the generator's 1
FLOATS: dict[tuple[str, str], list[float]] = {
    ("uniform", "float16"): [0.54296875, 0.2353515625, 0.060546875, 0.8935546875, 0.1435546875],
    ("uniform", "float32"): [0.84406042, 0.19204533, 0.99622321, 0.1603874, 0.27199018],
    ("uniform", "float64"): [0.7524837538451801, 0.9697857725627486, 0.17592233912897481, 0.8555556648693279],
    ("normal", "bfloat16"): [0.54296875, 0.20703125, 0.07373046875, 0.04638671875, -1.3046875],
    ("normal", "float32"): [0.54411012, 0.20738031, 0.07356432, 0.04643455, -1.30158985],
    ("normal", "float64"): [-0.1423118100189212, 0.7406072461585091, -1.469047669443883, 1.147747453689489],
    ("truncated_normal", "float32"): [0.54411012, 0.20738031, 0.07356432, 0.04643455, 0.16820592],
    ("truncated_normal", "float64"): [-0.1423118100189212, 0.7406072461585091, -0.552387756244845, -0.734450092480207],
}
INTS: dict[tuple[str, Any], list[int]] = {
    ("int32", None): [1105988140, 1738052849, -335576002, 370444179, 10670227],
    ("uint32", None): [1105988140, 1738052849, 3959391294, 370444179, 10670227],
    ("int64", None): [7464880146280614444, 1591045637757961278, -1057468755545501549],
    ("int32", (-5, 11)): [7, -4, 9, -2, -2],
    ("int64", (-5, 11)): [7, 9, -2, 6, 6],
}


@pytest.mark.parametrize(("name", "dtype"), list(FLOATS), ids=str)
def test_stateless_floats(name: str, dtype: str) -> None:
    wanted = FLOATS[name, dtype]
    draw = getattr(tf.random, f"stateless_{name}")
    got = draw([len(wanted)], seed=[1, 2], dtype=dtype)
    ulp = {"float16": 1e-3, "bfloat16": 8e-3}.get(dtype, 3e-6)
    assert got.dtype.name == dtype
    np.testing.assert_allclose(got.numpy().astype(np.float64), wanted, rtol=ulp)
    compiled = tf.function(lambda seed: draw([len(wanted)], seed=seed, dtype=dtype))(tf.constant([1, 2]))
    assert compiled.numpy().tobytes() == got.numpy().tobytes()


@pytest.mark.parametrize(("dtype", "bounds"), list(INTS), ids=str)
def test_stateless_integers(dtype: str, bounds: Any) -> None:
    wanted = INTS[dtype, bounds]
    low, high = bounds or (None, None)
    got = tf.random.stateless_uniform([len(wanted)], [1, 2], low, high, dtype)
    assert got.numpy().tolist() == wanted
    assert got.dtype.name == dtype


def test_scales_and_large_seeds() -> None:
    uniform = tf.random.stateless_uniform([5], [7, -9], -2.0, 3.0).numpy()
    np.testing.assert_allclose(uniform, [-0.3645165, -0.29134643, -0.13168705, 1.1838398, -0.71513844], rtol=1e-6)
    normal = tf.random.stateless_normal([5], [2**40, -9], -2.0, 3.0).numpy()
    np.testing.assert_allclose(normal, [-1.8191116, 3.6580982, -4.5019855, -2.1679764, -3.431818], rtol=3e-6)


def test_truncated_numbers_lie_within_two_deviations() -> None:
    drawn = tf.random.stateless_truncated_normal([4001], [3, 4]).numpy()
    assert np.abs(drawn).max() < 2 < np.abs(tf.random.stateless_normal([4001], [3, 4]).numpy()).max()
    assert abs(drawn.std() - 0.8796) < 0.03
    assert len(np.unique(drawn)) > 3990


def test_seeds_of_seeds() -> None:
    assert tf.random.split([1, 2], 2).numpy().tolist() == [[1105988140, 1738052849], [-335576002, 370444179]]
    assert tf.random.fold_in([1, 2], 5).numpy().tolist() == [1105988140, 5]
    classes = tf.random.stateless_categorical([[0.0, 1.0, 2.0, -1.0], [1.0, 1.0, 0.0, 0.0]], 7, [1, 2])
    assert classes.numpy().tolist() == [[2, 3, 1, 2, 2, 2, 2], [0, 2, 2, 1, 1, 0, 0]]


def test_generator() -> None:
    source = tf.random.Generator.from_seed(1)
    assert source.state.numpy().tolist() == [1, 0, 0]
    near = lambda a, b: np.testing.assert_allclose(a.numpy().ravel()[: len(b)], b, rtol=5e-6, atol=2e-6)  # noqa: E731
    near(source.normal([5]), [0.43842274, -0.53439844, -0.07710262, 1.5658046, -0.1012345])
    assert source.state.numpy().tolist() == [1281, 0, 0]
    near(source.uniform([2, 3]), [0.8704672, 0.24279201, 0.61187625, 0.97045565, 0.7605282, 0.70792353])
    assert source.uniform([4], 3, 100, tf.int32).numpy().tolist() == [22, 46, 82, 29]
    assert source.uniform([4], 3, 100, tf.int64).numpy().tolist() == [66, 64, 11, 26]
    assert source.uniform_full_int([3]).numpy()[:2].tolist() == [11242719187036315870, 13974531510636968912]
    assert int(source.uniform_full_int([3], tf.int32)[0]) == -863000118
    near(source.truncated_normal([6]), [-0.04854757, -0.28777644, -0.04499039, 0.9186344, -0.08980332, 0.7043996])
    near(source.normal([3], dtype=tf.float64), [0.34611168146984, -1.4936424294906276, -0.30020206719980896])
    assert source.make_seeds(3).numpy()[0, 0] == 1085458528367877911
    assert [int(part.key) for part in source.split(2)] == [-9105433001034055337, -7094809127005291855]
    near(source.split(1)[0].normal([3]), [1.688108, 0.23484696, -1.4249752])


def test_states_of_generators() -> None:
    wide = tf.random.Generator.from_seed(123456789012345678901234567890)
    assert wide.state.numpy().tolist() == [-4362896299872285998, 6692605942, 0]
    assert tf.random.Generator.from_seed([5, 6]).state.numpy().tolist() == [0, 5, 6]
    carried = tf.random.Generator.from_state([-1, 2, 3], alg="philox")
    got = carried.normal([9]).numpy()  # the counter's low half wraps after the first block
    np.testing.assert_allclose(got[[0, 4, 8]], [0.15785508, -1.5072867, 0.7324241], rtol=5e-6)
    assert carried.state.numpy().tolist() == [2303, 3, 3]
    copied = tf.random.Generator(copy_from=carried)
    assert copied.normal([3]).numpy().tolist() == carried.normal([3]).numpy().tolist()
    copied.reset_from_key_counter(5, [1, 2])
    np.testing.assert_allclose(copied.normal([2]).numpy(), [1.3698597, -0.8846968], rtol=5e-6)


def test_generator_in_a_function() -> None:
    eager, traced = tf.random.Generator.from_seed(9), tf.random.Generator.from_seed(9)
    draw = tf.function(lambda: (traced.normal([3]), traced.uniform([2])))
    for _ in range(2):
        got = draw()
        assert got[0].numpy().tolist() == eager.normal([3]).numpy().tolist()
        assert got[1].numpy().tolist() == eager.uniform([2]).numpy().tolist()
    assert traced.state.numpy().tolist() == eager.state.numpy().tolist()
    assert traced.binomial([3], 10.0, 0.5).shape == (3,)  # hybridflow's own numbers


def test_a_seed_leaves_the_global_generator() -> None:
    source, before = tf.random.Generator.from_seed(1), tf.random.get_global_generator()
    tf.random.set_global_generator(source)
    try:
        tf.random.set_seed(3)
        assert tf.random.get_global_generator() is source
    finally:
        tf.random.set_global_generator(before)


def test_keras_seeds() -> None:
    random = tf.keras.random
    np.testing.assert_allclose(random.normal((2,), seed=3).numpy(), [-0.6715848, 1.6760504], rtol=5e-6)
    assert random.randint((5,), 0, 10, seed=3).numpy().tolist() == [8, 7, 2, 2, 5]
    assert random.shuffle(np.arange(6), seed=3).numpy().tolist() == [5, 4, 0, 2, 3, 1]
    assert random.dropout(np.ones(8, np.float32), 0.5, seed=3).numpy().tolist() == [0, 2, 2, 2, 0, 0, 0, 0]
    source = random.SeedGenerator(4)
    first = random.uniform((2,), seed=source).numpy()
    second = random.uniform((2,), seed=source).numpy()
    np.testing.assert_allclose(first, [0.58059776, 0.9057888], rtol=1e-6)
    np.testing.assert_allclose(second, random.uniform((2,), seed=_with_state([4, 1])).numpy())
    assert source.get_config() == {"seed": 4, "name": "seed_generator"}


def _with_state(state: list[int]) -> Any:
    source = tf.keras.random.SeedGenerator(0)
    source.state.assign(state)
    return source


def test_bad_input() -> None:
    for seed in ([1], [1.0, 2.0], [[1, 2]]):
        with pytest.raises(TypeError, match="must be two integers"):
            tf.random.stateless_uniform([2], seed)
    with pytest.raises(ValueError, match="ThreeFry"):
        tf.random.Generator.from_seed(1, alg="threefry")
    with pytest.raises(ValueError, match="three integers"):
        tf.random.Generator.from_state([1, 2], alg="philox")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Need minval < maxval"):
        tf.random.stateless_uniform([2], [1, 2], 5, 5, tf.int32)
    with pytest.raises(ValueError, match="minval and a maxval"):
        tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)
    with pytest.raises(TypeError, match="must be a float's"):
        tf.random.stateless_normal([2], [1, 2], dtype=tf.int32)
    assert tf.random.stateless_normal([0], [1, 2]).shape == (0,)
    assert tf.random.stateless_truncated_normal([3, 0], [1, 2]).shape == (3, 0)


def test_words_are_philox() -> None:
    """The known answer of the authors of Philox for a counter and a key of ones."""
    ones = 2**32 - 1
    words = philox(np.array([2**64 - 1], np.uint64), 2**64 - 1, ones, ones)
    assert [hex(word) for word in words[0]] == ["0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"]
