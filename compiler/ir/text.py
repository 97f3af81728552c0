"""The text form of graphs: one line per node, made to be read, compared, dumped and parsed back.

    graph step(%0: f32[2,n] "x", %1: f32[3] "w" state) {
      %2: f32[2,3] = broadcast(%1) {axes=(1,), shape=(2, 3)}  # train.py:3
      return %2, %0
      update %1 = %2
    }

Parsing what was printed gives the same graph, to the bit: floats print with all their digits, NaNs that carry a
payload and larger constants print as hexadecimal bytes.  The parser believes the types that it reads; whether they
are right is the verifier's question.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hybridflow.compiler.ir import dtypes, extents
from hybridflow.compiler.ir.attributes import float_bits
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.graph import Graph, Literal, Node, Role, parameter
from hybridflow.compiler.ir.types import TensorType
from hybridflow.errors import ParseError

_READABLE = 16  # elements of a constant that print as numbers; more print as bytes
_NAN_BITS = float_bits(float("nan"))
_WORD = re.compile(r"[^\W\d]\w*")
_WORDS = {"True": True, "False": False, "None": None}
_RESERVED = frozenset({*_WORDS, *dtypes.FROM_SHORT, "nan", "inf"})


# Printing


def _name(text: str) -> str:
    return text if _WORD.fullmatch(text) and text not in _RESERVED else json.dumps(text)


def _symbol_text(symbol: str) -> str:
    name = _name(symbol)
    return name if name == symbol else "@" + name


def _extent_text(extent: Extent) -> str:
    return extents.text(extent, _symbol_text)


def type_text(type: TensorType) -> str:
    return f"{dtypes.SHORT[type.dtype]}[{','.join(map(_extent_text, type.shape))}]"


def _float_text(value: float) -> str:
    if value != value and float_bits(value) != _NAN_BITS:
        return f"nan(0x{float_bits(value).hex()})"
    return repr(value)


def _element_text(element: Any) -> str:
    """One element of a constant, with the fewest digits that tell it from its neighbours."""
    if dtypes.is_narrow_float(element.dtype):
        return str(np.float32(element))
    return str(element)


def _literal_text(literal: Literal) -> str:
    head = type_text(literal.type)
    if literal.type.size <= _READABLE:
        elements = [_element_text(e) for e in literal.array.reshape(-1)]
        if _literal(literal.type, map(_element, elements)).data == literal.data:  # not so for NaNs with a payload
            return f"{head} [{', '.join(elements)}]" if literal.type.shape else f"{head} {elements[0]}"
    return f"{head} 0x{literal.data.hex()}"


def _element(text: str) -> bool | int | float:
    """The number or truth value that ``text`` spells."""
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _literal(type: TensorType, elements: Iterable[Any]) -> Literal:
    return Literal(type, np.array(list(elements), type.dtype).tobytes())


def value_text(value: Any) -> str:
    """One attribute value."""
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, Dim):
        return _extent_text(value)
    if isinstance(value, Literal):
        return _literal_text(value)
    if isinstance(value, np.dtype):
        return dtypes.SHORT[value]
    return repr(value)


def node_text(node: Node, names: Mapping[Node, str]) -> str:
    """One node as it stands in the text of its graph; a value without a name prints as ``%?``."""
    head = f"{names.get(node, '%?')}: {type_text(node.type)}"
    if node.is_parameter:
        role = node.attrs["role"]
        return f"{head} {json.dumps(node.attrs['name'])}{'' if role is Role.ARGUMENT else ' ' + role.value}"
    inputs = ", ".join([names.get(n, "%?") for n in node.inputs])
    attrs = ", ".join([f"{k}={value_text(node.attrs[k])}" for k in sorted(node.attrs)])
    return f"{head} = {node.op.name}({inputs}){f' {{{attrs}}}' if attrs else ''}"


def value_names(graph: Graph) -> dict[Node, str]:
    """The names under which the graph's values print."""
    return {node: f"%{i}" for i, node in enumerate((*graph.inputs, *graph.nodes))}


def to_text(graph: Graph, locations: bool = True) -> str:
    """The graph as text; with ``locations`` each node's user line follows it as a comment."""
    names = value_names(graph)

    def where(node: Node) -> str:
        return f"  # {node.where}" if locations and node.where else ""

    parameters = [node_text(n, names) for n in graph.inputs]
    if any(where(n) for n in graph.inputs):  # a comment ends its line, so each parameter takes one
        signature = "".join([f"\n  {text}{where(n)}" for text, n in zip(parameters, graph.inputs)]) + "\n"
    else:
        signature = ", ".join(parameters)

    def values(nodes: Iterable[Node]) -> str:
        return ", ".join([names.get(n, "%?") for n in nodes])

    lines = [f"graph {_name(graph.name)}({signature}) {{"]
    lines += [f"  {node_text(n, names)}{where(n)}" for n in graph.nodes]
    lines.append(f"  return {values(graph.outputs)}".rstrip())
    lines += [f"  update %{i} = {values([graph.updates[i]])}" for i in sorted(graph.updates)]
    lines.append("}")
    return "\n".join(lines) + "\n"


# Parsing


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>\#[^\n]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<value>%\d+)
    | (?P<bytes>0x[0-9a-f]*)
    | (?P<number>-?(?:\d+\.?\d*(?:e[+-]?\d+)?|(?:inf|nan)\b))
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>//|[(){}\[\],:=@+*-])
    | (?P<error>.)
    """,
    re.VERBOSE,
)


class _Parser:
    """Recursive descent over the tokens; each method reads one construct."""

    def __init__(self, text: str, table: Mapping[str, Any]) -> None:
        self.text, self.table = text, table
        self.values: dict[str, Node] = {}
        self.tokens: list[_Token] = []
        self.comments: dict[int, str] = {}  # position of a token -> the comment behind it on its line
        self.position = 0
        line_break = True
        for found in _TOKEN.finditer(text):
            token = _Token(found.lastgroup or "", found.group(), found.start())
            if token.kind == "space":
                line_break |= "\n" in token.text
            elif token.kind != "comment":
                self.tokens.append(token)
                line_break = False
            elif not line_break:
                self.comments[len(self.tokens) - 1] = token.text[1:].strip()
        self.tokens.append(_Token("end", "", len(text.rstrip())))

    def fail(self, message: str, at: _Token | None = None) -> NoReturn:
        start = (at or self.peek()).start
        line = self.text.count("\n", 0, start) + 1
        first = self.text.rfind("\n", 0, start) + 1
        shown = self.text[first:].split("\n", 1)[0]
        raise ParseError("parse", f"line {line}: {message}\n  {shown}\n  {' ' * (start - first)}^")

    def peek(self) -> _Token:
        return self.tokens[self.position]

    def next(self) -> _Token:
        token = self.peek()
        self.position += token.kind != "end"
        return token

    def accept(self, text: str) -> bool:
        if self.peek().text != text or self.peek().kind not in ("mark", "word"):
            return False
        self.next()
        return True

    def expect(self, text: str) -> _Token:
        token = self.peek()
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {token.text!r}" if token.text else f"expected {text!r}, found the end")
        return token

    def expect_kind(self, kind: str, what: str) -> _Token:
        token = self.peek()
        if token.kind != kind:
            self.fail(f"expected {what}, found {token.text!r}" if token.text else f"expected {what}, found the end")
        return self.next()

    def separated(self, close: str, item: Any) -> list[Any]:
        """``item, item, ... close``, perhaps with a comma before ``close``."""
        items: list[Any] = []
        while not self.accept(close):
            if items:
                self.expect(",")
                if self.accept(close):
                    break
            items.append(item())
        return items

    def string(self) -> str:
        token = self.expect_kind("string", "a quoted string")
        try:
            return str(json.loads(token.text))
        except ValueError as error:
            self.fail(f"not a string: {error}", token)

    def name(self) -> str:
        if self.peek().kind == "string":
            return self.string()
        return self.expect_kind("word", "a name").text

    def location(self) -> str | None:
        """The comment behind the token that was read last: where the user wrote this."""
        return self.comments.get(self.position - 1) or None

    # values and types

    def extent(self, first: Extent | None = None) -> Extent:
        """A sum of products, as ``extents.text`` prints it; ``first`` is a factor that was read already."""
        total = self._product(first, -1 if first is None and self.accept("-") else 1)
        while True:
            token = self.peek()
            if self.accept("+"):
                total = total + self._product(None, 1)
            elif self.accept("-"):
                total = total + self._product(None, -1)
            elif token.kind == "number" and token.text[0] == "-":  # n-1: the sign goes with the number
                total = total + self._product(self._integer(), 1)
            else:
                return total

    def _product(self, first: Extent | None, sign: int) -> Extent:
        value = self._factor() if first is None else first
        while True:
            if self.accept("*"):
                value = value * self._factor()
            elif self.accept("//"):
                token = self.peek()
                divisor = self._factor()
                if divisor == 0:
                    self.fail("an extent is divided by 0", token)
                value = value // divisor
            else:
                return value * sign

    def _factor(self) -> Extent:
        token = self.peek()
        if self.accept("("):
            value = self.extent()
            self.expect(")")
            return value
        if token.kind == "number":
            return self._integer()
        if self.accept("@"):
            return Dim(self.string())
        return Dim(self.expect_kind("word", "an extent").text)

    def _integer(self) -> int:
        token = self.next()
        if not token.text.lstrip("-").isdigit():
            self.fail(f"{token.text} is no whole number", token)
        return int(token.text)

    def type(self) -> TensorType:
        token = self.expect_kind("word", "a type such as f32[2,3]")
        if token.text not in dtypes.FROM_SHORT:
            self.fail(f"{token.text!r} is no dtype; there are {', '.join(dtypes.FROM_SHORT)}", token)
        self.expect("[")
        shape = tuple(self.separated("]", self.extent))
        if any(isinstance(extent, int) and extent < 0 for extent in shape):
            self.fail(f"the shape {shape} has a negative extent", token)
        return TensorType(shape, dtypes.FROM_SHORT[token.text])

    def number(self) -> bool | int | float:
        text = self.expect_kind("number", "a number").text
        if text == "nan" and self.accept("("):
            data = self.data(8)
            self.expect(")")
            return float(np.frombuffer(data, "<f8")[0])
        return _element(text)

    def data(self, size: int) -> bytes:
        token = self.expect_kind("bytes", "bytes such as 0x00ff")
        try:
            data = bytes.fromhex(token.text[2:])
        except ValueError:
            self.fail("an odd number of hexadecimal digits", token)
        if len(data) != size:
            self.fail(f"expected {size} bytes, found {len(data)}", token)
        return data

    def element(self) -> Any:
        if self.peek().text in ("True", "False"):
            return _element(self.next().text)
        return self.number()

    def literal(self) -> Literal:
        token = self.peek()
        type = self.type()
        if not type.is_static:
            self.fail("a constant needs a static shape", token)
        if self.peek().kind == "bytes":
            return Literal(type, self.data(type.size * type.dtype.itemsize))
        if type.shape:
            self.expect("[")
            elements = self.separated("]", self.element)
        else:
            elements = [self.element()]
        if len(elements) != type.size:
            self.fail(f"{type} holds {type.size} elements, found {len(elements)}", token)
        try:
            return _literal(type, elements)
        except (OverflowError, TypeError, ValueError) as error:
            self.fail(f"not a constant of type {type}: {error}", token)

    def attribute(self) -> Any:
        token = self.peek()
        if token.kind == "number":
            return self._number_or_extent()
        if token.kind == "string":
            return self.string()
        if self.accept("("):
            return self._tuple_or_extent()
        if token.text in ("@", "-"):
            return self.extent()
        if token.kind != "word":
            self.fail(f"expected an attribute's value, found {token.text!r}")
        if token.text in dtypes.FROM_SHORT:
            if self.tokens[self.position + 1].text == "[":
                return self.literal()
            return dtypes.FROM_SHORT[self.next().text]
        return _WORDS[self.next().text] if token.text in _WORDS else self.extent()

    def _number_or_extent(self) -> Any:
        """A number, or an extent that begins with one."""
        number = self.number()
        return self.extent(number) if type(number) is int and self._goes_on() else number

    def _tuple_or_extent(self) -> Any:
        """What follows an opening bracket: values, or the first part of an extent such as ``(n+1)//2``."""
        values = self.separated(")", self.attribute)
        if len(values) == 1 and isinstance(values[0], (int, Dim)) and self._goes_on():
            return self.extent(values[0])
        return tuple(values)

    def _goes_on(self) -> bool:
        """Whether an extent goes on behind a factor of it."""
        token = self.peek()
        return token.text in ("*", "//", "+", "-") or (token.kind == "number" and token.text[0] == "-")

    def attributes(self) -> dict[str, Any]:
        attrs: dict[str, Any] = {}

        def item() -> None:
            token = self.expect_kind("word", "an attribute's name")
            if token.text in attrs:
                self.fail(f"attribute {token.text!r} is given twice", token)
            self.expect("=")
            attrs[token.text] = self.attribute()

        if self.accept("{"):
            self.separated("}", item)
        return attrs

    # the graph

    def new_value(self) -> str:
        token = self.expect_kind("value", "a value such as %0")
        if token.text in self.values:
            self.fail(f"{token.text} is defined twice", token)
        self.expect(":")
        return token.text

    def use(self) -> Node:
        token = self.expect_kind("value", "a value such as %0")
        if token.text not in self.values:
            self.fail(f"{token.text} is not defined above", token)
        return self.values[token.text]

    def parameter(self) -> Node:
        name = self.new_value()
        type, label, role = self.type(), self.string(), Role.ARGUMENT
        token = self.peek()
        if token.kind == "word":
            try:
                role = Role(self.next().text)
            except ValueError:
                self.fail(f"{token.text!r} is no role; there are {', '.join(r.value for r in Role)}", token)
        node = self.values[name] = parameter(type, label, role, self.location())
        self.accept(",")  # parameters that stand on lines of their own need none
        return node

    def node(self) -> Node:
        name = self.new_value()
        type = self.type()
        self.expect("=")
        token = self.expect_kind("word", "an op's name")
        if token.text not in self.table:
            close = difflib.get_close_matches(token.text, self.table, 1)
            self.fail(f"there is no op {token.text!r}" + (f"; did you mean {close[0]!r}?" if close else ""), token)
        self.expect("(")
        inputs = self.separated(")", self.use)
        attrs = self.attributes()
        node = self.values[name] = Node(self.table[token.text], inputs, attrs, type, self.location())
        return node

    def graph(self) -> Graph:
        self.expect("graph")
        name = self.name()
        self.expect("(")
        inputs = []
        while not self.accept(")"):
            inputs.append(self.parameter())
        self.expect("{")
        nodes = []
        while self.peek().kind == "value":
            nodes.append(self.node())
        self.expect("return")
        outputs = [self.use()] if self.peek().kind == "value" else []
        while self.accept(","):
            outputs.append(self.use())
        updates: dict[int, Node] = {}
        while self.accept("update"):
            token = self.peek()
            target = self.use()
            if target not in inputs:
                self.fail(f"{token.text} is no input, so it cannot be updated", token)
            if inputs.index(target) in updates:
                self.fail(f"{token.text} is updated twice", token)
            self.expect("=")
            updates[inputs.index(target)] = self.use()
        self.expect("}")
        if self.peek().kind != "end":
            self.fail(f"expected the end after the graph, found {self.peek().text!r}")
        return Graph(name, tuple(inputs), tuple(nodes), tuple(outputs), updates)


def parse(text: str, table: Mapping[str, Any]) -> Graph:
    """Read a graph; ``table`` maps the names of ops to them.  Raises ParseError, which shows the place."""
    return _Parser(text, table).graph()
