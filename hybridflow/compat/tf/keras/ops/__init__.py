"""TensorFlow's ``tf.keras.ops``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
