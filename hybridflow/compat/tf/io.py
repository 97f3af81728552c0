"""TensorFlow's ``tf.io``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

export(hf.data.TFRecordWriter, "io.TFRecordWriter", "data.experimental.TFRecordWriter")
