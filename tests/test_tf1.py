"""Programs of TensorFlow 1, run with one changed import."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import hybridflow as hf
import hybridflow.compat.v1 as tf
from hybridflow.compat.v1 import graph

PROGRAMS = sorted((Path(__file__).parent / "tf1_programs").glob("*.py"))


@pytest.fixture(autouse=True)
def own_graph() -> Iterator[None]:
    """Each test has a default graph of its own."""
    graph.reset_default_graph()
    hf.random.set_seed(0)
    yield
    graph.interactive(None)
    graph.set_recording(None)
    graph.reset_default_graph()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path) -> None:
    runpy.run_path(str(path))


def test_there_are_many() -> None:
    assert len(PROGRAMS) >= 40


def test_steps_are_those_of_a_compiled_function() -> None:
    """The same network, step by step, with hybridflow's own functions: the same bits."""
    rng = np.random.RandomState(0)
    images, labels = rng.randn(8, 5).astype(np.float32), rng.randint(0, 3, 8)
    start = rng.randn(5, 3).astype(np.float32)
    x, y = tf.placeholder(tf.float32, [None, 5]), tf.placeholder(tf.int64, [None])
    w = tf.Variable(start)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=tf.matmul(x, w)))
    train = tf.train.AdamOptimizer(0.1, epsilon=1e-7).minimize(loss)
    v, adam = hf.Variable(start), hf.optimizers.Adam(0.1)

    @hf.function
    def step(images: hf.Tensor, labels: hf.Tensor) -> hf.Tensor:
        with hf.GradientTape() as tape:
            found = hf.mean(hf.losses.softmax_cross_entropy(labels, images @ v, reduction="none"))
        adam.apply_gradients([(tape.gradient(found, v), v)])
        return found

    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(5):
            own, theirs = sess.run([loss, train], {x: images, y: labels})[0], step(images, labels)
            assert own == theirs.item()
        np.testing.assert_array_equal(sess.run(w), v.numpy())


@pytest.mark.parametrize(
    ("name", "near"), [("reduce_summ", "reduce_sum"), ("placehold", "placeholder"), ("Sesion", "Session")]
)
def test_missing_names_name_the_nearest(name: str, near: str) -> None:
    with pytest.raises(AttributeError, match=f"tf has no '{name}' in hybridflow. Did you mean tf.{near}"):
        getattr(tf, name)
