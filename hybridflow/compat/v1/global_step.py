"""The variable that counts steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridflow.compat.export import TensorLike
from hybridflow.compat.v1.graph import default_graph
from hybridflow.compat.v1.initializers import constant_initializer
from hybridflow.compat.v1.variables import GLOBAL, Variable
from hybridflow.compiler.ir import dtypes

if TYPE_CHECKING:
    from hybridflow.compat.v1.session import Session


GLOBAL_STEP = "global_step"


def create_global_step(graph: object = None) -> Variable:
    """The variable that counts steps.  Raises ValueError where there is one."""
    if get_global_step() is not None:
        raise ValueError('"global_step" already exists.')
    start = constant_initializer(0)
    return Variable(lambda: start((), dtypes.int64), False, [GLOBAL, GLOBAL_STEP], name="global_step")


def get_global_step(graph: object = None) -> Any:
    steps = default_graph().get_collection(GLOBAL_STEP)
    if steps:
        return steps[0]
    return next((v for v in default_graph().get_collection(GLOBAL) if v.name == "global_step:0"), None)


def get_or_create_global_step(graph: object = None) -> Any:
    step = get_global_step()
    return create_global_step() if step is None else step


def global_step(sess: Session, global_step_tensor: TensorLike) -> int:
    return int(sess.run(global_step_tensor))


NAMES: dict[str, Any] = {
    "create_global_step": create_global_step,
    "get_global_step": get_global_step,
    "get_or_create_global_step": get_or_create_global_step,
    "global_step": global_step,
}
