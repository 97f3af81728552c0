import numpy as np
import tensorflow as tf

x = tf.constant(3)
y = tf.constant([[1.5, 2.5]])
RESULT = {
    "int": int(x),
    "float": float(tf.constant(0.5)),
    "bool": bool(tf.constant(True)),
    "index": [10, 20, 30, 40][x],
    "numpy": y.numpy(),
    "array": np.array(y),
    "item": y[0, 1].numpy().item(),
    "iterate": [float(v) for v in y[0]],
    "len": len(y),
    "comparison": bool(x > 2),
    "format": f"{float(y[0, 0]):.2f}",
    "sum": sum(tf.unstack(tf.constant([1, 2, 3]))),
    "np_function": np.mean(y),
}
