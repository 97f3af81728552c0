"""Training that a TOML file describes: ``hybridflow train | eval | predict``."""

__traits__ = ("impure",)
