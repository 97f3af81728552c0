"""The command line: ``hybridflow bench | explain | profile | ir | onnx | doctor | cache``.  Nothing else imports it."""
