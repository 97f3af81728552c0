"""The memory of arrays: a pool of blocks that are used again."""
