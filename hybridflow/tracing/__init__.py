"""From Python functions to graphs: what a function's source says, and what its calls record."""

__traits__ = ("between",)
