import numpy as np
import tensorflow as tf

rows = np.arange(20.0).reshape(10, 2).astype("float32")
RESULT = {}


def told(dataset):
    return [[part.numpy() for part in one] if isinstance(one, tuple) else one.numpy() for one in dataset]


windows = tf.keras.utils.timeseries_dataset_from_array
RESULT["rows"] = told(windows(rows, None, 4, batch_size=3))
RESULT["targets"] = told(windows(rows[:-2], rows[2:, 0], 2, sequence_stride=2, batch_size=2))
RESULT["sampled"] = told(windows(rows, None, 3, sampling_rate=2, sequence_stride=3, batch_size=8))
RESULT["between"] = told(windows(rows, None, 2, start_index=3, end_index=7, batch_size=8))
shuffled = told(windows(rows, None, 2, shuffle=True, batch_size=16))[0]
RESULT["shuffled"] = sorted(shuffled[:, 0, 0].tolist())


def halves(window):
    return window[:, :2], tf.stack([window[:, 2:, 0]], axis=-1)


for inputs, labels in windows(rows, None, 3, batch_size=32).map(halves):
    RESULT["halves"] = [inputs.shape.as_list(), labels.shape.as_list()]
