"""What everything else is built on: tensors and variables, the state of the running code, devices, containers."""

__traits__ = ("between",)
