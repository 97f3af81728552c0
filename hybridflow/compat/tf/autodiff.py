"""TensorFlow's ``tf.autodiff``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

export(hf.GradientTape, "autodiff.GradientTape", "GradientTape")
export(hf.ForwardAccumulator, "autodiff.ForwardAccumulator")
