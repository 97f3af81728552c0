"""The text form of graphs: one line per node, made to be read, compared, dumped and parsed back.

    graph step(%0: f32[2,n] "x", %1: f32[3] "w" state) {
      %2: f32[2,3] = broadcast(%1) {axes=(1,), shape=(2, 3)}  # train.py:3
      return %2, %0
      update %1 = %2
    }

What calls must fulfil stands first, as lines such as ``assume n-10 >= 0``.

Parsing what was printed gives the same graph, to the bit: floats print with all their digits, NaNs that carry a
payload, complex numbers and larger constants print as hexadecimal bytes.  The parser believes the types that it
reads; whether they are right is the verifier's question.

Sub-graphs print in their place, and count their values anew; nothing outside of them has a name there:

      %4: (f32[], i64[]) = while(%0, %1) {
        body=graph body(%0: f32[] "x", %1: i64[] "i") {
          ...
          return %2, %3
        },
        cond=graph cond(%0: f32[] "x", %1: i64[] "i") {
          ...
        }
      }
      %5: f32[] = project(%4) {index=0}
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple, NoReturn

import numpy as np

from hybridflow.compiler.ir import dtypes, polynomial
from hybridflow.compiler.ir.attributes import float_bits
from hybridflow.compiler.ir.extents import Dim, Extent
from hybridflow.compiler.ir.graph import Graph, Literal, Node, Role, graphs_in, parameter
from hybridflow.compiler.ir.results import TOKEN, TokenType, TupleType, ValueType
from hybridflow.compiler.ir.types import TensorType, shape_fault
from hybridflow.errors import ParseError

_READABLE = 16  # elements of a constant that print as numbers; more print as bytes
_DEEPEST = 50  # graphs, tuples and brackets of extents within each other
_MOST_NODES = 1 << 18  # of a text, those of sub-graphs too
_MOST_ITEMS = 1 << 16  # of a list, such as the inputs of a node
_MOST_TERMS, _MOST_NAMES, _MOST_BITS = 1 << 8, 16, 128  # of an extent: terms, names of one, bits of a factor
_MOST_QUOTIENTS = 8  # within each other
_EFFORT, _PER_LETTER = 1 << 16, 4  # products of terms that a text may take, beside so many for each of its letters
_NAN_BITS = float_bits(float("nan"))
_DIGITS = 1000  # of a whole number: Python itself refuses to read some thousands
_WORD = re.compile(r"[^\W\d]\w*")
_WORDS = {"True": True, "False": False, "None": None}
_RESERVED = frozenset({*_WORDS, *dtypes.FROM_SHORT, "nan", "inf", "graph", "token"})


# Printing


def _name(text: str) -> str:
    return text if _WORD.fullmatch(text) and text not in _RESERVED else json.dumps(text)


def _symbol_text(symbol: str) -> str:
    name = _name(symbol)
    return name if name == symbol else "@" + name


def _extent_text(extent: Extent) -> str:
    return polynomial.text(extent, _symbol_text)


def type_text(type: ValueType) -> str:
    if isinstance(type, TupleType):
        parts = [type_text(part) for part in type.parts]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(type, TokenType):
        return str(type)
    extents = [str(n) if n.__class__ is int else _extent_text(n) for n in type.shape]
    return f"{dtypes.SHORT[type.dtype]}[{','.join(extents)}]"


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
    if literal.type.size <= _READABLE and not dtypes.is_complex(literal.type.dtype):
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


def value_text(value: object, locations: bool = True, indent: str = "") -> str:
    """One attribute value.  Graphs take several lines, of which all but the first begin with ``indent``."""
    if value.__class__ is int:  # as most are
        return str(value)
    if isinstance(value, Graph):
        return _graph_text(value, locations, indent)
    if isinstance(value, tuple):
        parts = [value_text(part, locations, indent) for part in value]
        return f"({', '.join(parts)}{',' if len(value) == 1 else ''})"
    if isinstance(value, TensorType):
        return type_text(value)
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


def node_text(node: Node, names: Mapping[Node, str], locations: bool = True, indent: str = "") -> str:
    """One node as it stands in the text of its graph; a value without a name prints as ``%?``."""
    head = f"{names.get(node, '%?')}: {type_text(node.type)}"
    if node.is_parameter:
        role = node.attrs["role"]
        return f"{head} {json.dumps(node.attrs['name'])}{'' if role is Role.ARGUMENT else ' ' + role.value}"
    inputs = ", ".join([names.get(n, "%?") for n in node.inputs])
    head = f"{head} = {node.op.name}({inputs})"
    if not node.attrs:
        return head
    if not graphs_in(node.attrs):
        return f"{head} {{{', '.join([f'{k}={value_text(node.attrs[k])}' for k in sorted(node.attrs)])}}}"
    deeper = indent + "  "
    attrs = [f"{deeper}{k}={value_text(node.attrs[k], locations, deeper)}" for k in sorted(node.attrs)]
    return "\n".join([f"{head} {{", ",\n".join(attrs), f"{indent}}}"])


def value_names(graph: Graph) -> dict[Node, str]:
    """The names under which the graph's values print."""
    return {node: f"%{i}" for i, node in enumerate((*graph.inputs, *graph.nodes))}


def to_text(graph: Graph, locations: bool = True) -> str:
    """The graph as text; with ``locations`` each node's user line follows it as a comment."""
    return _graph_text(graph, locations, "") + "\n"


def _graph_text(graph: Graph, locations: bool, indent: str) -> str:
    names = value_names(graph)
    deeper = indent + "  "

    def where(node: Node) -> str:
        return f"  # {node.where}" if locations and node.where else ""

    parameters = [node_text(n, names) for n in graph.inputs]
    if any(where(n) for n in graph.inputs):  # a comment ends its line, so each parameter takes one
        lines = [f"\n{deeper}{text}{where(n)}" for text, n in zip(parameters, graph.inputs)]
        signature = f"{''.join(lines)}\n{indent}"
    else:
        signature = ", ".join(parameters)

    def values(nodes: Iterable[Node]) -> str:
        return ", ".join([names.get(n, "%?") for n in nodes])

    lines = [f"graph {_name(graph.name)}({signature}) {{"]
    lines += [f"{deeper}assume {_extent_text(condition)} >= 0" for condition in graph.conditions]
    lines += [f"{deeper}{node_text(n, names, locations, deeper)}{where(n)}" for n in graph.nodes]
    lines.append(f"{deeper}return {values(graph.outputs)}".rstrip())
    lines += [f"{deeper}update %{i} = {values([graph.updates[i]])}" for i in sorted(graph.updates)]
    lines.append(f"{indent}}}")
    return "\n".join(lines)


# Parsing


class _Token(NamedTuple):
    kind: str
    text: str
    start: int


def _quoted(token: _Token) -> str:
    """A token as errors name it."""
    if not token.text:
        return "the end"
    return repr(token.text if len(token.text) <= 40 else token.text[:37] + "...")


_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<comment>\#[^\n]*)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<value>%[0-9]+)
    | (?P<bytes>0x[0-9a-f]*)
    | (?P<number>-?(?:[0-9]+\.?[0-9]*(?:e[+-]?[0-9]+)?|(?:inf|nan)\b))
    | (?P<word>[^\W\d]\w*)
    | (?P<mark>//|>=|[(){}\[\],:=@+*-])
    | (?P<error>.)
    """,
    re.VERBOSE,
)


class _Parser:
    """Recursive descent over the tokens; each method reads one construct."""

    def __init__(self, text: str, table: Mapping[str, Any]) -> None:
        self.text, self.table = text, table
        self.values: dict[str, Node] = {}
        self.depth = 0  # of what is being read
        self.nodes = self.effort = 0  # so far
        self.position = 0  # the number of tokens that were read
        self._ahead: list[_Token] = []  # those that were looked at
        self._comments: dict[int, str] = {}  # the number of a token -> the comment behind it on its line
        self._scanned = _TOKEN.finditer(text)  # a token at a time: all of them take many times the text

    def _scan(self) -> _Token:
        """The next token of the text."""
        line_break = self.position + len(self._ahead) == 0
        for token in self._scanned:
            kind = token.lastgroup or ""
            if kind == "space":
                line_break |= "\n" in token.group()
            elif kind != "comment":
                return _Token(kind, token.group(), token.start())
            elif not line_break:
                self._comments[self.position + len(self._ahead) - 1] = token.group()[1:].strip()
        return _Token("end", "", len(self.text.rstrip()))

    def fail(self, message: str, at: _Token | None = None) -> NoReturn:
        start = (at or self.peek()).start
        line = self.text.count("\n", 0, start) + 1
        first = self.text.rfind("\n", 0, start) + 1
        shown = self.text[first:].split("\n", 1)[0]
        column = start - first
        cut = max(0, column - 100)  # long lines are shown around the place
        shown, marked = shown[cut : cut + 160], column - cut
        raise ParseError("parse", f"line {line}, column {column + 1}: {message}\n  {shown}\n  {' ' * marked}^")

    def peek(self, further: int = 0) -> _Token:
        """The next token, or one further on."""
        ahead = self._ahead
        while len(ahead) <= further:
            ahead.append(self._scan())
        return ahead[further]

    def next(self) -> _Token:
        token = self.peek()
        if token.kind != "end":
            del self._ahead[0]
            self._comments.pop(self.position - 1, None)
            self.position += 1
        return token

    def accept(self, text: str) -> bool:
        token = self.peek()
        if token.text != text or token.kind not in ("mark", "word", "number"):
            return False
        self.next()
        return True

    def expect(self, text: str) -> _Token:
        token = self.peek()
        if not self.accept(text):
            self.fail(f"expected {text!r}, found {_quoted(token)}")
        return token

    def expect_kind(self, kind: str, what: str) -> _Token:
        token = self.peek()
        if token.kind != kind:
            self.fail(f"expected {what}, found {_quoted(token)}")
        return self.next()

    def separated(self, close: str, item: Callable[..., Any]) -> list[Any]:
        """``item, item, ... close``, perhaps with a comma before ``close``."""
        items: list[Any] = []
        while not self.accept(close):
            if items:
                self.expect(",")
                if self.accept(close):
                    break
            if len(items) == _MOST_ITEMS:
                self.fail(f"more than {_MOST_ITEMS} entries")
            items.append(item())
        return items

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail(f"more than {_DEEPEST} graphs, tuples or brackets within each other")
        yield
        self.depth -= 1

    def string(self) -> str:
        token = self.expect_kind("string", "a quoted string")
        try:
            text = str(json.loads(token.text))
            text.encode()
        except ValueError as error:
            self.fail(f"not a string: {error}", token)
        return text

    def name(self) -> str:
        if self.peek().kind == "string":
            return self.string()
        return self.expect_kind("word", "a name").text

    def location(self) -> str | None:
        """The comment behind the token that was read last: where the user wrote this."""
        self.peek()
        return self._comments.get(self.position - 1) or None

    # values and types

    def extent(self, first: Extent | None = None) -> Extent:
        """A sum of products, as ``polynomial.text`` prints it; ``first`` is a factor that was read already."""
        total = self._product(first, -1 if first is None and self.accept("-") else 1)
        while True:
            token = self.peek()
            if self.accept("+"):
                total = self._small(total + self._product(None, 1), token)
            elif self.accept("-"):
                total = self._small(total + self._product(None, -1), token)
            elif token.kind == "number" and token.text[0] == "-":  # n-1: the sign goes with the number
                total = self._small(total + self._product(-self._integer(), -1), token)
            else:
                return total

    def _product(self, first: Extent | None, sign: int) -> Extent:
        value = self._factor() if first is None else first
        while True:
            token = self.peek()
            if self.accept("*"):
                other = self._factor()
                self._spend(value, other, token)
                value = self._small(value * other, token)
            elif self.accept("//"):
                other = self._factor()
                if other == 0:
                    self.fail("an extent is divided by 0", token)
                self._spend(value, other, token)
                value = self._small(value // other, token)
            else:
                return value * sign

    def _spend(self, a: Extent, b: Extent, token: _Token) -> None:
        """Take note of an operation on extents: what looks short may take long."""
        self.effort += polynomial.length(a) * polynomial.length(b)
        if self.effort > _EFFORT + _PER_LETTER * token.start:
            self.fail("extents whose products take too long", token)

    def _small(self, extent: Extent, token: _Token) -> Extent:
        """The extent, unless it is larger than those of any program."""
        terms = () if isinstance(extent, int) else extent.terms
        factors = [extent] if isinstance(extent, int) else [factor for _, factor in terms]
        if len(terms) > _MOST_TERMS or any(len(names) > _MOST_NAMES for (_, names), _ in terms):
            self.fail(f"an extent of more than {_MOST_TERMS} terms, or {_MOST_NAMES} factors in one", token)
        if polynomial.depth(extent) > _MOST_QUOTIENTS:
            self.fail(f"more than {_MOST_QUOTIENTS} quotients within each other", token)
        if any(factor.bit_length() > _MOST_BITS for factor in factors):
            self.fail("an extent with a factor that no program calculates with", token)
        return extent

    def _factor(self) -> Extent:
        token = self.peek()
        if self.accept("("):
            with self.deeper():
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
            self.fail(f"{_quoted(token)} is no whole number", token)
        if len(token.text) > _DIGITS:
            self.fail(f"a number of {len(token.text)} digits", token)
        return int(token.text)

    def type(self) -> TensorType:
        token = self.expect_kind("word", "a type such as f32[2,3]")
        if token.text == str(TOKEN):
            return TOKEN
        if token.text not in dtypes.FROM_SHORT:
            self.fail(f"{token.text!r} is no dtype; there are {', '.join(dtypes.FROM_SHORT)}", token)
        self.expect("[")
        shape = tuple(self.separated("]", self.extent))
        if any(isinstance(extent, int) and extent < 0 for extent in shape):
            self.fail(f"the shape {shape} has a negative extent", token)
        fault = shape_fault(shape)
        if fault is not None:
            self.fail(f"the shape {fault}", token)
        return TensorType(shape, dtypes.FROM_SHORT[token.text])

    def result_type(self) -> ValueType:
        """The type of a node: of one result, or of several."""
        return TupleType(tuple(self.separated(")", self.type))) if self.accept("(") else self.type()

    def number(self) -> bool | int | float:
        token = self.expect_kind("number", "a number")
        text = token.text
        if len(text) > _DIGITS and text.lstrip("-").isdigit():
            self.fail(f"a number of {len(text)} digits", token)
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

    def literal(self) -> Literal | TensorType:
        """A constant, or its type alone."""
        token = self.peek()
        type = self.type()
        if self.peek().kind in ("mark", "end") and self.peek().text != "[":
            return type
        if not type.is_static:
            self.fail("a constant needs a static shape", token)
        if self.peek().kind == "bytes":
            at, data = self.peek(), self.data(type.size * type.dtype.itemsize)
            if dtypes.is_bool(type.dtype) and not set(data) <= {0, 1}:
                self.fail("a truth value is one of the bytes 00 and 01", at)
            return Literal(type, data)
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
            with self.deeper():
                return self._tuple_or_extent()
        if token.text in ("@", "-"):
            return self.extent()
        if token.kind != "word":
            self.fail(f"expected an attribute's value, found {_quoted(token)}")
        if token.text == "graph":
            return self.graph()
        if token.text == str(TOKEN):
            return self.type()
        if token.text in dtypes.FROM_SHORT:
            if self.peek(1).text == "[":
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
            inner = "" if self.depth < 2 else " in this graph; a sub-graph reads nothing but its own inputs and nodes"
            self.fail(f"{token.text} is not defined above{inner}", token)
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
        type = self.result_type()
        self.expect("=")
        token = self.expect_kind("word", "an op's name")
        if token.text not in self.table:
            close = difflib.get_close_matches(token.text, self.table, 1)
            self.fail(f"there is no op {token.text!r}" + (f"; did you mean {close[0]!r}?" if close else ""), token)
        self.expect("(")
        inputs = self.separated(")", self.use)
        attrs = self.attributes()
        self.nodes += 1
        if self.nodes > _MOST_NODES:
            self.fail(f"more than {_MOST_NODES} nodes", token)
        node = self.values[name] = Node(self.table[token.text], inputs, attrs, type, self.location())
        return node

    def graph(self) -> Graph:
        """A graph with values of its own, whatever it stands in."""
        outside, self.values = self.values, {}
        with self.deeper():
            result = self._graph()
        self.values = outside
        return result

    def _graph(self) -> Graph:
        self.expect("graph")
        name = self.name()
        self.expect("(")
        inputs = []
        while not self.accept(")"):
            inputs.append(self.parameter())
        self.expect("{")
        conditions = []
        while self.accept("assume"):
            conditions.append(self.extent())
            self.expect(">=")
            self.expect("0")
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
        return Graph(name, tuple(inputs), tuple(nodes), tuple(outputs), updates, tuple(conditions))


def parse(text: str, table: Mapping[str, Any]) -> Graph:
    """Read a graph; ``table`` maps the names of ops to them.  Raises ParseError, which shows the place.

    What others wrote takes no more time and memory than a text of that length may: see the limits above.
    """
    parser = _Parser(text, table)
    graph = parser.graph()
    if parser.peek().kind != "end":
        parser.fail(f"expected the end after the graph, found {_quoted(parser.peek())}")
    return graph
