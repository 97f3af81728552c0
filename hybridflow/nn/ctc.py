"""The loss of connectionist temporal classification: labels of a sequence whose places in time nobody knows."""

from __future__ import annotations

from hybridflow.array.creation import arange, full_like
from hybridflow.array.elementwise import equal, less, logaddexp, logical_and, maximum, not_equal, where
from hybridflow.array.indexing import take_along_axis
from hybridflow.array.shapes import broadcast_to, pad, permute_dims, reshape, stack
from hybridflow.compiler.ir import dtypes
from hybridflow.control.scan import foldl
from hybridflow.core.promotion import default_int
from hybridflow.core.tensor import Tensor
from hybridflow.core.type_aliases import ArrayLike
from hybridflow.eager.operands import as_tensor, cast, float_operand
from hybridflow.eager.public_op import operation
from hybridflow.errors import ArgumentError, DTypeError, ShapeError
from hybridflow.nn.functional import log_softmax

_STAGE = "ctc_loss"
_NEVER = -1e30  # the logarithm of 0: finite, so that derivatives where nothing is possible are numbers
_IMPOSSIBLE = -1e29


@operation
def ctc_loss(
    labels: ArrayLike,
    logits: ArrayLike,
    label_length: ArrayLike,
    logit_length: ArrayLike,
    logits_time_major: bool = True,
    blank_index: int = 0,
) -> Tensor:
    """CTC loss (connectionist temporal classification): ``-log`` of the probability that a sequence spells its labels,
    one number for each sequence of a batch.

    ``labels`` are class numbers, (batch, places); ``logits`` (steps, batch, classes), or (batch, steps, classes) unless
    ``logits_time_major``; of sequence i the first ``label_length[i]`` labels and ``logit_length[i]`` steps count.  A
    step says a class or nothing, ``blank_index`` (a negative one counts from the last class); what neighbouring steps
    say alike is one label, unless nothing was said between.  Where too few steps are there for the labels the loss is
    infinite, and its gradient 0.  The loss is float32 where logits are narrower.

    Raises ShapeError, DTypeError, ArgumentError for a ``blank_index`` that is no class, and IndexRangeError when it is
    computed for labels that are none.

    Source: Graves and others, "Connectionist Temporal Classification", 2006.

    Args:
        labels: class numbers, ``(batch, places)``.
        logits: ``(steps, batch, classes)``.
        label_length: how many labels count, ``(batch,)``.
        logit_length: how many steps count, ``(batch,)``.
        logits_time_major: whether steps come before the batch.
        blank_index: the class that says nothing.

    Returns:
        A float tensor of shape ``(batch,)``.

    >>> hf.nn.ctc_loss([[1]], hf.zeros((2, 1, 2)), [1], [2])  # 3 of 4 ways: 1-, -1, 11
    <Tensor f32[1] cpu> [0.2876821]
    """
    scores = float_operand(logits, _STAGE)
    scores = cast(scores, dtypes.compute_dtype(scores.dtype))
    numbers, places, steps = (_integers(x, what) for x, what in zip((labels, label_length, logit_length), _OPERANDS))
    _check_shapes(scores, numbers, places, steps, logits_time_major)
    if not logits_time_major:
        scores = permute_dims(scores, (1, 0, 2))
    classes = scores.shape[-1]
    blank = blank_index + classes if blank_index < 0 else blank_index
    if not 0 <= blank < classes:
        raise ArgumentError(_STAGE, f"blank_index is {blank_index}; there are {classes} classes.")
    numbers = where(less(arange(numbers.shape[1]), places[:, None]), numbers, blank)
    numbers = where(less(numbers, 0), classes, numbers)  # which is out of range: labels do not count from the end
    return _loss(maximum(log_softmax(scores, -1), _NEVER), numbers, places, steps, blank)


_OPERANDS = "labels", "label_length", "logit_length"


def _integers(x: ArrayLike, what: str) -> Tensor:
    value = as_tensor(x, _STAGE)
    if not dtypes.is_integer(value.dtype):
        raise DTypeError(_STAGE, f"{what} is {value.type}; it must be of integers.")
    return cast(value, default_int)


def _check_shapes(scores: Tensor, numbers: Tensor, places: Tensor, steps: Tensor, by_time: bool) -> None:
    if scores.ndim != 3 or numbers.ndim != 2:
        order = "steps, batch" if by_time else "batch, steps"
        raise ShapeError(
            _STAGE, f"logits are {scores.type} and labels {numbers.type}; they must be ({order}, classes) and "
            "(batch, places)."
        )  # fmt: skip
    batch = scores.shape[1 if by_time else 0]
    if numbers.shape[0] != batch or places.shape != (batch,) or steps.shape != (batch,):
        raise ShapeError(
            _STAGE, f"labels {numbers.type}, label_length {places.type} and logit_length {steps.type} must all be for "
            f"the {batch} sequences of the logits {scores.type}."
        )  # fmt: skip


def _loss(scores: Tensor, numbers: Tensor, places: Tensor, steps: Tensor, blank: int) -> Tensor:
    """The loss, from logarithms of probabilities (steps, batch, classes).

    A state is how much of the labels was said: state 2k is the blank behind k labels, and 2k + 1 label k.
    """
    said = _states(numbers, blank)
    skips = logical_and(not_equal(said, blank), not_equal(said, _later(said, 2, blank)))
    count = scores.shape[0]
    label_scores = take_along_axis(scores, broadcast_to(said, (count, *said.shape)), axis=2)

    def step(before: Tensor, now: tuple[Tensor, Tensor]) -> Tensor:
        number, log_said = now
        ways = logaddexp(before, _later(before, 1, _NEVER))
        ways = logaddexp(ways, where(skips, _later(before, 2, _NEVER), _NEVER))
        return where(less(number, steps)[:, None], maximum(ways + log_said, _NEVER), before)

    first = where(equal(arange(said.shape[1]), 0), 0.0, _NEVER)
    last = foldl(step, (arange(count), label_scores), cast(broadcast_to(first, said.shape), scores.dtype))
    ends = 2 * places[:, None]
    labelled = take_along_axis(last, maximum(ends - 1, 0), axis=1)
    total = logaddexp(take_along_axis(last, ends, axis=1), where(equal(ends, 0), _NEVER, labelled))[:, 0]
    return where(less(total, _IMPOSSIBLE), float("inf"), -total)


def _states(numbers: Tensor, blank: int) -> Tensor:
    """The class that each state says: blanks with the labels between."""
    batch, places = numbers.shape
    blanks = full_like(numbers, blank)
    pairs = reshape(stack([blanks, numbers], axis=2), (batch, 2 * places))
    return pad(pairs, [(0, 0), (0, 1)], constant_values=blank)


def _later(x: Tensor, by: int, value: ArrayLike) -> Tensor:
    """``x`` with its columns moved by some to the right, and ``value`` in the first ones."""
    return pad(x, [(0, 0), (by, 0)], constant_values=value)[:, : x.shape[1]]
