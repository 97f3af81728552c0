"""What converted code calls: reads, writes, calls, and control flow that a tensor may decide."""

__traits__ = ("stands in", "records")
