import tensorflow as tf

average = tf.Variable(0.0, trainable=False)


@tf.function
def update(value, decay=tf.constant(0.9)):
    average.assign(decay * average + (1 - decay) * value)
    return average.read_value()


RESULT = {"values": [update(tf.constant(float(k))) for k in range(4)]}
