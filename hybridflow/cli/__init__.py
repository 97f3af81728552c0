"""The command line: ``hybridflow run | bench | explain | profile | report | ir | onnx | compile | train | eval |
predict | serve | doctor | cache``."""

__traits__ = ("impure",)
