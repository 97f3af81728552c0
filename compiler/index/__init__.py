"""Index expressions: which elements nodes read, and what follows from that."""
