"""The command line: ``hybridflow run | bench | explain | profile | ir | onnx | train | compile | serve | cache``."""

__traits__ = ("impure",)
