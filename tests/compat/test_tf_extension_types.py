"""``tf.experimental.ExtensionType``: typed fields, functions and loops over them, and functions that answer to them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from typing import Any, List, Optional, Tuple, Union  # noqa: UP035  # as programs write them

import pytest

import hybridflow.compat.tf as tf
from tests.support.paths import ROOT


class Masked(tf.experimental.ExtensionType):  # type: ignore[misc]
    values: tf.Tensor
    mask: tf.Tensor

    shape = property(lambda self: self.values.shape)

    def with_default(self, default: Any) -> Any:
        return tf.where(self.mask, self.values, default)

    class Spec:
        def __init__(self, shape: Any, dtype: Any = tf.float32) -> None:
            self.values = tf.TensorSpec(shape, dtype)
            self.mask = tf.TensorSpec(shape, tf.bool)


class Pencil(tf.experimental.ExtensionType):  # type: ignore[misc]
    color: str = "black"
    length: tf.Tensor = 1.0
    marks: Optional[tf.Tensor] = None  # noqa: UP045


class Node(tf.experimental.ExtensionType):  # type: ignore[misc]
    value: tf.Tensor
    children: Tuple[Node, ...] = ()  # noqa: UP006


class Player(tf.experimental.ExtensionType):  # type: ignore[misc]
    name: tf.Tensor
    attributes: Mapping[str, tf.Tensor]


class Toy(tf.experimental.ExtensionType):  # type: ignore[misc]
    name: str
    price: tf.Tensor

    def __init__(self, name: str, price: float, discount: float = 0) -> None:
        self.name = name
        self.price = price * (1 - discount)

    def __validate__(self) -> None:
        assert self.name, "a toy has a name"


def test_fields_are_converted_and_checked() -> None:
    masked = Masked([1, 2, 3], mask=[True, False, True])
    assert masked.values.dtype == tf.int32
    assert masked.with_default(0).numpy().tolist() == [1, 0, 3]
    assert repr(Pencil(length=0.5)).startswith("Pencil(color='black', length=<tf.Tensor: shape=(), dtype=float32")
    assert Pencil().marks is None
    assert Pencil(marks=[1]).marks.numpy().tolist() == [1]
    assert Node(3, [Node(5), Node(2)]).children[1].value.numpy() == 2
    assert abs(float(Toy("ball", 5.0, discount=0.2).price) - 4) < 1e-6
    with pytest.raises(TypeError, match="mask: expected a Tensor, got 'NoneType'"):
        Masked([1], None)
    with pytest.raises(TypeError, match="color: expected a str"):
        Pencil(color=3)
    with pytest.raises(TypeError, match="children: expected a tuple"):
        Node(1, 2)
    with pytest.raises(TypeError, match="missing required arguments: 'mask'"):
        Masked([1])
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        Masked([1], [True], other=1)
    with pytest.raises(AssertionError, match="a toy has a name"):
        Toy("", 1.0)


def test_fields_do_not_change() -> None:
    masked = Masked([1, 2], [True, False])
    with pytest.raises(AttributeError, match="Cannot mutate attribute `mask`"):
        masked.mask = [True, True]
    with pytest.raises(AttributeError, match="Cannot mutate attribute `mask`"):
        del masked.mask


def test_equality() -> None:
    a, b = Masked([1, 2], [True, False]), Masked([1, 3], [True, False])
    assert bool(a == a)
    assert not bool(a == b)
    assert bool(a != b)
    assert not bool(a == Masked([[1, 2]], [[True, False]]))
    assert not a == a.values  # noqa: SIM201  # the operator under test


def test_functions_take_them_field_by_field() -> None:
    @tf.function
    def rename(player: Any) -> Any:
        return Player("<anonymous>", player.attributes)

    renamed = rename(Player("Anne", {"height": 8.3}))
    assert (renamed.name.numpy(), float(renamed.attributes["height"])) == (b"<anonymous>", pytest.approx(8.3))
    assert list(rename(Player("Chuck", {"jump": 5.3})).attributes) == ["jump"]

    @tf.function(input_signature=[Masked.Spec([None])])
    def doubled(x: Any) -> Any:
        return Masked(x.values * 2, x.mask)

    assert doubled(Masked([1.0, 2.0], [True, False])).values.numpy().tolist() == [2, 4]
    loop = tf.while_loop(lambda k, _: k < 3, lambda k, x: (k + 1, Masked(x.values + 1, x.mask)), [0, loop_start()])
    assert loop[1].values.numpy().tolist() == [3, 4]
    rows = tf.data.Dataset.from_tensor_slices(Masked([[1, 2], [3, 4]], [[True, False], [True, True]]))
    assert [type(row).__name__ + str(row.with_default(0).numpy().tolist()) for row in rows] == [
        "Masked[1, 0]",
        "Masked[3, 4]",
    ]


def loop_start() -> Any:
    return Masked([0.0, 1.0], [True, False])


def test_specs() -> None:
    spec = tf.type_spec_from_value(Player("Anne", {"height": 8.3}))
    assert spec.name == tf.TensorSpec((), tf.string)
    assert spec.attributes == {"height": tf.TensorSpec((), tf.float32)}
    made = Masked.Spec([2])
    assert isinstance(made, Masked.Spec)
    assert not isinstance(loop_start(), Masked.Spec)
    assert "Masked.Spec(values=TensorSpec(shape=(2,)" in repr(made)
    assert Pencil.Spec(length=tf.TensorSpec([])).color == "black"


def test_dispatch() -> None:
    @tf.experimental.dispatch_for_api(tf.stack)
    def stacked(values: List[Union[Masked, tf.Tensor]], axis: int = 0) -> Any:  # noqa: UP006
        whole = [v if isinstance(v, Masked) else Masked(v, tf.ones_like(v, tf.bool)) for v in values]
        return Masked(tf.stack([v.values for v in whole], axis), tf.stack([v.mask for v in whole], axis))

    @tf.experimental.dispatch_for_unary_elementwise_apis(Masked)
    def of_one(function: Any, x: Any) -> Any:
        return Masked(function(x.values), x.mask)

    @tf.experimental.dispatch_for_binary_elementwise_apis(Masked, Masked)
    def of_two(function: Any, x: Any, y: Any) -> Any:
        return Masked(function(x.values, y.values), x.mask & y.mask)

    x, y = Masked([1, -2], [True, False]), Masked([[4], [5]], [[True], [False]])
    try:
        both = tf.stack([x, tf.constant([7, 8]), x])
        assert both.mask.numpy().tolist() == [[True, False], [True, True], [True, False]]
        assert tf.abs(x).values.numpy().tolist() == [1, 2]
        assert tf.ones_like(x, dtype=tf.float32).values.dtype == tf.float32
        assert tf.math.add(x, y).values.numpy().tolist() == [[5, 2], [6, 3]]
        assert tf.add(x, y).mask.numpy().tolist() == [[True, False], [False, False]]
        assert tf.abs(tf.constant(-1)).numpy() == 1
        assert tf.stack([1, 2]).numpy().tolist() == [1, 2]
    finally:
        for handler in (stacked, of_one, of_two):
            tf.experimental.unregister_dispatch_for(handler)
    with pytest.raises(TypeError):
        tf.abs(x)
    with pytest.raises(ValueError, match="no public function"):
        tf.experimental.dispatch_for_api(print, {"x": Masked})(print)
    with pytest.raises(ValueError, match="was not registered"):
        tf.experimental.unregister_dispatch_for(stacked)


DISPATCH_AND_GRAPHS = """
import hybridflow.compat.tf as tf
from tests.support.paths import ROOT
from hybridflow.compat.tf import names

class Boxed(tf.experimental.ExtensionType):
    value: tf.Tensor

@tf.experimental.dispatch_for_unary_elementwise_apis(Boxed)
def of_one(function, x):
    return Boxed(function(x.value))

def show():
    print(tf.abs(Boxed(-1)).value.numpy(), tf.math.abs(Boxed(-2)).value.numpy(), tf.abs(-3).numpy())
    print(*[tf.abs is names.function_of("abs"), tf.math.abs is names.function_of("math.abs")])

show()
tf.compat.v1.Session  # from now on functions record where a graph is open
show()
with tf.Graph().as_default():
    x = tf.abs(tf.compat.v1.placeholder(tf.float32))
    print(x.op.type)

@tf.experimental.dispatch_for_api(tf.nn.softmax)
def softmax(logits: Boxed):
    return Boxed(tf.nn.softmax(logits.value))

print(tf.nn.softmax(Boxed([5.0])).value.numpy(), tf.nn.softmax is names.function_of("nn.softmax"))
"""


def test_handlers_stay_when_functions_come_to_record() -> None:
    done = subprocess.run([sys.executable, "-c", DISPATCH_AND_GRAPHS], capture_output=True, text=True, cwd=ROOT)
    expected = "1 2 3\nTrue True\n1 2 3\nTrue True\nAbs\n[1.] True\n"
    assert done.stdout == expected, done.stderr


def test_reserved_names() -> None:
    with pytest.raises(ValueError, match="Field 'Spec' is reserved"):
        type("Bad", (tf.experimental.ExtensionType,), {"__annotations__": {"Spec": int}})
    with pytest.raises(TypeError, match="a class to inherit from"):
        tf.experimental.ExtensionType()
