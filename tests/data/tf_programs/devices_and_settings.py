import tensorflow as tf

tf.config.set_soft_device_placement(True)
tf.config.optimizer.set_jit(True)
for gpu in tf.config.list_physical_devices("GPU"):
    tf.config.experimental.set_memory_growth(gpu, True)
with tf.device("/CPU:0"):
    a = tf.ones([2])
with tf.device("/device:CPU:0"):
    b = tf.ones([2])
with tf.device("/job:localhost/replica:0/task:0/device:CPU:0"):
    c = a + b
RESULT = {
    "c": c,
    "cpus": len(tf.config.list_physical_devices("CPU")),
    "type": tf.config.list_physical_devices("CPU")[0].device_type,
    "name": tf.config.list_physical_devices("CPU")[0].name,
    "eager": tf.executing_eagerly(),
    "version": int(tf.__version__.split(".")[0]),
    "run_eagerly": tf.config.functions_run_eagerly(),
    "inside": tf.function(lambda: tf.executing_eagerly())() if False else tf.executing_eagerly(),
}
