"""TensorFlow's ``tf.keras.applications.resnet``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
