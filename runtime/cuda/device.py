"""What the process keeps of each GPU that it uses."""

from __future__ import annotations

from hybridflow.runtime import locks
from hybridflow.runtime.cuda import gpus
from hybridflow.runtime.cuda.driver import Driver, driver
from hybridflow.runtime.cuda.events import Events
from hybridflow.runtime.cuda.pending import Ledger
from hybridflow.runtime.cuda.transfers import Transfers


class Device:
    """A GPU in use: the driver, events, programs whose checks are to be looked at, and copies under way."""

    def __init__(self, number: int) -> None:
        gpus.check_device(number)
        with gpus.on(number):
            self.driver: Driver = driver()
            self.events = Events(self.driver)
            self.ledger = Ledger(self.driver, self.events)
            self.transfers = Transfers(self.driver, self.events)


_devices: dict[int, Device] = {}
_lock = locks.make()


def device(number: int) -> Device:
    """The GPU of a number.  Raises DeviceError where there is none that can be used."""
    found = _devices.get(number)
    if found is None:
        with _lock:
            found = _devices.get(number)
            if found is None:
                found = _devices[number] = Device(number)
    return found
