"""TensorFlow's names, room by room, and what is behind each; ``entries`` says how a line is read.

A room is ``[nn]`` for ``tf.nn``, ``[.]`` for ``tf`` itself; lines below several are in all of them.  ``*: target``
stands for all public names of a module, but for those that have a line of their own.
"""

from hybridflow.compat.tables import absent, core, data, keras, keras_backend, keras_ops, maths, nn, platform

# A name that stands in a room twice is what the last line says.
TABLES = "".join(table.NAMES for table in (core, maths, nn, platform, data, keras, keras_backend, keras_ops))
ABSENT = absent.NAMES
