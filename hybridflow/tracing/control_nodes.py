"""Regions as nodes of the trace around them: choices, and loops while a condition holds.

Both ways of writing control flow end here: functions like ``hf.cond``, and converted statements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hybridflow.compiler.ir.dtypes import int64
from hybridflow.compiler.ir.extents import Extent
from hybridflow.compiler.ir.results import is_token
from hybridflow.compiler.ir.types import TensorType
from hybridflow.compiler.ops import TABLE
from hybridflow.compiler.ops.control_flow_derivatives import counter
from hybridflow.core.context import now
from hybridflow.core.tensor import Tensor
from hybridflow.core.variable import Variable
from hybridflow.eager.dispatch import apply
from hybridflow.eager.operands import as_tensor
from hybridflow.tracing.subtrace import SubTrace, all_operands

_NUMBER = TensorType((), int64)


def emit_cond(which: Tensor, regions: Sequence[SubTrace], outputs: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """The results of the region that ``which`` chooses, each of which has its own ``outputs``, as many and of the same
    types; variables that any of them assigns are assigned."""
    variables = list({id(v): v for region in regions for v in region.assigned}.values())
    if not outputs[0] and not variables and not any(_has_effect(region) for region in regions):
        return []
    outs = [[*branch_outputs, *map(region.value_of, variables)] for region, branch_outputs in zip(regions, outputs)]
    operands = all_operands(list(zip(regions, outs)))
    graphs = tuple(
        [
            r.graph(f"branch{k}", (), operands, branch_outputs)
            for k, (r, branch_outputs) in enumerate(zip(regions, outs))
        ]
    )
    results = list(apply(TABLE["cond"], which, *operands, branches=graphs))
    count = len(outputs[0])
    assign(variables, results[count:])
    return results[:count]


def _has_effect(region: SubTrace) -> bool:
    return any(node.effect.is_observable for node in region.nodes)


def emit_while(
    stage: str,
    starts: Sequence[Tensor],
    body: SubTrace,
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    asking: SubTrace,
    asked: Sequence[Tensor],
    goes_on: Tensor,
) -> list[Tensor]:
    """What a loop carries after its last iteration.  ``starts`` are the values before the first one, ``inputs`` and
    ``outputs`` those of an iteration in ``body``, ``asked`` those that the condition ``goes_on`` is given in
    ``asking``."""
    starts, inputs, outputs, asked = list(starts), list(inputs), list(outputs), list(asked)
    count = len(inputs)
    operands = all_operands([(body, outputs), (asking, [goes_on])])
    graph = body.graph("body", inputs, operands, outputs)
    if counter(graph) is None:  # a derivative asks how many iterations there were
        number = body.carry(_NUMBER, "turns")
        with body.entered():
            following = apply(TABLE["add"], number, as_tensor(1, stage))
        asked.append(asking.carry(_NUMBER, "turns"))
        starts.append(as_tensor(0, stage))
        graph = body.graph("body", [*inputs, number], operands, [*outputs, following])
    asked = [x for x in asked if not is_token(x.type)]  # the condition has no effects
    question = asking.graph("cond", asked, operands, [goes_on])
    return list(apply(TABLE["while"], *starts, *operands, cond=question, body=graph))[:count]


def emit_scan(
    body: SubTrace,
    starts: Sequence[Tensor],
    inputs: Sequence[Tensor],
    sources: Sequence[Tensor],
    slices: Sequence[Tensor],
    outputs: Sequence[Tensor],
    length: Extent,
) -> list[Tensor]:
    """What ``length`` iterations of ``body`` carry in the end, and then the stacks of what it makes besides.
    ``inputs`` are the carries of an iteration, ``slices`` those of the ``sources`` that it is given."""
    if not outputs and not _has_effect(body):
        return []
    operands = all_operands([(body, outputs)])
    graph = body.graph("body", [*inputs, *slices], operands, outputs)
    attrs = {"carries": len(inputs), "stacked": len(sources), "length": length, "reverse": False}
    return list(apply(TABLE["scan"], *starts, *sources, *operands, body=graph, **attrs))


def assign(variables: Iterable[Variable], values: Iterable[Tensor]) -> None:
    """Give variables the values that control flow left in them."""
    trace = now().trace
    assert trace is not None
    for variable, value in zip(variables, values):
        trace.write_variable(variable, value)
