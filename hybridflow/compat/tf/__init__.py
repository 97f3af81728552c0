"""TensorFlow 2's names over hybridflow: ``import hybridflow.compat.tf as tf``.

What a name stands for is in ``names``; arguments, defaults and dtypes are TensorFlow's.
"""

from hybridflow.compat.tf import names as _names

__getattr__, __dir__, __all__ = _names.room(__name__)
__version__ = "2.21.0"
_names.fill()
