"""Modules: objects that hold variables, in themselves and in other modules."""

from __future__ import annotations

__traits__ = ("followed",)

from collections.abc import Iterator
from typing import Any

from hybridflow.array.random import Generator
from hybridflow.core.serialization import snake_case
from hybridflow.core.variable import Variable
from hybridflow.module_parts import by_name, traverse


class Module:
    """Base class of objects with variables: in attributes, and in the lists, tuples, dicts, random generators
    and modules there.

    Subclass it, set attributes and define methods as in any Python class.  Nothing is registered: the variables are
    looked up in the attributes each time.  Modules may be shared, and may refer to each other; each variable is listed
    once.  Attributes are visited in the order of their names.

    >>> class Line(hf.Module):
    ...     def __init__(self):
    ...         self.slope, self.offset = hf.Variable(2.0), hf.Variable(1.0)
    ...     def __call__(self, x):
    ...         return self.slope * x + self.offset
    >>> line = Line()
    >>> line(3.0)
    <Tensor f32[] cpu> 7.0
    >>> list(line.named_variables())
    ['offset', 'slope']
    """

    _name: str | None = None
    _trainable: bool = True

    @property
    def name(self) -> str:
        """What messages and tables call it: the class's name in lower case with underscores, unless it was set."""
        return self._name or snake_case(type(self).__name__)

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name

    @property
    def trainable(self) -> bool:
        """Whether its variables count as trainable; those of modules in it do not either once this is False."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self._trainable = bool(value)

    def named_variables(self) -> dict[str, Variable]:
        """All variables by their path from here.

        Returns:
            A dict: ``{"layers.0.kernel": ...}``.
        """
        return {path: variable for path, variable, _ in traverse(self, Module) if isinstance(variable, Variable)}

    @property
    def variables(self) -> list[Variable]:
        """All variables."""
        return [value for _, value, _ in traverse(self, Module) if isinstance(value, Variable)]

    @property
    def trainable_variables(self) -> list[Variable]:
        """The variables that are trainable, of modules that are."""
        return [v for _, v, free in traverse(self, Module) if isinstance(v, Variable) and free and v.trainable]

    @property
    def non_trainable_variables(self) -> list[Variable]:
        """The other variables: state that optimizers leave alone, and what was frozen."""
        trained = {id(v) for v in self.trainable_variables}
        return [v for v in self.variables if id(v) not in trained]

    @property
    def submodules(self) -> list[Module]:
        """All modules within this one, at any depth."""
        return [m for _, m, _ in traverse(self, Module) if isinstance(m, Module) and m is not self]

    def _named_modules(self) -> Iterator[tuple[str, Module]]:
        """This module, whose path is empty, and all within it by their paths from here."""
        return ((path, m) for path, m, _ in traverse(self, Module) if isinstance(m, Module))

    _has_deferred_build = False  # whether it makes variables when it is first called, and was not

    def _checkpoint_variables(self) -> dict[str, Variable]:
        return self.named_variables()

    def _unbuilt_parts(self) -> dict[str, Any]:
        return {path: module for path, module in self._named_modules() if module._has_deferred_build}

    def _passing(self) -> list[Variable]:
        """The variables of its own that are no weights: the states of random generators."""
        return [held.state for held in vars(self).values() if isinstance(held, Generator)]

    def _attributes(self) -> Iterator[tuple[str, Any]]:
        """What the module holds, in the order in which it is visited."""
        yield from by_name(vars(self))
