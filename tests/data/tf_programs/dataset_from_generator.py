import tensorflow as tf


def numbers(limit):
    for k in range(limit):
        yield k, [float(k)] * 2


data = tf.data.Dataset.from_generator(
    numbers,
    args=[3],
    output_signature=(tf.TensorSpec(shape=(), dtype=tf.int32), tf.TensorSpec(shape=(2,), dtype=tf.float32)),
)
old = tf.data.Dataset.from_generator(lambda: iter([1, 2, 3]), output_types=tf.int64, output_shapes=())


class ArtificialDataset(tf.data.Dataset):
    def _generator(num_samples):
        for sample_idx in range(num_samples):
            yield (sample_idx,)

    def __new__(cls, num_samples=3):
        return tf.data.Dataset.from_generator(
            cls._generator,
            output_signature=tf.TensorSpec(shape=(1,), dtype=tf.int64),
            args=(num_samples,),
        )


padded = tf.data.Dataset.from_generator(
    lambda: iter([[1], [2, 3], [4, 5, 6]]), output_signature=tf.TensorSpec([None], tf.int32)
).padded_batch(3, padding_values=-1)
RESULT = {
    "data": [(int(a), b) for a, b in data],
    "old": list(old.as_numpy_iterator()),
    "artificial": list(ArtificialDataset().as_numpy_iterator()),
    "dataset": isinstance(ArtificialDataset(), tf.data.Dataset),
    "padded": next(iter(padded)),
}
