"""Classes of ``tf.keras`` that take keywords of older programs beside their own."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
from hybridflow.compat.export import export
from hybridflow.compat.facade import Facade


def _with_old(kind: Any, old: dict[str, str | None]) -> Any:
    """The class; ``old`` says what its keywords were called before, None for those that mean nothing."""

    def make(*args: Any, **kwargs: Any) -> Any:
        for name, now in old.items():
            if name in kwargs:
                value = kwargs.pop(name)
                if now is not None:
                    kwargs[now] = value
        return kind(*args, **kwargs)

    return Facade(kind, make)


Embedding = _with_old(hf.layers.Embedding, {"input_length": None})
LeakyReLU = _with_old(hf.layers.LeakyReLU, {"alpha": "negative_slope"})
SGD, Adam, AdamW, RMSprop, Adagrad, Adadelta, Adamax, Nadam, Ftrl = (
    _with_old(getattr(hf.optimizers, name), {"lr": "learning_rate"})
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "Nadam", "Ftrl")
)


export(Embedding, "keras.layers.Embedding")
export(LeakyReLU, "keras.layers.LeakyReLU")
export(SGD, "keras.optimizers.SGD")
export(Adam, "keras.optimizers.Adam")
export(AdamW, "keras.optimizers.AdamW")
export(RMSprop, "keras.optimizers.RMSprop")
export(Adagrad, "keras.optimizers.Adagrad")
export(Adadelta, "keras.optimizers.Adadelta")
export(Adamax, "keras.optimizers.Adamax")
export(Nadam, "keras.optimizers.Nadam")
export(Ftrl, "keras.optimizers.Ftrl")
