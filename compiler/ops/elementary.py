"""The elementary functions, for float32 and float64, over the emitter.

Each takes the emitter and values of one dtype and any width.  They consist of IEEE operations, bit operations and
explicit fma alone, so that a result has the same bits at every vector width and on every target; there is no reciprocal
approximation and no contraction.  Special values follow C99's annex F, and underflow is gradual.
"""

from hybridflow.compiler.ops.elementary_exp import cosh, erf, exp, expm1, sigmoid, sinh, tanh
from hybridflow.compiler.ops.elementary_log import acosh, asinh, atanh, log, log1p, log2, log10, logaddexp
from hybridflow.compiler.ops.elementary_power import hypot, pow, rsqrt
from hybridflow.compiler.ops.elementary_trig import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "hypot",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "pow",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "tan",
    "tanh",
]
