"""Classes of ``tf.keras`` that take keywords of older programs beside their own."""

from __future__ import annotations

from typing import Any

import hybridflow as hf
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
