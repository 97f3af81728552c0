"""Nested arguments and results: flattened to leaves and a hashable structure, and put together again.

Containers are list, tuple, the shape of a tensor, namedtuple, dict, OrderedDict, defaultdict, and dataclass instances
that hold nothing but their fields.  Everything else, None included, is a leaf.  Leaves come in the order of sorted
keys, but the order in which a dict holds its keys is part of the structure: code that is given the dict can see it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from hybridflow.core.shape import Shape
from hybridflow.errors import ArgumentError

T = TypeVar("T")
# The labels and the children of a container; None for a leaf.
Parts = Callable[[Any], "tuple[tuple[Any, ...], Iterable[Any]] | None"]


class Structure:
    """The shape of a nested value: hashable, equal for values that unflatten alike.

    ``kind`` is the container's type, or None for a leaf; ``labels`` are the sorted dict keys or the field names of the
    children; ``order`` is the order in which a dict or an instance holds them; ``factory`` is a defaultdict's.
    """

    __slots__ = ("_hash", "children", "factory", "kind", "labels", "leaves", "order")

    def __init__(
        self,
        kind: type | None,
        labels: tuple[Any, ...] = (),
        children: tuple[Structure, ...] = (),
        order: tuple[Any, ...] = (),
        factory: object = None,
    ) -> None:
        self.kind, self.labels, self.children, self.order = kind, labels, children, order
        self.factory = factory
        self.leaves: int = sum([child.leaves for child in children]) if kind is not None else 1
        self._hash = hash((kind, order or labels, children))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Structure) or self._hash != other._hash:
            return False
        return self.same_container(other) and self.children == other.children

    def same_container(self, other: Structure) -> bool:
        """Whether the outermost containers agree, whatever the children are; the keys 1 and True differ."""
        if self.kind is not other.kind or len(self.children) != len(other.children):
            return False
        if self.factory is not other.factory:
            return False
        return self.same_labels(other) and _same(self.order, other.order)

    def same_labels(self, other: Structure) -> bool:
        """Whether the outermost containers have the same keys or fields."""
        return _same(self.labels, other.labels)

    def same_entries(self, other: Structure) -> bool:
        """Whether the two are equal but for the order of keys, at any depth."""
        if self.kind is not other.kind or not self.same_labels(other):
            return False
        if len(self.children) != len(other.children) or self.factory is not other.factory:
            return False
        return all(a.same_entries(b) for a, b in zip(self.children, other.children))

    def __repr__(self) -> str:
        if self.kind is None:
            return "*"
        children = list(map(repr, self.children))
        if self.labels:
            by_key = dict(zip(self.labels, children))
            children = [f"{key!s}: {by_key[key]}" for key in self.order or self.labels]
        return f"{self.kind.__name__}({', '.join(children)})"


def _same(a: Any, b: Any) -> bool:
    """Whether two keys, or tuples of them, are one value to whoever looks at them: 1 is not True, nor 0.0 -0.0.

    Keys that cannot be compared are different ones."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) in (float, complex):
        return repr(a) == repr(b)
    try:
        return bool(a == b)
    except Exception:
        return False


LEAF = Structure(None)


class Node(NamedTuple):
    """A class of values that are no containers of Python: their parts, None for a leaf, and what makes one of them."""

    parts: Parts
    build: Callable[..., Any]


nodes: dict[type, Node] = {}
_SIMPLE = {type(None), bool, int, float, complex, str, bytes}
MAPPINGS = (dict, OrderedDict, defaultdict)


def is_namedtuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _is_plain_dataclass(value: Any) -> bool:
    """Whether the fields are all there is to the instance, so that it can be rebuilt from them."""
    held = getattr(value, "__dict__", {})
    return held.keys() <= {f.name for f in dataclasses.fields(value)}


def _sorted_keys(mapping: dict[Any, Any]) -> list[Any]:
    try:
        return sorted(mapping)
    except TypeError:  # keys of several types: any order will do that does not depend on insertion
        return sorted(mapping, key=lambda k: (type(k).__name__, repr(k)))


def declare_leaf(kind: type[T]) -> type[T]:
    """Say that instances of a class are leaves, which spares each of them the search for what else they could be."""
    _SIMPLE.add(kind)
    return kind


def parts_of(value: Any) -> tuple[tuple[Any, ...], Iterable[Any]] | None:
    """Labels and children of a container; None for a leaf."""
    kind = type(value)
    if kind in _SIMPLE:
        return None
    if kind is tuple or kind is list or kind is Shape:
        return (), value
    if kind in nodes:
        return nodes[kind].parts(value)
    if kind in MAPPINGS:
        keys = _sorted_keys(value)
        return tuple(keys), [value[k] for k in keys]
    if is_namedtuple(value) and not getattr(value, "__dict__", None):  # of a subclass that adds attributes
        return value._fields, value
    if hasattr(kind, "__dataclass_fields__") and _is_plain_dataclass(value):
        names = tuple(f.name for f in dataclasses.fields(value))
        try:
            return names, [getattr(value, name) for name in names]
        except AttributeError:  # a field was deleted, or never set
            return None
    return None


def is_container(value: object) -> bool:
    """Whether a value is nested: it has children of its own."""
    return parts_of(value) is not None


def changeable_parts(value: object, opens: Parts = parts_of) -> dict[int, Any]:
    """The containers inside of ``value`` that can be changed in place, by id.  Raises ArgumentError for what contains
    itself."""
    result: dict[int, Any] = {}
    waiting = [] if (held := opens(value)) is None else list(held[1])
    while waiting:
        part = waiting.pop()
        held = opens(part)
        if held is None or id(part) in result:
            continue
        if not isinstance(part, tuple) and type(part) not in nodes:
            result[id(part)] = part
        waiting.extend(held[1])  # where += would ask the part, as a Shape has a + of its own
    return result


def children(value: object, root: str) -> list[tuple[str, Any]]:
    """The children of a container called ``root``, each with its path."""
    parts = parts_of(value)
    assert parts is not None, "a leaf has no children"
    held = list(parts[1])
    stand_in = Structure(type(value), parts[0], (LEAF,) * len(held))
    return list(zip(child_paths(stand_in, root), held))


def _flatten(value: object, leaves: list[Any], whole: Collection[int]) -> Structure:
    parts = None if whole and id(value) in whole else parts_of(value)
    if parts is None:
        leaves.append(value)
        return LEAF
    labels, children = parts
    return structure_of(value, labels, [_flatten(child, leaves, whole) for child in children])


def structure_of(value: Any, labels: tuple[Any, ...], children: Iterable[Structure]) -> Structure:
    """The structure of a container whose children have these."""
    kind = type(value)
    factory = value.default_factory if kind is defaultdict else None
    return Structure(kind, labels, tuple(children), _order(value), factory)


def _order(value: Any) -> tuple[Any, ...]:
    """The order in which a dict or the dict of an instance holds its entries."""
    if type(value) in MAPPINGS:
        return tuple(value)
    if type(value) in (list, tuple, Shape):
        return ()
    return tuple(getattr(value, "__dict__", ()))


def flatten(value: object, whole: Collection[int] = ()) -> tuple[list[Any], Structure]:
    """The leaves of ``value`` in a fixed order, and its structure; containers whose ids are ``whole`` are leaves.
    Raises ArgumentError for what contains itself."""
    leaves: list[Any] = []
    try:
        return leaves, _flatten(value, leaves, whole)
    except RecursionError:
        raise endless(value) from None


def endless(value: object) -> ArgumentError:
    """The error for a value that is nested too deep to follow."""
    return ArgumentError("structure", _why_endless(value))


def _why_endless(value: object) -> str:
    """What is wrong with a value that is nested too deep to follow."""
    inside: dict[int, Any] = {}  # the containers around the present place
    level: list[Iterator[Any]] = [iter((value,))]
    while level:
        for child in level[-1]:
            if id(child) in inside:
                return f"a {type(child).__name__} contains itself. Pass values that end somewhere."
            parts = parts_of(child)
            if parts is not None:
                inside[id(child)] = child
                level.append(iter(parts[1]))
                break
        else:
            level.pop()
            if inside:
                inside.popitem()
    return f"a {type(value).__name__} is nested deeper than Python's recursion limit allows. Pass its parts."


def _unflatten(structure: Structure, leaves: Iterator[Any]) -> Any:
    kind = structure.kind
    if kind is None:
        return next(leaves)
    children = [_unflatten(child, leaves) for child in structure.children]
    if kind is list:
        return children
    if kind is tuple:
        return tuple(children)
    if kind in nodes:
        return nodes[kind].build(*children)
    by_key = dict(zip(structure.labels, children))
    if kind in MAPPINGS:
        entries = {key: by_key[key] for key in structure.order}
        make: Any = functools.partial(defaultdict, structure.factory) if kind is defaultdict else kind
        return make(entries)
    if issubclass(kind, tuple):
        return tuple.__new__(kind, children)  # its own ``__new__`` has made these values, and may do more, or raise
    value = object.__new__(kind)
    for name in (*structure.order, *(name for name in structure.labels if name not in structure.order)):
        object.__setattr__(value, name, by_key[name])  # frozen dataclasses refuse setattr
    return value


def unflatten(structure: Structure, leaves: Iterable[Any]) -> Any:
    """The value of that structure whose leaves are ``leaves``."""
    if structure is LEAF:
        (leaf,) = leaves
        return leaf
    return _unflatten(structure, iter(leaves))


def child_paths(structure: Structure, root: str) -> list[str]:
    """How the children of a container called ``root`` are reached."""
    if not structure.labels:
        return [f"{root}[{position}]" for position in range(len(structure.children))]
    if structure.kind in MAPPINGS:
        return [f'{root}["{k}"]' if isinstance(k, str) else f"{root}[{k!r}]" for k in structure.labels]
    return [f"{root}.{label}" for label in structure.labels]


def paths(structure: Structure, root: str) -> list[str]:
    """How each leaf is reached from a variable called ``root``: ``batch["x"][0]``."""
    if structure.kind is None:
        return [root]
    steps = zip(child_paths(structure, root), structure.children)
    return [path for name, child in steps for path in paths(child, name)]


def ordered_like(structure: Structure, value: object) -> Structure:
    """``structure``, which ``value`` has down to its leaves, with its dicts in the order of those in ``value``."""
    parts = None if structure.kind is None else parts_of(value)
    if parts is None:
        return structure
    children = tuple(map(ordered_like, structure.children, parts[1]))
    return Structure(structure.kind, structure.labels, children, _order(value), structure.factory)


def flatten_up_to(structure: Structure, value: object, root: str) -> list[tuple[str, Any]]:
    """The parts of ``value`` at the leaves of ``structure``, each with its path.

    Raises ValueError, saying where, if ``value`` lacks that structure.
    """
    if structure.kind is None:
        return [(root, value)]
    parts = parts_of(value)
    if parts is None or type(value) is not structure.kind or not _same(parts[0], structure.labels):
        raise ValueError(f"{root} is a {type(value).__name__} where {structure!r} is expected")
    children = list(parts[1])
    if len(children) != len(structure.children):
        raise ValueError(f"{root} has {len(children)} entries where {len(structure.children)} are expected")
    steps = zip(structure.children, children, child_paths(structure, root))
    return [part for child, item, name in steps for part in flatten_up_to(child, item, name)]


def instance_dict(value: object) -> dict[str, Any] | None:
    """The dict of an instance's attributes; it may be of a class of the user's (``self.__dict__ = self``)."""
    kind = type(value)
    has_own = any("__dict__" in base.__dict__ for base in kind.__mro__)
    if not has_own and any(isinstance(base.__dict__.get("__getattr__"), types.FunctionType) for base in kind.__mro__):
        return None  # the user's code would be asked
    attributes = getattr(value, "__dict__", None)
    return attributes if isinstance(attributes, dict) else None
