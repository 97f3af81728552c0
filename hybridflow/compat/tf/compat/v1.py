"""TensorFlow's ``tf.compat.v1``, which is ``hybridflow.compat.v1``."""

from typing import Any

from hybridflow.compat import v1


def __getattr__(name: str) -> Any:
    return getattr(v1, name)


def __dir__() -> list[str]:
    return dir(v1)
