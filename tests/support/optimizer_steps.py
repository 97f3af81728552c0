"""What 20 steps of Keras's optimizers make of three variables; run as a program, beside Keras, it records that.

``KERAS_BACKEND=torch python tests/support/optimizer_steps.py`` writes ``optimizer_steps.json`` (Keras 3.15 did).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

RECORDED = Path(__file__).resolve().parents[1] / "data" / "optimizer_steps.json"
SHAPES = [(3, 4), (4,), ()]
STEPS = 20
# What is evaluated with the optimizers as O and their schedules as S.
CASES = {
    "sgd": "O.SGD(0.05)",
    "sgd momentum": "O.SGD(0.05, momentum=0.9)",
    "sgd nesterov": "O.SGD(0.05, momentum=0.9, nesterov=True)",
    "adagrad": "O.Adagrad(0.05)",
    "adadelta": "O.Adadelta(0.5)",
    "rmsprop": "O.RMSprop(0.05)",
    "rmsprop centered momentum": "O.RMSprop(0.05, momentum=0.9, centered=True)",
    "adam": "O.Adam(0.05)",
    "adam amsgrad": "O.Adam(0.05, amsgrad=True)",
    "adamw": "O.AdamW(0.05, weight_decay=0.1)",
    "adamax": "O.Adamax(0.05)",
    "nadam": "O.Nadam(0.05)",
    "lion": "O.Lion(0.05)",
    "lamb": "O.Lamb(0.05)",
    "ftrl": "O.Ftrl(0.05)",
    "ftrl all": "O.Ftrl(0.05, -0.6, 0.1, 0.3, 0.02, 0.05, 0.2)",
    "adafactor": "O.Adafactor(0.05)",
    "adafactor all": "O.Adafactor(0.3, -0.7, 1e-20, 0.01, 0.5, False)",
    "muon": "O.Muon(0.05)",
    "muon plain": "O.Muon(0.05, weight_decay=None, nesterov=False, rms_rate=None, ns_steps=3, adam_lr_ratio=0.5)",
    "sgd loss scale": "O.SGD(0.05, momentum=0.9, loss_scale_factor=8.0)",
    "sgd weight decay": "O.SGD(0.05, momentum=0.9, weight_decay=0.1)",
    "rmsprop weight decay": "O.RMSprop(0.05, weight_decay=0.1)",
    "lion weight decay": "O.Lion(0.05, weight_decay=0.1)",
    "adam clipnorm": "O.Adam(0.05, clipnorm=0.7)",
    "adam clipvalue": "O.Adam(0.05, clipvalue=0.3)",
    "sgd global clipnorm": "O.SGD(0.05, momentum=0.9, global_clipnorm=0.9)",
    "adam ema": "O.Adam(0.05, use_ema=True, ema_momentum=0.9)",
    "adam ema finalized": "O.Adam(0.05, use_ema=True, ema_momentum=0.9)",
    "adam ema overwriting": "O.Adam(0.05, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=5)",
    "adam accumulation": "O.Adam(0.05, gradient_accumulation_steps=4)",
    "adam accumulation ema": "O.Adam(0.05, gradient_accumulation_steps=3, use_ema=True, ema_momentum=0.8)",
    "sgd accumulation ema overwriting": (
        "O.SGD(0.05, gradient_accumulation_steps=2, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=3)"
    ),
    "sgd accumulation clipping decay": (
        "O.SGD(0.05, momentum=0.9, gradient_accumulation_steps=3, clipnorm=0.8, weight_decay=0.05)"
    ),
    "adam exponential": "O.Adam(S.ExponentialDecay(0.1, 5, 0.8))",
    "adam staircase": "O.Adam(S.ExponentialDecay(0.1, 5, 0.8, staircase=True))",
    "sgd cosine": "O.SGD(S.CosineDecay(0.1, 15, alpha=0.05))",
    "sgd cosine warmup": "O.SGD(S.CosineDecay(0.01, 10, warmup_target=0.1, warmup_steps=5))",
    "sgd restarts": "O.SGD(S.CosineDecayRestarts(0.1, 4, t_mul=1.5, m_mul=0.9, alpha=0.1))",
    "sgd piecewise": "O.SGD(S.PiecewiseConstantDecay([5, 12], [0.1, 0.05, 0.01]))",
    "sgd polynomial": "O.SGD(S.PolynomialDecay(0.1, 7, 0.01, power=2.0, cycle=True))",
    "sgd inverse time": "O.SGD(S.InverseTimeDecay(0.1, 3, 0.5))",
}


def arrays(seed: int) -> list[np.ndarray]:
    """The values that variables start from, and with another seed the gradients of a step."""
    random = np.random.default_rng(seed)
    return [np.asarray(random.standard_normal(shape)).astype("f4") for shape in SHAPES]


def made(name: str, optimizers: Any) -> Any:
    """The optimizer of a case, of the library whose optimizers these are."""
    return eval(CASES[name], {"O": optimizers, "S": optimizers.schedules})


def main() -> None:
    """Record what Keras does."""
    import keras

    lines = []
    for name in CASES:
        optimizer, variables = made(name, keras.optimizers), [keras.Variable(value) for value in arrays(7)]
        optimizer.build(variables)
        for step in range(STEPS):
            optimizer.apply([keras.ops.convert_to_tensor(g) for g in arrays(100 + step)], variables)
        if name.endswith("finalized"):
            optimizer.finalize_variable_values(variables)
        found = [keras.ops.convert_to_numpy(v).ravel().tolist() for v in variables]
        digits = [[float(f"{number:.9g}") for number in numbers] for numbers in found]
        lines.append(f"{json.dumps(name)}: {json.dumps(digits)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
