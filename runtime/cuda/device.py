"""What the process keeps of each GPU that it uses."""

from __future__ import annotations

from typing import Any

from hybridflow.runtime import fork_safe_locks
from hybridflow.runtime.cuda import gpu_memory
from hybridflow.runtime.cuda.cublaslt import CublasLt
from hybridflow.runtime.cuda.driver import MULTIPROCESSORS, Driver, driver
from hybridflow.runtime.cuda.events import Events
from hybridflow.runtime.cuda.pending_checks import PendingChecks
from hybridflow.runtime.cuda.pinned_transfers import Transfers


class Device:
    """A GPU in use: the driver, events, programs whose checks are to be looked at, and copies under way."""

    def __init__(self, number: int) -> None:
        gpu_memory.check_device(number)
        with gpu_memory.on(number):
            self.driver: Driver = driver()
            self.events = Events(self.driver)
            self.ledger = PendingChecks(self.driver, self.events)
            self.transfers = Transfers(self.driver, self.events)
            self.multiprocessors = self.driver.number(
                "cuDeviceGetAttribute", MULTIPROCESSORS, self.driver.number("cuCtxGetDevice")
            )
        self._library: CublasLt | None = None
        self._unused: list[tuple[str, int, Any]] = []

    @property
    def library(self) -> CublasLt:
        """cuBLASLt on this GPU, which has to be the current one.  Raises DeviceError where it cannot be loaded."""
        if self._library is None:
            self._library = CublasLt()
        return self._library

    def blocks_at_once(self, function: int, threads: int, memory: int = 0) -> int:
        """How many blocks of a kernel are on the GPU at once, which ask for so many bytes of memory."""
        each = self.driver.number("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, threads, memory)
        return each * self.multiprocessors

    def retire(self, destroy: str, handle: int, memory: object = None) -> None:
        """Have something destroyed, by that function of the driver, and memory let go, when nothing uses it any more.
        Finalizers call this, which run anywhere."""
        self._unused.append((destroy, handle, memory))

    def tidy(self) -> None:
        """Destroy what was retired; waits for the GPU, so it is done where that takes long anyway."""
        if self._unused:
            unused, self._unused = self._unused, []
            self.driver.call("cuCtxSynchronize")
            for destroy, handle, _ in sorted(unused, key=lambda item: item[0]):  # graphs before their modules
                self.driver.status(destroy, handle)


_devices: dict[int, Device] = {}
_lock = fork_safe_locks.make()


def device(number: int) -> Device:
    """The GPU of a number.  Raises DeviceError where there is none that can be used."""
    result = _devices.get(number)
    if result is None:
        with _lock:
            result = _devices.get(number)
            if result is None:
                result = _devices[number] = Device(number)
    return result
