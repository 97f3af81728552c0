"""``hybridflow.compat.v1`` under TensorFlow's path: ``import hybridflow.compat.tf.compat.v1 as tf``."""

import sys as _sys

from hybridflow.compat import v1 as _v1

_sys.modules[__name__] = _v1
