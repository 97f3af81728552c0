"""The command line: ``hybridflow run | bench | explain | profile | ir | onnx | compile | serve | doctor | cache``."""

__traits__ = ("impure",)
