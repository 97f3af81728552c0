"""TensorFlow's ``tf.keras.applications.convnext``."""

from hybridflow.compat.tf.names import room

__getattr__, __dir__, __all__ = room(__name__)
