import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
layer = tf.keras.layers.Dense(4, kernel_initializer="ones")
y = layer(tf.ones([2, 3]))
RESULT = {
    "dtype": y.dtype.name,
    "w": layer.kernel.dtype if isinstance(layer.kernel.dtype, str) else layer.kernel.dtype.name,
    "compute": layer.compute_dtype,
    "policy": tf.keras.mixed_precision.global_policy().name,
}
tf.keras.mixed_precision.set_global_policy("float32")
model = tf.keras.Sequential(
    [tf.keras.Input((3,)), tf.keras.layers.Dense(1, kernel_initializer="ones", dtype="mixed_float16")]
)
opt = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.1))
x = tf.ones([4, 3])
for _ in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.cast(model(x), tf.float32) ** 2)
        scaled = opt.scale_loss(loss)
    opt.apply_gradients(zip(tape.gradient(scaled, model.trainable_variables), model.trainable_variables))
RESULT["loss"] = float(loss)
RESULT["w2"] = model.get_weights()[0]
