import tensorflow as tf
import numpy as np

rng = np.random.default_rng(0)
x = tf.constant(np.concatenate([rng.normal(size=(10, 2)) + 3, rng.normal(size=(10, 2)) - 3]), tf.float32)
centers = tf.Variable(x[::10])


@tf.function
def step():
    d = tf.reduce_sum(tf.square(x[:, None, :] - centers[None]), -1)
    lab = tf.argmin(d, axis=1, output_type=tf.int32)
    new = tf.math.unsorted_segment_mean(x, lab, 2)
    shift = tf.reduce_max(tf.norm(new - centers, axis=1))
    centers.assign(new)
    return lab, shift


for _ in range(20):
    lab, shift = step()
    if shift < 1e-4:
        break
d = tf.norm(x[:, None] - x[None], axis=-1)
near = tf.math.top_k(-d, k=3)
vals, idx, cnt = tf.unique_with_counts(lab)
RESULT = {
    "centers": centers,
    "lab": lab,
    "near": near.indices,
    "counts": cnt,
    "boot": tf.gather(x, tf.where(lab == 1)[:, 0])[:2],
    "hist": tf.histogram_fixed_width(x[:, 0], [-5.0, 5.0], nbins=4),
}
