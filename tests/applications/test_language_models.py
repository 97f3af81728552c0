"""Language models against formulas in float64, written down once more by NumPy."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hybridflow as hf
from hybridflow import errors
from hybridflow.applications import text

TOKENS = np.array([[1, 5, 2, 7, 3], [4, 4, 0, 9, 8]])


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray) -> np.ndarray:
    scores = np.where(mask, q @ np.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]), -np.inf)
    return softmax(scores) @ v


def heads(x: np.ndarray, count: int) -> np.ndarray:
    return x.reshape(*x.shape[:2], count, -1).swapaxes(1, 2)


def joined(x: np.ndarray) -> np.ndarray:
    return x.swapaxes(1, 2).reshape(x.shape[0], x.shape[2], -1)


def norm(x: np.ndarray, w: dict[str, np.ndarray], name: str, epsilon: float) -> np.ndarray:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * w[f"{name}.weight"] + w[f"{name}.bias"]


def scaled(x: np.ndarray, weight: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight


def randomized(model: Any) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    for variable in model.parameters.values():
        variable.assign(rng.normal(0.1, 0.5, variable.shape).astype(np.float32))
    return {name: variable.numpy().astype(np.float64) for name, variable in model.parameters.items()}


def gpt2() -> Any:
    return text.GPT2(vocab_size=11, n_positions=9, n_embd=6, n_layer=2, n_head=3)


def llama(**options: Any) -> Any:
    return text.Llama(11, 8, 12, 2, 4, 2, max_position_embeddings=9, **options)


def expected_gpt2(w: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    w = {name.removeprefix("transformer."): array for name, array in w.items()}
    x = w["wte.weight"][tokens] + w["wpe.weight"][: tokens.shape[1]]
    mask = np.tri(tokens.shape[1], dtype=bool)
    for layer in range(2):
        p = f"h.{layer}"
        y = norm(x, w, f"{p}.ln_1", 1e-5) @ w[f"{p}.attn.c_attn.weight"] + w[f"{p}.attn.c_attn.bias"]
        y = joined(attention(*(heads(part, 3) for part in np.split(y, 3, -1)), mask))
        x = x + y @ w[f"{p}.attn.c_proj.weight"] + w[f"{p}.attn.c_proj.bias"]
        y = norm(x, w, f"{p}.ln_2", 1e-5) @ w[f"{p}.mlp.c_fc.weight"] + w[f"{p}.mlp.c_fc.bias"]
        y = 0.5 * y * (1 + np.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))
        x = x + y @ w[f"{p}.mlp.c_proj.weight"] + w[f"{p}.mlp.c_proj.bias"]
    return norm(x, w, "ln_f", 1e-5) @ w["wte.weight"].T


def rotated(x: np.ndarray, base: float) -> np.ndarray:
    """By complex numbers, one for each pair of features."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[2])[:, None] * base ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], -1)


def expected_llama(w: dict[str, np.ndarray], tokens: np.ndarray) -> np.ndarray:
    x = w["model.embed_tokens.weight"][tokens]
    mask = np.tri(tokens.shape[1], dtype=bool)
    for layer in range(2):
        p = f"model.layers.{layer}"
        y = scaled(x, w[f"{p}.input_layernorm.weight"], 1e-6)
        q, k, v = (
            heads(y @ w[f"{p}.self_attn.{n}_proj.weight"].T, count) for n, count in (("q", 4), ("k", 2), ("v", 2))
        )
        q, k = rotated(q, 10000.0), rotated(k, 10000.0)
        x = x + joined(attention(q, k.repeat(2, 1), v.repeat(2, 1), mask)) @ w[f"{p}.self_attn.o_proj.weight"].T
        y = scaled(x, w[f"{p}.post_attention_layernorm.weight"], 1e-6)
        gate = y @ w[f"{p}.mlp.gate_proj.weight"].T
        y = gate / (1 + np.exp(-gate)) * (y @ w[f"{p}.mlp.up_proj.weight"].T)
        x = x + y @ w[f"{p}.mlp.down_proj.weight"].T
    return scaled(x, w["model.norm.weight"], 1e-6) @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


DECODERS = {"gpt2": (gpt2, expected_gpt2), "llama": (llama, expected_llama)}


@pytest.mark.parametrize("name", DECODERS)
def test_decoders(name: str) -> None:
    make, formula = DECODERS[name]
    model = make()
    expected = formula(randomized(model), TOKENS)
    found = model(TOKENS).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-4)
    cache, parts = model.start(2), []
    for part in (TOKENS[:, :3], TOKENS[:, 3:4], TOKENS[:, 4:]):
        logits, cache = model(part, cache)
        parts.append(logits.numpy())
    np.testing.assert_allclose(np.concatenate(parts, 1), expected, rtol=2e-4, atol=2e-4)
    assert cache.length.item() == 5
    told = model.generate(TOKENS[:, :2], 3)
    for step in range(2, 5):  # each token is the likeliest after those before it
        np.testing.assert_array_equal(told[:, step], model(told[:, :step]).numpy()[:, -1].argmax(-1))
    end = int(told[0, 2])
    stopped = model.generate(TOKENS[:1, :2], 3, end=end)
    assert stopped.tolist() == [[*TOKENS[0, :2].tolist(), end]]
    with pytest.raises(errors.ArgumentError, match="not within 9 positions"):
        model.generate(TOKENS, 5)
    with pytest.raises(errors.ShapeError):
        model(TOKENS[0])
    _, full = model(TOKENS[:, :2], model.start(2, 2))
    for call in (model, hf.function(model)):
        with pytest.raises(errors.ArgumentError, match="2 places, and no room for 1 more"):
            call(TOKENS[:, 2:3], full)


def test_an_encoder() -> None:
    model = text.BERT(11, 6, 2, 3, 10, 8)
    w = randomized(model)
    kinds, mask = np.array([[0, 0, 1, 1, 1]] * 2), np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    x = w["embeddings.word_embeddings.weight"][TOKENS] + w["embeddings.token_type_embeddings.weight"][kinds]
    x = norm(x + w["embeddings.position_embeddings.weight"][:5], w, "embeddings.LayerNorm", 1e-12)

    def linear(y: np.ndarray, name: str) -> np.ndarray:
        return y @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    erf = np.vectorize(math.erf)
    for layer in range(2):
        p = f"encoder.layer.{layer}"
        parts = [heads(linear(x, f"{p}.attention.self.{n}"), 3) for n in ("query", "key", "value")]
        y = joined(attention(*parts, mask[:, None, None].astype(bool)))
        x = norm(x + linear(y, f"{p}.attention.output.dense"), w, f"{p}.attention.output.LayerNorm", 1e-12)
        y = linear(x, f"{p}.intermediate.dense")
        y = linear(0.5 * y * (1 + erf(y / math.sqrt(2))), f"{p}.output.dense")
        x = norm(x + y, w, f"{p}.output.LayerNorm", 1e-12)
    steps, pooled = model(TOKENS, kinds, mask)
    np.testing.assert_allclose(steps.numpy(), x, rtol=5e-4, atol=5e-4)
    np.testing.assert_allclose(pooled.numpy(), np.tanh(linear(x[:, 0], "pooler.dense")), rtol=5e-4, atol=5e-4)


def test_names_and_shapes() -> None:
    """Those of ``GPT2LMHeadModel``, ``BertModel`` and ``LlamaForCausalLM``, without heads that are tied."""
    shapes = {name: tuple(variable.shape) for name, variable in gpt2().parameters.items()}
    assert len(shapes) == 2 + 2 * 12 + 2
    assert shapes["transformer.h.1.attn.c_attn.weight"] == (6, 18)
    assert shapes["transformer.h.0.mlp.c_proj.weight"] == (24, 6)
    shapes = {name: tuple(variable.shape) for name, variable in llama().parameters.items()}
    assert len(shapes) == 1 + 2 * 9 + 2
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == (4, 8)
    assert shapes["lm_head.weight"] == (11, 8)
    assert "lm_head.weight" not in llama(tie_word_embeddings=True).parameters
    shapes = {name: tuple(variable.shape) for name, variable in text.BERT(11, 6, 2, 3, 10, 8).parameters.items()}
    assert len(shapes) == 5 + 2 * 16 + 2
    assert shapes["encoder.layer.1.intermediate.dense.weight"] == (10, 6)


def test_folders(tmp_path: Path) -> None:
    model = llama()
    w = randomized(model)
    config = {
        "vocab_size": 11,
        "hidden_size": 8,
        "intermediate_size": 12,
        "num_hidden_layers": 2,
        "model_type": "llama",
    }
    config |= {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 9, "hidden_act": "silu"}
    (tmp_path / "config.json").write_text(json.dumps(config | {"rope_parameters": {"rope_theta": 10000.0}}))
    names = list(w)
    placed = {name: f"part-{number % 2}.safetensors" for number, name in enumerate(names)}
    for file in set(placed.values()):
        arrays = {name: model.parameters[name] for name in names if placed[name] == file}
        hf.checkpoint.save_arrays(tmp_path / file, arrays)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": placed}))
    again = text.Llama.from_folder(tmp_path)
    np.testing.assert_array_equal(again(TOKENS).numpy(), model(TOKENS).numpy())
    for wrong in ({"rope_scaling": {"factor": 8}}, {"hidden_act": "gelu"}, {"model_type": "granite"}):
        (tmp_path / "config.json").write_text(json.dumps(config | wrong))
        with pytest.raises(errors.ArgumentError, match=next(iter(wrong))):
            text.Llama.from_folder(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../x.safetensors"}}))
    with pytest.raises(errors.CheckpointError, match="no file beside it"):
        model.load(tmp_path)
    with pytest.raises(errors.ArgumentError, match=r"there is no .*config.json"):
        text.BERT.from_folder(tmp_path / "nowhere")


def test_files_of_others(tmp_path: Path) -> None:
    model = gpt2()
    arrays = {name.removeprefix("transformer."): variable for name, variable in model.parameters.items()}
    path = tmp_path / "model.safetensors"
    hf.checkpoint.save_arrays(path, arrays | {"h.0.attn.bias": np.ones((1, 1, 9, 9), np.float32)})
    randomized(model)
    assert model.load(path).parameters["transformer.ln_f.bias"].numpy().tolist() == [0] * 6
    hf.checkpoint.save_arrays(path, arrays | {"other": np.ones(1)})
    with pytest.raises(errors.CheckpointError, match="the file has 'other'"):
        model.load(path)
    hf.checkpoint.save_arrays(path, arrays | {"wpe.weight": np.ones((3, 6))})
    with pytest.raises(errors.CheckpointError, match=r"wpe\.weight"):
        model.load(path)
    del arrays["ln_f.bias"]
    hf.checkpoint.save_arrays(path, arrays)
    with pytest.raises(errors.CheckpointError, match=r"lacks transformer.ln_f.bias; 1 in all"):
        model.load(path)
    with pytest.raises(errors.ArgumentError, match="there is no"):
        text.load_tokenizer(tmp_path)
