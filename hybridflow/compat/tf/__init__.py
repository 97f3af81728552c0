"""TensorFlow 2's names over hybridflow: ``import hybridflow.compat.tf as tf``.

What a name stands for is beside it, in a decorator: see ``hybridflow.compat.export``.  Arguments, defaults and dtypes
are TensorFlow's.
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING, Any as _Any

from hybridflow.autodiff.sparse_gradient import show_all as _show_all
from hybridflow.compat.adapters import (  # noqa: F401  # each enters its names
    arrays as _arrays,
    averages as _averages,
    boxes as _boxes,
    candidates as _candidates,
    control as _control,
    datasets as _datasets,
    downloads as _downloads,
    draws as _draws,
    extension_types as _extension_types,
    files as _files,
    graphs as _graphs,
    keras_layers as _keras_layers,
    keras_names as _keras_names,
    models as _models,
    numpy_names as _numpy_names,
    records as _records,
    replicas as _replicas,
    scripts as _scripts,
    sequence_records as _sequence_records,
    sequences as _sequences,
    settings as _settings,
    special as _special,
    texts as _texts,
    values as _values,
)
from hybridflow.compat.adapters.tensors import install as _install
from hybridflow.compat.tf import (
    absent as _absent,  # noqa: F401
    audio as audio,
    autodiff as autodiff,
    bitwise as bitwise,
    config as config,
    data as data,
    debugging as debugging,
    dtypes as dtypes,
    errors as errors,
    experimental as experimental,
    image as image,
    io as io,
    keras as keras,
    linalg as linalg,
    lookup as lookup,
    math as math,
    names as _names,
    nn as nn,
    profiler as profiler,
    queue as queue,
    ragged as ragged,
    random as random,
    sets as sets,
    signal as signal,
    sparse as sparse,
    strings as strings,
    summary as summary,
    types as types,
)

if _TYPE_CHECKING:  # the names of ``tf`` itself, for tools that read this file
    from hybridflow.compat.adapters.arrays import *  # type: ignore[no-redef]  # noqa: F403
    from hybridflow.compat.adapters.control import *  # type: ignore[no-redef]  # noqa: F403
    from hybridflow.compat.adapters.values import *  # type: ignore[no-redef]  # noqa: F403
    from hybridflow.compat.tf.linalg import *  # type: ignore[no-redef]  # noqa: F403
    from hybridflow.compat.tf.math import *  # type: ignore[no-redef]  # noqa: F403

    def __getattr__(name: str) -> _Any: ...


_show_all()  # TensorFlow's gradients of look-ups are IndexedSlices, however small the table
_install()
_graphs.install()
__version__ = "2.21.0"
_names.fill()
