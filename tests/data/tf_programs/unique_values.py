import tensorflow as tf

y, idx = tf.unique([4, 1, 4, 3, 1])
y2, idx2, count = tf.unique_with_counts([4, 1, 4, 3, 1])
RESULT = {"y": y, "idx": idx, "count": count, "again": tf.gather(y2, idx2), "dtype": idx.dtype.name}
