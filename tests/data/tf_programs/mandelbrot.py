import numpy as np
import tensorflow as tf

grid = np.meshgrid(np.linspace(-2, 1, 30, dtype="float32"), np.linspace(-1, 1, 20, dtype="float32"))
cx, cy = tf.constant(grid[0]), tf.constant(grid[1])


@tf.function
def step(zx, zy, counts):
    x, y = zx * zx - zy * zy + cx, 2 * zx * zy + cy
    inside = x * x + y * y < 4
    return tf.where(inside, x, zx), tf.where(inside, y, zy), counts + tf.cast(inside, tf.int32)


zx, zy, counts = tf.zeros_like(cx), tf.zeros_like(cx), tf.zeros(cx.shape, tf.int32)
for _ in range(15):
    zx, zy, counts = step(zx, zy, counts)
RESULT = {"counts": counts}
