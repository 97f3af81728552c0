"""TensorFlow 2's names over hybridflow: ``import hybridflow.compat.tf as tf``.

What a name stands for is in ``names``; arguments, defaults and dtypes are TensorFlow's.
"""

from hybridflow.autodiff.sparse_gradient import show_all as _show_all
from hybridflow.compat.adapters.tensors import answer as _answer
from hybridflow.compat.tf import names as _names

_show_all()  # TensorFlow's gradients of look-ups are IndexedSlices, however small the table
_answer()
__getattr__, __dir__, __all__ = _names.room(__name__)
__version__ = "2.21.0"
_names.fill()
