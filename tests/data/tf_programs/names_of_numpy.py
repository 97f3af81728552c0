import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

tnp.experimental_enable_numpy_behavior()
x = tf.Variable([1.0, 2.0])
with tf.GradientTape() as tape:
    y = tnp.sum(tnp.square(x))
found = [
    tnp.ones((2, 3)), tnp.arange(5), tnp.array([1, 2, 3.0]), tnp.sum(tnp.array([[1, 2], [3, 4]]), axis=0),
    tnp.mean([1, 2, 4]), tnp.linspace(0, 1, 5), tnp.concatenate([tnp.ones(2), tnp.zeros(1)]),
    tnp.stack([[1, 2], [3, 4]]), tnp.where(tnp.array([True, False]), 1.0, 2.0), tnp.dot(tnp.eye(2), tnp.array([1.0, 2.0])),
    tnp.einsum("ij,j->i", tnp.eye(2), tnp.array([1.0, 2.0])), tnp.transpose(tnp.reshape(tnp.arange(6), (2, 3))),
    tnp.maximum(tnp.array([1, 5]), 3), tnp.exp(tnp.zeros(2)), tnp.clip(tnp.array([1.0, 5.0, 9.0]), 2, 6),
    tnp.argmax(tnp.array([1, 5, 2])), tnp.var(tnp.array([1.0, 2.0, 4.0])), tnp.full((2,), 7), tnp.cumsum(tnp.arange(4)),
    tnp.tile(tnp.array([1, 2]), 2), tnp.matmul(tnp.ones((1, 2)), tnp.ones((2, 1))), tnp.ones((2,), dtype=tf.float32),
    tnp.ones((2,), dtype=tnp.float32) + tf.ones(2), tnp.power(tnp.array([1, 2]), 2), tnp.sort(tnp.array([3, 1, 2])),
    tnp.tril(tnp.ones((2, 2))), tnp.meshgrid(tnp.arange(2), tnp.arange(3))[0],
    tnp.split(tnp.arange(4), 2)[1], tnp.outer(tnp.arange(2), tnp.arange(2)), tnp.true_divide(tnp.arange(3), 2),
    tnp.flip(tnp.arange(3)), tnp.vstack([tnp.arange(2), tnp.arange(2)]), tnp.all(tnp.array([True, False])),
    tnp.asarray(tf.ones(2)), tnp.sqrt(tnp.arange(3)), tnp.random.randn(2, 3) * 0, tape.gradient(y, x),
]  # fmt: skip
RESULT = [[np.asarray(value).dtype.name, np.asarray(value)] for value in found]
