"""Fused groups become loop nests with index maps."""
