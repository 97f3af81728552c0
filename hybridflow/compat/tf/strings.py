"""TensorFlow's ``tf.strings``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

for _name in hf.strings.__all__:
    if _name not in ("StringTensor", "constant"):
        export(getattr(hf.strings, _name), f"strings.{_name}")
export(hf.strings.as_string, "as_string")
