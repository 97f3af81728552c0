"""TensorFlow's ``tf.compat``."""
