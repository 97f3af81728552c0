"""Control flow as functions: branches and loops that are part of a compiled program, and plain Python elsewhere."""
