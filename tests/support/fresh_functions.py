"""Public functions as they are before their first call: without plans, wholes, or counts of calls."""

from __future__ import annotations

import sys

import hybridflow as hf
from hybridflow.array import elementwise
from hybridflow.eager.public_op import PublicOp
from hybridflow.eager.taped_calls import TapedCalls


def public_functions() -> list[PublicOp]:
    """All that may have plans or wholes, those behind operators and methods included."""
    rooms = [vars(module) for name, module in sys.modules.items() if name.startswith("hybridflow")]
    rooms += [*map(vars, hf.random.Generator.__mro__[:-1]), elementwise._taped]
    return list({id(f): f for room in rooms for f in list(room.values()) if isinstance(f, PublicOp)}.values())


def forget_calls() -> None:
    """Let no function know what it was called with before: which calls have a plan or a whole, and which come next,
    depends on that."""
    for function in public_functions():
        function._dispatch, function._taped = (), ()
        function._tier_up.clear()
        function._plans = {}
        function._taped_calls = TapedCalls(function)
