"""Python's control flow over tensors: found in source, converted, and run while functions are traced."""

__traits__ = ("between",)
