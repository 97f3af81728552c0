"""TensorFlow's ``tf.errors``."""

from __future__ import annotations

import hybridflow as hf
from hybridflow.compat.export import export

export(hf.errors.TraceError, "errors.OperatorNotAllowedInGraphError")
export(hf.errors.HybridflowError, "errors.OpError", "errors.FailedPreconditionError", "errors.UnknownError")
export(hf.errors.OperandError, "errors.InvalidArgumentError")
export(hf.errors.CompileError, "errors.InternalError")
export(hf.errors.DataError, "errors.DataLossError")
export(hf.errors.WorkerError, "errors.AbortedError", "errors.CancelledError", "errors.UnavailableError")
