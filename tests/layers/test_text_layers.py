"""Layers of texts: vocabularies of other sizes, unknown words, odd bytes, nothing at all; eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hybridflow as hf

texts = hf.strings.constant


@pytest.mark.parametrize("mode", ["int", "one_hot", "multi_hot", "count", "tf_idf"])
def test_a_vocabulary_of_another_size(mode: str) -> None:
    """What was traced with one vocabulary is traced again with another: functions and models."""
    layer = hf.layers.StringLookup(output_mode=mode)
    x = texts([["a"], ["z"], ["b"]])
    layer.adapt([["a", "b"], ["a", "c"]])
    model, function = hf.Sequential([layer]), hf.function(lambda x: layer(x))
    for words in (["a", "b"], ["a"], [f"w{k}" for k in range(100)] + ["b"]):
        layer.adapt([words])
        expected = np.asarray(layer(x))
        assert expected.shape[-1] == (1 if mode == "int" else len(words) + 1)
        assert np.array_equal(np.asarray(function(x)), expected)
        assert np.array_equal(model.predict(x, verbose=0), expected)


def test_words_of_texts() -> None:
    layer = hf.layers.TextVectorization(output_sequence_length=4)
    layer.adapt(["Red, green!", b"red \xff\xfe", "blue RED green"])
    words = layer.get_vocabulary()
    assert words[:4] == ["", "[UNK]", "red", "green"] and len(words) == 6
    for x in (["red green", "pink", ""], [b"\xff\xfe red", b"\xff"], np.empty(0, object), ["a b c d e f"]):
        known = {word.encode("utf-8", "surrogateescape"): k for k, word in enumerate(words)}
        expected = [[known.get(word, 1) for word in np.asarray(text, object).item().split()] if isinstance(text, bytes)
                    else [known.get(word, 1) for word in text.encode().split()] for text in x]  # fmt: skip
        for call in (layer, hf.function(lambda x: layer(x))):
            rows = call(texts(x)).tolist()
            assert rows == [(row + [0] * 4)[:4] for row in expected]


@pytest.mark.parametrize("options", [{"num_oov_indices": 3}, {"mask_token": ""}, {"num_oov_indices": 2, "salt": 7}])
def test_unknown_words(options: dict[str, Any]) -> None:
    layer = hf.layers.StringLookup(vocabulary=["a", "b"], **options)
    back = hf.layers.StringLookup(vocabulary=["a", "b"], invert=True, **options)
    x = texts(["a", "", "unknown", b"\xff", "b"])
    numbers = layer(x)
    assert numbers.tolist() == hf.function(lambda x: layer(x))(x).tolist()
    assert [numbers.tolist()[k] for k in (0, 4)] == [layer.vocabulary_size() - 2, layer.vocabulary_size() - 1]
    assert all(number < layer.vocabulary_size() - 2 for number in numbers.tolist()[1:4])
    words = hf.function(lambda n: back(n))(numbers).tolist()
    assert [words[k] for k in (0, 4)] == [b"a", b"b"] and words[2] == b"[UNK]"
    with pytest.raises(hf.errors.ArgumentError, match="OOV"):
        hf.layers.StringLookup(vocabulary=["a"], num_oov_indices=0)(["z"])


def test_a_model_that_is_trained_on_texts() -> None:
    layer = hf.layers.TextVectorization(vocabulary=["good", "bad"], output_mode="count")
    model = hf.Sequential([layer, hf.layers.Dense(1, kernel_initializer="zeros")])
    model.compile(hf.optimizers.SGD(0.1), "mse")
    x, y = texts(["good", "bad bad", "good bad", "what"]), np.array([[1.0], [-2.0], [0.0], [0.0]], np.float32)
    losses = model.fit(x, y, batch_size=4, epochs=30, verbose=0).history["loss"]
    assert losses[-1] < losses[0] / 4
    assert model.predict(texts(["good"]), verbose=0).item() > 0 > model.predict(texts(["bad"]), verbose=0).item()
