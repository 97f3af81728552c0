"""The elementary functions, for float32 and float64, over the emitter.

Each takes the emitter and values of one dtype and any width.  They consist of IEEE operations, bit operations and
explicit fma alone, so that a result has the same bits at every vector width and on every target; there is no reciprocal
approximation and no contraction.  Special values follow C99's annex F, and underflow is gradual.
"""

from hybridflow.compiler.ops.elementary_exp import cosh, erf, exp, exp2, expm1, sigmoid, sinh, tanh
from hybridflow.compiler.ops.elementary_log import acosh, asinh, atanh, log, log1p, log2, log10, logaddexp
from hybridflow.compiler.ops.elementary_power import cbrt, hypot, pow, rsqrt
from hybridflow.compiler.ops.elementary_trig import acos, asin, atan, atan2, cos, sin, tan

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "hypot",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "pow",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "tan",
    "tanh",
]

# The largest error in units in the last place.  float32: over every argument where there is one (benchmarks/ulp.py),
# over samples where there are two.  float64: over samples, hence a margin.  logaddexp's is relative to the larger of
# its two parts, max(x, y) and log1p(exp(-|x - y|)), which may cancel.
_BOUNDS = {
    "acos": (0.65, 0.7),
    "acosh": (0.51, 1.7),
    "asin": (0.65, 0.7),
    "asinh": (0.51, 1.8),
    "atan": (0.85, 0.85),
    "atan2": (0.51, 0.9),
    "atanh": (0.51, 1.7),
    "cbrt": (0.6, 0.6),
    "cos": (1, 1.1),
    "cosh": (1.5, 1.6),
    "erf": (1.3, 1.3),
    "exp": (1.1, 1.1),
    "exp2": (1.2, 1.2),
    "expm1": (1.25, 1.3),
    "hypot": (0.51, 1.1),
    "log": (0.95, 1.0),
    "log10": (0.9, 0.9),
    "log1p": (1.5, 1.6),
    "log2": (1, 1),
    "logaddexp": (0.51, 2.5),
    "pow": (0.51, 1),
    "rsqrt": (1.5, 1.5),
    "sigmoid": (1.75, 1.8),
    "sin": (1, 1.1),
    "sinh": (1.65, 1.8),
    "tan": (1.3, 1.7),
    "tanh": (1.45, 1.6),
}

ULP = {(name, dtype): bound for name, pair in _BOUNDS.items() for dtype, bound in zip(("f32", "f64"), pair)}
