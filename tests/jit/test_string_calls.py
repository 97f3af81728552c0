"""Functions of texts: how calls go, what can be asked of them, when they are traced again, and what is kept of them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import hybridflow as hf
from hybridflow.core import string_tensor

texts = hf.strings.constant


def test_one_trace_serves_all_texts_of_a_shape():
    @hf.function
    def f(x):
        return hf.strings.upper(x)

    assert f(texts(["a", "b"])).tolist() == [b"A", b"B"]
    assert f(texts(["c", "d"])).tolist() == [b"C", b"D"]
    assert len(f.signatures()) == len(f.concrete_functions()) == 1
    assert f(texts(["c"])).tolist() == [b"C"]
    assert len(f.retraces()) == 1
    assert "whose calls have texts" in repr(f) and "2 traces" in repr(f)
    f.cache_clear()
    assert len(f.signatures()) == 0


def test_what_is_asked_of_a_function_before_its_first_call(tmp_path: Path):
    def count(x):
        return hf.strings.length(x) + 1

    x = texts(["a", "bcd"])
    assert "ask" in str(hf.function(count).ir(x))
    assert "concrete function count" in str(hf.function(count).explain(x))
    assert hf.function(count).profile(x, runs=1).kernels
    assert len(hf.function(count).memory_plan(x)) > 0
    assert len(hf.function(count).kernels(x)) > 0
    assert hf.function(count).compile(x)(x).tolist() == [2, 4]
    hf.function(count).report(tmp_path / "page.html", x, runs=1)
    assert (tmp_path / "page.html").stat().st_size > 1000
    hf.function(count).expect(x)
    assert "x.codes: i64[2]" in repr(hf.function(count).get_concrete_function(x))


def test_an_input_signature_of_texts():
    @hf.function(input_signature=[hf.TensorSpec([None], "string")])
    def f(x):
        return hf.strings.join([x, "!"])

    assert f(["a", "b"]).tolist() == [b"a!", b"b!"]
    assert f(texts(["a"])).tolist() == [b"a!"]
    assert f.get_concrete_function()(texts(["x", "y", "z"])).tolist() == [b"x!", b"y!", b"z!"]
    with pytest.raises(hf.errors.DTypeError):
        f(hf.ones(2))


class Greeting:
    """An object whose method is traced."""

    def __init__(self, word: str) -> None:
        self.word = texts(word)
        self.last = texts("")
        self.least = 1

    def greet(self, name):
        return hf.strings.join([self.word, name])

    def keep(self, name):
        self.last = hf.strings.upper(name)
        return hf.strings.length(name)

    def above(self, x):
        return x[x > self.least]


def test_what_a_bound_method_reads_is_guarded():
    greeting = Greeting("hi ")
    greet = hf.function(greeting.greet)
    assert greet(texts("ann")).numpy() == b"hi ann"
    greeting.word = texts("bye ")
    assert greet(texts("ann")).numpy() == b"bye ann"

    above = hf.function(greeting.above)  # whose sizes are found: another way that calls go
    assert above(hf.asarray([1, 2, 3])).tolist() == [2, 3]
    greeting.least = 2
    assert above(hf.asarray([1, 2, 3])).tolist() == [3]


def test_attributes_that_a_function_sets_hold_texts():
    greeting = Greeting("")
    keep = hf.function(greeting.keep)
    for name in ("ann", "bob", "eve"):
        assert keep(texts(name)).item() == 3
        assert greeting.last.numpy() == name.upper().encode()
    assert len(keep.signatures()) == 1


def test_branches_and_loops_carry_texts():
    @hf.function
    def f(x, count):
        if x[0] == "yes":
            word = x[0]
        else:
            word = hf.strings.upper(x[0])
        for _ in hf.arange(count):
            word = word + "."
        while hf.strings.length(word) < 6:
            word = hf.strings.join([word, "!"])
        return word

    for x, count in ((texts(["yes"]), 2), (texts(["no"]), 5)):
        assert f(x, hf.asarray(count)).numpy() == f.python_function(x, hf.asarray(count)).numpy()


def test_a_tape_around_a_call_with_texts():
    scale = hf.Variable(2.0)
    f = hf.function(lambda x, name: (x * scale, hf.strings.upper(name)))
    with hf.GradientTape() as tape:
        y, name = f(hf.asarray(3.0), texts("a"))
    assert tape.gradient(y, scale).item() == 3.0
    assert name.numpy() == b"A"


def test_texts_are_forgotten_when_no_call_needs_them(monkeypatch: pytest.MonkeyPatch):
    """Whatever is forgotten behind one call, others that run find their texts."""
    monkeypatch.setattr(string_tensor, "_LIMIT", 1)
    upper = hf.function(lambda x: hf.strings.upper(hf.strings.join([x, "-"])))
    digits = hf.function(lambda x: hf.strings.length(hf.strings.as_string(x)))  # no texts go in or come out
    concrete = upper.get_concrete_function(hf.TensorSpec([2], "string"))
    wrong: list[object] = []

    def work(number: int) -> None:
        for k in range(20):
            word = f"{number}x{k}"
            expected = f"{word.upper()}-".encode()
            for call in (upper, concrete):
                answer = call(texts([word, "b"])).tolist()
                if answer != [expected, b"B-"]:
                    wrong.append(answer)
            if digits(hf.asarray([10**k % 10**9])).item() != len(str(10**k % 10**9)):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    digits(hf.asarray([1]))
    assert set(string_tensor._texts) == string_tensor._pinned  # all others are forgotten


def test_constants_are_kept_while_other_calls_end(monkeypatch: pytest.MonkeyPatch):
    plain = string_tensor.code_of

    def code_of(text: bytes) -> int:
        code = plain(text)
        with string_tensor.running():  # as of another thread
            return code

    monkeypatch.setattr(string_tensor, "_LIMIT", 1)
    monkeypatch.setattr(string_tensor, "code_of", code_of)
    words = texts(["one that is kept", "another one"]).texts
    codes = string_tensor.codes_of(words, is_constant=True)
    with string_tensor.running():
        pass
    assert string_tensor.texts_of(codes).tolist() == words.tolist()


def test_what_texts_are_not_for(tmp_path: Path):
    class Model(hf.Module):
        @hf.function(input_signature=[hf.TensorSpec([None], "string")])
        def length(self, x):
            return hf.strings.length(x)

        @hf.function(input_signature=[hf.TensorSpec([None], "string")])
        def first(self, x):
            return x[:1]

    for obj in (Model(), Model().first):
        with pytest.raises(hf.errors.ArgumentTypeError, match="has texts, which no file of programs can hold"):
            hf.saved.save(obj, tmp_path / "model")
    called = hf.function(lambda x: x == "a")
    called(texts(["a"]))
    with pytest.raises(hf.errors.ArgumentTypeError, match="has texts"):
        hf.saved.save(called, tmp_path / "model")
    with pytest.raises(hf.errors.DTypeError, match="texts are not mapped"):
        hf.vmap(hf.strings.length)(texts(["a"]))
    with pytest.raises(hf.errors.DTypeError, match="variables hold numbers"):
        hf.Variable(texts("a"))
    with pytest.raises(hf.errors.DTypeError, match="does not become float32"):
        hf.function(hf.exp)(texts("a"))
