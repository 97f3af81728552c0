"""TensorFlow's ``tf.keras.applications.mobilenet_v3``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
