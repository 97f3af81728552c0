"""Python's control flow over tensors, while it is traced: what converted code calls (see ``convert.flow``)."""

__traits__ = ("stands in",)
