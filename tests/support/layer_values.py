"""What some of Keras's layers make of given weights and inputs; run as a program, beside Keras, it records that.

``python tests/support/layer_values.py`` writes ``layer_values.json`` (Keras 3.15 on TensorFlow 2.21 did).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).resolve().parents[1] / "data" / "layer_values.json"
# Name of the layer, its arguments, the shapes of its inputs, arguments of the call.
CASES: dict[str, tuple[str, dict[str, Any], list[tuple[int, ...]], dict[str, Any]]] = {
    "sequences and states": (
        "ConvLSTM2D",
        {"filters": 2, "kernel_size": (2, 3), "padding": "same", "return_sequences": True, "return_state": True},
        [(2, 3, 4, 4, 2)],
        {},
    ),
    "strides, backwards": (
        "ConvLSTM2D",
        {"filters": 2, "kernel_size": 2, "strides": 2, "recurrent_activation": "hard_sigmoid", "go_backwards": True},
        [(1, 3, 5, 4, 2)],
        {},
    ),
    "dilated": (
        "ConvLSTM1D",
        {"filters": 3, "kernel_size": 2, "dilation_rate": 2, "unit_forget_bias": False},
        [(2, 3, 6, 2)],
        {},
    ),
    "volumes": ("ConvLSTM3D", {"filters": 1, "kernel_size": 2, "padding": "same"}, [(1, 2, 3, 3, 2, 2)], {}),
    "groups": (
        "GroupQueryAttention",
        {"head_dim": 2, "num_query_heads": 4, "num_key_value_heads": 2},
        [(2, 4, 3), (2, 4, 5)],
        {"return_attention_scores": True, "use_causal_mask": True},
    ),
    "groups, gate, window": (
        "GroupQueryAttention",
        {"head_dim": 3, "num_query_heads": 2, "num_key_value_heads": 1, "use_gate": True, "sliding_window": 2},
        [(2, 4, 3), (2, 5, 3)],
        {"return_attention_scores": True},
    ),
}


def arrays(seed: int, shapes: list[tuple[int, ...]]) -> list[np.ndarray]:
    """Inputs, and with another seed weights."""
    random = np.random.default_rng(seed)
    return [np.asarray(random.standard_normal(shape)).round(2).astype("f4") for shape in shapes]


def results(name: str, layers: Any) -> tuple[Any, list[np.ndarray]]:
    """The layer of a case, of the library whose layers these are, and what it makes of the inputs."""
    kind, arguments, shapes, options = CASES[name]
    layer = getattr(layers, kind)(**arguments)
    inputs = arrays(1, shapes)
    layer(*inputs)
    layer.set_weights(arrays(2, [weight.shape for weight in layer.get_weights()]))
    made = layer(*inputs, **options)
    return layer, [np.asarray(one) for one in (made if isinstance(made, (list, tuple)) else [made])]


def normalized(layers: Any) -> list[np.ndarray]:
    """What ``SpectralNormalization`` makes of an input in three calls, then of the kernel and its own vector."""
    dense = layers.Dense(3)
    layer = layers.SpectralNormalization(dense, power_iterations=2)
    (x,) = arrays(3, [(2, 4)])
    layer(x)
    dense.kernel.assign(arrays(4, [(4, 3)])[0])
    layer.vector_u.assign([[0.5, -0.25, 1.0]])
    made = [layer(x, training=True) for _ in range(3)]
    return [np.asarray(one) for one in (*made, dense.kernel, layer.vector_u)]


def main() -> None:
    """Record what Keras does."""
    import keras

    found = {name: results(name, keras.layers)[1] for name in CASES} | {"normalized": normalized(keras.layers)}
    lines = []
    for name, values in found.items():
        digits = [[float(f"{number:.9g}") for number in value.ravel().tolist()] for value in values]
        lines.append(f"{json.dumps(name)}: {json.dumps(digits)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
