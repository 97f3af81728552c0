"""Several replicas of a strategy: they draw the numbers that TensorFlow printed, and change nothing."""

from __future__ import annotations

import re

import numpy as np
import pytest

import hybridflow.compat.tf as tf
from hybridflow.errors import DeviceError


@pytest.fixture
def pair() -> object:
    return tf.distribute.MirroredStrategy(devices=["cpu:0", "cpu:1"])


def test_each_replica_has_a_stream_of_its_own(pair: object) -> None:
    with pair.scope():
        stream = tf.random.Generator.from_seed(1)
        first, second = (pair.run(lambda: stream.normal([])) for _ in range(2))
    np.testing.assert_allclose(first.values, [-0.87930447, 0.020661574], rtol=2e-6)
    np.testing.assert_allclose(second.values, [-1.5822568, 0.77539235], rtol=2e-6)
    assert re.fullmatch(r"PerReplica:\{\n  0: tf\.Tensor\(.*\),\n  1: tf\.Tensor\(.*\)\n\}", repr(first))


def test_a_stream_made_outside_is_shared(pair: object) -> None:
    stream = tf.random.Generator.from_seed(1)
    with pair.scope():
        drawn = pair.run(lambda: stream.normal([]))
    np.testing.assert_allclose(drawn.values, [0.43842274, 1.6272374], rtol=2e-6)


def test_compiled_functions_draw_of_the_stream_of_their_replica(pair: object) -> None:
    class Drawing(tf.Module):
        def __init__(self) -> None:
            self.stream = tf.random.Generator.from_seed(0)

        @tf.function
        def __call__(self) -> object:
            return self.stream.normal([])

        @tf.function
        def state(self) -> object:
            return self.stream.state

    with pair.scope():
        module = Drawing()
        np.testing.assert_allclose(pair.run(module).values, [-1.4154755, -0.11388441], rtol=1e-5)
        np.testing.assert_allclose(pair.run(module).values, [-0.68758255, 0.8084062], rtol=1e-5)
    assert module.state().numpy().tolist() == [512, 0, 0]


def test_replicas_that_draw_unlike_numbers_never_draw_one_twice(pair: object) -> None:
    with pair.scope():
        stream = tf.random.Generator.from_seed(1)

        def draw() -> object:
            count = 1 + tf.distribute.get_replica_context().replica_id_in_sync_group
            return stream.uniform([count])

        pair.run(draw)
    assert int(stream.state[0]) == 513  # 1 at first, and 256 for each of the two numbers of the second replica


def test_values_of_replicas(pair: object) -> None:
    values = pair.experimental_distribute_values_from_function(lambda context: context.replica_id_in_sync_group + 1.0)
    doubled = pair.run(lambda x: (x * 2, None), args=(values,))[0]
    assert pair.experimental_local_results(doubled) == (2.0, 4.0)
    assert pair.reduce("SUM", doubled, axis=None) == 6.0 and pair.reduce("MEAN", doubled, axis=None) == 3.0
    data = pair.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
    (batch,) = list(data)
    assert [part.numpy().tolist() for part in batch.values] == [[0, 1], [2, 3]]
    assert pair.gather(batch, axis=0).numpy().tolist() == [0, 1, 2, 3]


def test_replicas_change_no_variables(pair: object) -> None:
    with pair.scope():
        variable = tf.Variable(1.0)
        with pytest.raises(DeviceError, match="a replica of several changes a variable"):
            pair.run(lambda: variable.assign_add(1.0))
    assert variable.numpy() == 1.0
    variable.assign(2.0)
    assert variable.numpy() == 2.0


def test_where_a_program_is() -> None:
    assert not tf.distribute.has_strategy() and tf.distribute.get_replica_context() is not None
    one = tf.distribute.MirroredStrategy()
    assert one.num_replicas_in_sync == 1
    with one.scope():
        assert tf.distribute.get_strategy() is one and tf.distribute.in_cross_replica_context()
        assert tf.distribute.get_replica_context() is None
        assert one.run(lambda: tf.distribute.get_replica_context().strategy) is one
    assert not tf.distribute.in_cross_replica_context()
