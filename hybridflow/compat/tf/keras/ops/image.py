"""TensorFlow's ``tf.keras.ops.image``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
