"""Dataclasses that are made quickly are those of the standard library, as far as anybody sees."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hybridflow import quick_dataclasses

pytestmark = pytest.mark.code


class NoFields:
    """None at all."""


class One:
    value: Any


class Several:
    first: int
    second: Any = ("a", 1.5)
    third: list[int] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        if self.first < 0:
            raise ValueError("first is negative")

    @property
    def total(self) -> int:
        return self.first + len(self.third)


class Named:
    name: str

    def __repr__(self) -> str:
        return f"<{self.name}>"


def made(decorator: Callable[..., Any], model: type, **options: Any) -> Any:
    """A class like the model, made by the decorator."""
    own = {key: value for key, value in vars(model).items() if key not in ("__dict__", "__weakref__")}
    return decorator(frozen=True, **options)(type(model.__name__, (), own))


@quick_dataclasses.dataclass(frozen=True)
class Kept:
    x: int
    y: Any = None


@quick_dataclasses.dataclass(frozen=True)
class Derived(Kept):
    z: int = 3


CALLS: list[tuple[type, list[tuple[Any, ...]]]] = [
    (NoFields, [(), (1,)]),
    (One, [(1,), (1.0,), ((1, 2),), ([],), ()]),
    (Several, [(1,), (2, "b"), (2, "b", [1]), (-1,), (), (1, 2, 3, 4)]),
    (Named, [("n",), ("m",)]),
]


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return type(error), str(error).rpartition(".")[2]


@pytest.mark.parametrize(("model", "calls"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_objects_are_those_of_dataclasses(model: type, calls: list[tuple[Any, ...]]) -> None:
    quick, plain = made(quick_dataclasses.dataclass, model), made(dataclasses.dataclass, model)
    assert str(inspect.signature(quick)) == str(inspect.signature(plain))
    assert [f.name for f in dataclasses.fields(quick)] == [f.name for f in dataclasses.fields(plain)]
    objects = []
    for arguments in calls:
        one, other = outcome(lambda a=arguments: quick(*a)), outcome(lambda a=arguments: plain(*a))
        if isinstance(other, tuple):
            assert one == other
            continue
        objects.append((one, other))
        assert repr(one) == repr(other).replace(plain.__qualname__, quick.__qualname__)
        assert outcome(lambda x=one: hash(x) == hash(quick(*vars(x).values()))) == outcome(
            lambda x=other: hash(x) == hash(plain(*vars(x).values()))
        )
        for change in (lambda x: setattr(x, "value", 1), lambda x: delattr(x, "first")):
            with pytest.raises(dataclasses.FrozenInstanceError):
                change(one)
    for one, other in objects:
        assert [one == x for x, _ in objects] == [other == y for _, y in objects]
        assert one != other and one != 1
        for field in dataclasses.fields(plain):
            changed = [dataclasses.replace(x, **{field.name: 7}) for x in (one, other)]
            assert repr(changed[0]) == repr(changed[1])


def test_what_has_no_equality_is_itself() -> None:
    quick = made(quick_dataclasses.dataclass, One, eq=False)
    assert quick(1) != quick(1) and len({quick(1), quick(1)}) == 2


def test_they_are_inherited_pickled_and_contain_themselves() -> None:
    x = Derived(1, [2])
    assert pickle.loads(pickle.dumps(x)) == x and x != Kept(1, [2]) and Derived(1, 2, 4).z == 4
    assert {Kept(1, 2): "a"}[Kept(1, 2)] == "a" and hash(Kept(1, 2)) == hash((1, 2))
    x.y.append(x)
    assert repr(x) == "Derived(x=1, y=[2, ...], z=3)"


def test_what_is_not_plain_is_refused() -> None:
    class Own:
        x: int

        def __eq__(self, other: object) -> bool:
            return True

    class Hidden:
        x: int = dataclasses.field(default=1, compare=False)

    for model in (Own, Hidden):
        with pytest.raises(AssertionError):
            quick_dataclasses.dataclass(frozen=True)(model)
