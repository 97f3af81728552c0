"""CUDA programs: load them onto a GPU and run them.  Launches are CuPy's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridflow.compiler.program import Buffer, DeviceCopy, Extent, Launch, Program, value_at
from hybridflow.runtime import arguments
from hybridflow.runtime.cuda import gpus, ptx
from hybridflow.runtime.dtypes import NUMPY

MOST_THREADS = 1 << 20  # of a launch: several for each that a GPU runs at once; each walks several units then
SCRATCH_BYTES = 1 << 28  # of a launch: what needs scratch runs on so few threads that they share this much


def _entry_points(program: Program) -> dict[str, Any]:
    """The loaded entry points of a program, on the current device."""
    module = gpus.cupy().cuda.function.Module()
    module.load(ptx.assemble(program).encode() + b"\0")
    return {launch.symbol: module.get_function(launch.symbol) for launch in program.launches}


class CudaExecutable:
    """A program loaded onto one GPU."""

    def __init__(self, program: Program, device: int) -> None:
        self.program, self.device = program, device
        with gpus.cupy().cuda.Device(device):
            self._functions = _entry_points(program)
        self.updated = arguments.updated(program)

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """Run on CuPy arrays of the device, one per input slot, and return fresh outputs.  State inputs are updated in
        place, if nothing is raised.

        A program without checks is only enqueued, on the current stream; one with checks is waited for.  Raises
        ShapeError or DTypeError where an array is not of its slot's type, and the error of a run-time check that fails.
        """
        dims = arguments.bind_dims(self.program, arrays)
        for i in self.updated:
            if not arrays[i].flags.c_contiguous:
                raise arguments.not_updatable(self.program, i)
        with gpus.cupy().cuda.Device(self.device):
            inputs = self._without_aliases([self._checked(i, array, dims) for i, array in enumerate(arrays)])
            targets = [
                inputs[i] if self.program.inputs[i].in_place else gpus.cupy().empty(inputs[i].shape, inputs[i].dtype)
                for i in self.updated
            ]
            outputs = self._run(inputs, targets, dims)
            for i, target in zip(self.updated, targets):
                if target is not inputs[i]:
                    _copy_bytes(inputs[i].data.ptr, target.data.ptr, target.nbytes)
        return outputs

    def compute(self, arrays: Sequence[Any], in_place: bool) -> tuple[list[Any], list[Any]]:
        """The outputs, and the new values of the state: fresh arrays, or where ``in_place`` says so, and every slot
        allows it, the arrays of the old ones.  Raises as ``run`` does; what is raised leaves the state as it was."""
        dims = arguments.bind_dims(self.program, arrays)
        with gpus.cupy().cuda.Device(self.device):
            inputs = [self._checked(i, array, dims) for i, array in enumerate(arrays)]
            if in_place:
                targets = [inputs[i] for i in self.updated]
            else:
                slots = [self.program.inputs[i] for i in self.updated]
                targets = [gpus.cupy().empty(arguments.extents(s, dims), NUMPY[s.dtype]) for s in slots]
            return self._run(inputs, targets, dims), targets

    @property
    def may_write_in_place(self) -> bool:
        """Whether every update may go where the old value is."""
        return all(self.program.inputs[i].in_place for i in self.updated)

    def _run(self, inputs: list[Any], targets: list[Any], dims: dict[str, int]) -> list[Any]:
        outputs = [gpus.cupy().empty(arguments.extents(s, dims), NUMPY[s.dtype]) for s in self.program.outputs]
        buffers = {"input": inputs, "output": outputs, "update": targets}
        _Run(self.program, self._functions, buffers, dims).perform()
        return outputs

    def _checked(self, i: int, array: Any, dims: dict[str, int]) -> Any:
        """The array as kernels may read it: of the slot's type, and contiguous."""
        arguments.check(self.program, i, array, dims)
        return array if array.flags.c_contiguous else gpus.cupy().ascontiguousarray(array)

    def _without_aliases(self, inputs: list[Any]) -> list[Any]:
        """Copies in the place of inputs that overlap one that is written in place."""
        for u in self.updated:
            for i, array in enumerate(inputs):
                if i == u or not _overlap(array, inputs[u]):
                    continue
                if i in self.updated:
                    raise arguments.both_updated(self.program, u, i)
                inputs[i] = array.copy()
        return inputs


def _overlap(a: Any, b: Any) -> bool:
    """Whether two contiguous arrays share memory."""
    return a.data.ptr < b.data.ptr + b.nbytes and b.data.ptr < a.data.ptr + a.nbytes


class _Run:
    """One run of a program.  Memory that it holds may be freed when it is over, though kernels are still running: the
    pool hands it out in the order of the stream."""

    def __init__(
        self, program: Program, functions: dict[str, Any], buffers: dict[str, list[Any]], dims: dict[str, int]
    ) -> None:
        self.program, self.functions, self.buffers, self.dims = program, functions, buffers, dims
        self.arena = _bytes(value_at(program.arena_bytes, dims))
        # A word for the state before the first launch, which is good, and one for each launch that raises.
        raising = sum(launch.raises for launch in program.launches)
        self.words = gpus.cupy().zeros(1 + raising, np.int32) if raising else None
        self.raised = 0  # launches so far that may have raised

    def perform(self) -> None:
        for copy in self.program.before:
            self._copy(copy)
        for launch in self.program.launches:
            self._launch(launch)
        if self.words is not None:
            status = -int(self.words.get()[-1])
            if status:
                arguments.raise_check(self.program, status)
        for copy in self.program.after:
            self._copy(copy)

    def _launch(self, launch: Launch) -> None:
        units = self._size(launch.units)
        if not units and not launch.raises:  # what raises must hand on the status, if it does nothing else
            return
        scratch_bytes = self._size(launch.scratch_bytes)
        teams = min(max(units, 1), max(MOST_THREADS // launch.team, 1))
        if scratch_bytes:
            teams = max(1, min(teams, SCRATCH_BYTES // (scratch_bytes * launch.team)))
        threads = launch.team * teams
        block = min(threads, launch.block)
        grid = -(-threads // block)
        scratch = _bytes(grid * block * scratch_bytes)
        failed = status = 0
        if self.words is not None:
            failed = self.words.data.ptr + 4 * self.raised
            self.raised += launch.raises
            status = self.words.data.ptr + 4 * self.raised
        addresses = [*map(self._address, launch.arguments), scratch.data.ptr, failed, status]
        given = [*map(np.uint64, addresses), *map(np.int64, (units, *self.dims.values()))]
        self.functions[launch.symbol]((grid,), (block,), given)

    def _copy(self, copy: DeviceCopy) -> None:
        target, source = self._address(copy.target), self._address(copy.source)
        if target != source:  # an update that lies over its input
            _copy_bytes(target, source, self._size(copy.size))

    def _address(self, buffer: Buffer) -> int:
        if buffer.kind == "arena":
            return self.arena.data.ptr + self._size(buffer.offset)
        return self.buffers[buffer.kind][buffer.number].data.ptr

    def _size(self, size: Extent) -> int:
        return value_at(size, self.dims)


def _copy_bytes(target: int, source: int, size: int) -> None:
    runtime, stream = gpus.cupy().cuda.runtime, gpus.cupy().cuda.get_current_stream()
    runtime.memcpyAsync(target, source, size, runtime.memcpyDeviceToDevice, stream.ptr)


def _bytes(size: int) -> Any:
    return gpus.cupy().empty(size, np.uint8)


def load(program: Program, device: int) -> CudaExecutable:
    """A CUDA program, loaded onto a GPU.  Raises DeviceError where there is none of that number."""
    gpus.check_device(device)
    return CudaExecutable(program, device)
