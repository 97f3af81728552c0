"""How objects take part in checkpoints: protocols, so that the format of the files knows no layer, optimizer or
dataset.

``Stateful`` is for everybody.  The others are for objects of this library, whose variables are arrays of a file each,
under paths of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from hybridflow.core.variable import Variable


@runtime_checkable
class Stateful(Protocol):
    """What has a state of nested dicts, lists, tuples, tensors, arrays, numbers and texts.

    A checkpoint keeps what ``state_dict`` returns, and gives ``load_state_dict`` the same again: arrays of NumPy stay
    such, and keys of dicts keep their types.
    """

    def state_dict(self) -> Any:
        raise NotImplementedError

    def load_state_dict(self, state_dict: object, /) -> Any:
        raise NotImplementedError


@runtime_checkable
class OwnsVariables(Protocol):
    """What has variables, each under a path below that of the object."""

    def _checkpoint_variables(self) -> Mapping[str, Variable]:
        raise NotImplementedError


@runtime_checkable
class OwnsSlots(Protocol):
    """What keeps variables (slots) for variables of others, as optimizers do: their paths are made of the others'."""

    def _checkpoint_slots(self) -> Iterator[tuple[Variable, Mapping[str, Variable]]]:
        """Each variable that has slots, in the order in which these were made, with its slots by their kinds."""
        raise NotImplementedError

    def _create_checkpoint_slots(self, variables: Iterable[Variable]) -> Callable[[], None]:
        """Make the slots for these variables, where there are none; what is returned takes the new ones back."""
        raise NotImplementedError


class Unbuilt(Protocol):
    """What makes its variables later, and then calls ``_when_built``."""

    _when_built: Callable[[], None] | None


@runtime_checkable
class OwnsUnbuilt(Protocol):
    """What is made of parts some of which may have no variables yet."""

    def _unbuilt_parts(self) -> Mapping[str, Unbuilt]:
        """Those parts by path; that of the object itself is empty."""
        raise NotImplementedError
