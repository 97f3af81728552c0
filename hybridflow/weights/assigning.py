"""Arrays of a file given to the variables of a model: all of them are checked before the first is changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridflow.array.creation import asarray
from hybridflow.checkpoint import Report
from hybridflow.core.context import suspended
from hybridflow.core.variable import Variable
from hybridflow.errors import CheckpointError
from hybridflow.weights.arrays import STAGE

if TYPE_CHECKING:
    from hybridflow.layers.layer import Layer


class Assignment(NamedTuple):
    """An array for a variable, made of arrays of the file.  ``shape`` is what ``load`` returns; ``turned`` says how it
    differs from what is in the file."""

    path: str
    variable: Variable
    sources: tuple[str, ...]
    shape: tuple[int, ...]
    load: Callable[[], np.ndarray]
    turned: str = ""


class WeightsReport(Report):
    """What was assigned, by names.

    Args:
        restored: names of variables that were assigned.
        missing: names of variables that the file had nothing for.
        unused: names of the file that no variable took.
        turned: how an array was rearranged, by the names of variables: "transposed (1, 0)".
        mismatched: names of variables that the file has in another shape, which were left alone.

    >>> hf.checkpoint.Report(["kernel"], [], ["optimizer/0"])
    <Report 1 restored; unused of the file: optimizer/0>
    """

    def __init__(
        self,
        restored: list[str],
        missing: list[str],
        unused: list[str],
        turned: dict[str, str],
        mismatched: list[str],
    ) -> None:
        super().__init__(restored, missing, unused)
        self.turned, self.mismatched = turned, mismatched

    def _describe(self) -> str:
        parts = [super()._describe()]
        if self.turned:
            parts.append(f"{len(self.turned)} rearranged")
        if self.mismatched:
            parts.append(f"of another shape: {', '.join(self.mismatched[:5])}")
        return "; ".join(parts)


def assign(
    path: str, wanted: Sequence[str], assignments: Iterable[Assignment], unused: Sequence[str], skip_mismatch: bool
) -> WeightsReport:
    """Assign to all variables, or to none.

    ``wanted`` are the paths of all variables.  Raises CheckpointError where the file lacks one of them, has more than
    they take, or has another shape; with ``skip_mismatch`` these are left alone.
    """
    fitting: list[Assignment] = []
    wrong: list[Assignment] = []
    for one in assignments:
        (fitting if one.shape == tuple(one.variable.shape) else wrong).append(one)
    known = {one.path for one in (*fitting, *wrong)}
    report = WeightsReport(
        sorted(one.path for one in fitting),
        sorted(set(wanted) - known),
        sorted(unused),
        {one.path: one.turned for one in fitting if one.turned},
        sorted(one.path for one in wrong),
    )
    if not skip_mismatch:
        if wrong:
            one = wrong[0]
            raise CheckpointError(
                STAGE,
                f"{one.sources[0]} of {path} is {one.shape} for {one.path}, which is {tuple(one.variable.shape)} here. "
                "Give skip_mismatch=True to leave such alone.",
            )
        if report.missing or report.unused:
            raise CheckpointError(
                STAGE, f"{path} is of another model: {report!r}. Give rename=..., or skip_mismatch=True for a part."
            )
    if not fitting and wanted:
        raise CheckpointError(STAGE, f"nothing in {path} is for this model: {report!r}.")
    arrays = [_checked(one, path) for one in fitting]
    with suspended():
        for one, array in zip(fitting, arrays):
            one.variable.assign(asarray(array, dtype=one.variable.dtype))
    return report


def _checked(one: Assignment, path: str) -> np.ndarray:
    array = one.load()
    kept, wanted = array.dtype, one.variable.dtype
    if (kept.kind in "biu") != (np.dtype(wanted).kind in "biu"):
        raise CheckpointError(STAGE, f"{one.sources[0]} of {path} is {kept} for {one.path}, which is {wanted} here.")
    return array


def direct_variables(module: Layer) -> list[tuple[str, Variable]]:
    """The variables of a module's own, in their order, without the states of its random generators."""
    passing = {id(variable) for variable in module._passing()}
    return [(n, v) for n, v in module._attributes() if isinstance(v, Variable) and id(v) not in passing]
