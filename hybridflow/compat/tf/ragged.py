"""TensorFlow's ``tf.ragged``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
