"""TensorFlow's ``tf.experimental.numpy.random``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
