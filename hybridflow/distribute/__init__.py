"""Training shared out over replicas: ``hf.distribute``.

A strategy, or a mesh, has *logical replicas*: how many is part of the program.  What they compute together has the same
bits however many processes share them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING as _TYPE_CHECKING

from hybridflow.core import name_hints as _name_hints
from hybridflow.distribute.collectives import (
    all_gather,
    all_reduce,
    all_to_all,
    axis_index,
    axis_size,
    barrier,
    broadcast,
    permute,
    process_count,
    process_index,
    reduce_scatter,
)
from hybridflow.distribute.mesh import Mesh, NamedSharding, P, make_mesh
from hybridflow.distribute.shard_map import shard_map
from hybridflow.distribute.strategy import (
    DistributedDataset,
    MirroredStrategy,
    PerReplica,
    get_strategy,
    has_strategy,
)

__all__ = [
    "DistributedDataset",
    "Mesh",
    "MirroredStrategy",
    "NamedSharding",
    "P",
    "PerReplica",
    "all_gather",
    "all_reduce",
    "all_to_all",
    "axis_index",
    "axis_size",
    "barrier",
    "broadcast",
    "get_strategy",
    "has_strategy",
    "make_mesh",
    "permute",
    "process_count",
    "process_index",
    "reduce_scatter",
    "shard_map",
]

if not _TYPE_CHECKING:  # a checker would take every name for one of ours
    __getattr__, __dir__ = _name_hints.answers(__name__, __all__)
