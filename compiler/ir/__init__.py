"""The typed IR: dtypes, tensor types, graphs, their builder, text form and verifier."""
