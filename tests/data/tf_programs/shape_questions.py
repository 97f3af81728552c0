import tensorflow as tf

x = tf.zeros([2, 3, 4])
v = tf.Variable(tf.ones([5, 6]))


@tf.function
def flatten(x):
    batch, *rest = x.shape.as_list()
    return tf.reshape(x, [batch, x.shape.num_elements() // batch])


class Flat(tf.keras.layers.Layer):
    def build(self, input_shape):
        self.w = self.add_weight(shape=(int(input_shape[-1]), 2), initializer="ones")

    def call(self, x):
        b = tf.shape(x)[0]
        n = x.shape.as_list()[-1]
        return tf.reshape(tf.matmul(x, self.w), [b, 2]) / float(n)


inputs = tf.keras.Input(shape=(3,))
model = tf.keras.Model(inputs, Flat()(inputs))
RESULT = {
    "list": x.shape.as_list(),
    "rank": [x.shape.rank, x.shape.ndims, v.shape.rank, tf.constant(1.0).shape.rank],
    "elements": x.shape.num_elements(),
    "whole": x.shape.is_fully_defined(),
    "ranked": x.shape.with_rank(3).as_list(),
    "joined": ([7] + x.shape).as_list(),
    "concat": x.shape.concatenate([9]).as_list(),
    "compatible": [x.shape.is_compatible_with([None, 3, 4]), x.shape.is_compatible_with([2, 3])],
    "flat": flatten(x).shape.as_list(),
    "model": model(tf.ones([4, 3])),
    "same": x.shape == (2, 3, 4),
    "rows": v.shape.as_list()[0],
    "str": str(x.shape),
    "new": tf.zeros(x.shape).shape.as_list(),
    "reshaped": tf.reshape(tf.range(24), x.shape)[1, 2, 3],
    "static": tf.TensorShape([None, 3]).as_list(),
}
