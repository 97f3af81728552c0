"""TensorFlow's ``tf.profiler``, of which nothing is written: ``f.profile(*args)`` says what calls take."""

from __future__ import annotations

from hybridflow.compat.export import tf_export


@tf_export("profiler.experimental.start")
def start(logdir: str, options: object = None) -> None:
    """``tf.profiler.experimental.start``: nothing is written; see ``f.profile(*args)``."""


@tf_export("profiler.experimental.stop")
def stop(save: bool = True) -> None:
    """``tf.profiler.experimental.stop``."""


@tf_export("profiler.experimental.ProfilerOptions")
class ProfilerOptions:
    """``tf.profiler.experimental.ProfilerOptions``."""

    def __init__(self, **options: object) -> None:
        self.options = options


@tf_export("profiler.experimental.Trace", "profiler.experimental.Profile")
class Trace:
    """A block that is named in a profile of TensorFlow's."""

    def __init__(self, name: object, *args: object, **options: object) -> None:
        self.name = name

    def __enter__(self) -> Trace:
        return self

    def __exit__(self, *error: object) -> None:
        return None
