"""Tables that map texts and numbers: unknown keys, sizes, order of effects, threads."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf

texts = hf.strings.constant


def content(words: Any, values: Any) -> Any:
    return hf.lookup.KeyValueTensorInitializer(words, values)


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_static_tables_of_any_size(count: int) -> None:
    words = [f"w{k}" for k in range(count)]
    table = hf.lookup.StaticHashTable(content(words, np.arange(count)), -1)
    vocabulary = hf.lookup.StaticVocabularyTable(content(words, np.arange(count)), 3)
    inverse = hf.lookup.StaticHashTable(content(np.arange(count), words), "?")
    x = texts([[words[-1], "unknown", ""], [words[0], "other", words[0]]])
    wanted = [[count - 1, -1, -1], [0, -1, 0]]
    for call in (table.lookup, hf.function(table.lookup)):
        assert call(x).tolist() == wanted
    eager, compiled = vocabulary.lookup(x), hf.function(vocabulary.lookup)(x)
    assert eager.tolist() == compiled.tolist() and eager[0, 0].item() == count - 1
    assert all(count <= number < count + 3 for number in eager.tolist()[0][1:])
    for call in (inverse.lookup, hf.function(inverse.lookup)):
        assert call(hf.asarray([count - 1, count, -1])).tolist() == [words[-1].encode(), b"?", b"?"]
    assert table.size().item() == count and vocabulary.size().item() == count + 3
    assert table.lookup(texts(np.empty((0, 2), object))).shape == (0, 2)


def test_ragged_and_sparse_keys() -> None:
    table = hf.lookup.StaticHashTable(content(["a", "b"], [1, 2]), -1)
    rows = hf.strings.split(["a b", "", "z"])
    assert table.lookup(rows).to_list() == [[1, 2], [], [-1]]
    sparse = hf.sparse.COO(hf.asarray([[0, 1]]), texts(["b"]), (1, 2))
    assert table.lookup(sparse).values.tolist() == [2]


def test_another_table_is_looked_up_in() -> None:
    held = {"table": hf.lookup.StaticHashTable(content(["a"], [1]), -1)}
    f = hf.function(lambda x: held["table"].lookup(x))
    assert f(texts(["a", "b"])).tolist() == [1, -1]
    held["table"] = hf.lookup.StaticHashTable(content(["b"], [7]), 0)
    assert f(texts(["a", "b"])).tolist() == [0, 7]


def test_changes_come_in_the_order_of_the_program() -> None:
    table = hf.lookup.MutableHashTable("string", "int64", 0)

    @hf.function
    def count(words: Any) -> Any:
        before = table.size()
        for word in words:
            table.insert(word, table.lookup(word) + 1)
        during = table.size()
        table.remove(words[:1])
        return before, during, table.size()

    assert [n.item() for n in count(texts(["a", "b", "a"]))] == [0, 2, 1]
    assert table.lookup(["a", "b"]).tolist() == [0, 1]
    assert [n.item() for n in count(texts(["b", "b", "c"]))] == [1, 2, 1]
    keys, values = table.export()
    assert (keys.tolist(), values.tolist()) == ([b"c"], [1])
    assert table.lookup(["x"], dynamic_default_values=[5]).tolist() == [5]


def test_rows_as_values_and_keys_that_are_reserved() -> None:
    table = hf.lookup.MutableHashTable("int64", "float32", [0.0, 0.5])
    table.insert([3], [[1.0, 2.0]])
    assert table.lookup([3, 4]).tolist() == [[1.0, 2.0], [0.0, 0.5]]
    with pytest.raises(hf.errors.ShapeError):
        table.insert([3], [1.0])
    dense = hf.lookup.DenseHashTable("int64", "int64", -1, empty_key=0, deleted_key=-2)
    with pytest.raises(hf.errors.ArgumentError, match="not allowed"):
        dense.insert([0], [1])


def test_tables_from_files(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("red\t1\ngr\u00fcn\t2\n\xff\t3".encode("utf-8", "surrogateescape").replace(b"\xc3\xbf", b"\xff"))
    table = hf.lookup.StaticHashTable(hf.lookup.TextFileInitializer(path, "string", 0, "int64", 1), -1)
    assert table.lookup(["red", "gr\u00fcn", b"\xff", "x"]).tolist() == [1, 2, 3, -1]
    for options, message in (({"vocab_size": 4}, "expected 4 but got 3"), ({"delimiter": ","}, "Invalid number")):
        with pytest.raises(hf.errors.ArgumentError, match=message):
            hf.lookup.TextFileInitializer(path, "string", 0, "int64", 1, **options)


def test_what_is_refused() -> None:
    with pytest.raises(hf.errors.ShapeError, match="Expected equal shapes"):
        content(["a"], [1, 2])
    with pytest.raises(hf.errors.ArgumentError, match="different value"):
        hf.lookup.StaticHashTable(content(["a", "a"], [1, 2]), 0)
    with pytest.raises(hf.errors.ArgumentError, match="must be > 0"):
        hf.lookup.StaticVocabularyTable(content(["a"], [0]), 0)
    table = hf.lookup.StaticHashTable(content(["a"], [1]), 0)
    numbers = hf.lookup.StaticHashTable(content([1], [1]), 0)
    for call in (lambda: table.lookup([1]), lambda: numbers.lookup(["a"]), lambda: numbers.lookup(hf.asarray([1.0]))):
        with pytest.raises((hf.errors.DTypeError, hf.errors.ArgumentTypeError)):
            call()


def test_threads_look_up_together() -> None:
    table = hf.lookup.StaticHashTable(content([str(k) for k in range(50)], np.arange(50)), -1)
    f = hf.function(lambda x: table.lookup(x) * 2)
    wrong: list[Any] = []

    def work(first: int) -> None:
        for k in range(first, first + 15):
            if f(texts([str(k), "no"])).tolist() != [2 * k, -2]:
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(10 * n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
