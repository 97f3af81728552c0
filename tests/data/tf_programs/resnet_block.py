import numpy as np
import tensorflow as tf


class ResnetIdentityBlock(tf.keras.Model):
    def __init__(self, kernel_size, filters):
        super().__init__(name="")
        filters1, filters2, filters3 = filters
        c = tf.keras.initializers.Constant(0.05)
        self.conv2a = tf.keras.layers.Conv2D(filters1, (1, 1), kernel_initializer=c)
        self.bn2a = tf.keras.layers.BatchNormalization()
        self.conv2b = tf.keras.layers.Conv2D(filters2, kernel_size, padding="same", kernel_initializer=c)
        self.bn2b = tf.keras.layers.BatchNormalization()
        self.conv2c = tf.keras.layers.Conv2D(filters3, (1, 1), kernel_initializer=c)
        self.bn2c = tf.keras.layers.BatchNormalization()

    def call(self, input_tensor, training=False):
        x = self.conv2a(input_tensor)
        x = self.bn2a(x, training=training)
        x = tf.nn.relu(x)
        x = self.conv2b(x)
        x = self.bn2b(x, training=training)
        x = tf.nn.relu(x)
        x = self.conv2c(x)
        x = self.bn2c(x, training=training)
        x += input_tensor
        return tf.nn.relu(x)


block = ResnetIdentityBlock(3, [1, 2, 3])
x = tf.constant(np.sin(np.arange(96)).reshape(2, 4, 4, 3), tf.float32)
first = block(x)
with tf.GradientTape() as tape:
    y = block(x, training=True)
    loss = tf.reduce_sum(y * y)
grads = tape.gradient(loss, block.trainable_variables)
RESULT = {
    "sum": float(tf.reduce_sum(first)),
    "train": float(loss),
    "layers": len(block.layers),
    "variables": [len(block.variables), len(block.trainable_variables)],
    "norms": [round(float(tf.norm(g)), 2) for g in grads if g.shape.rank == 4][2:],
    "moving": block.bn2a.moving_mean,
}
