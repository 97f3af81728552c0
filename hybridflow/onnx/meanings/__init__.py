"""What the operators of ONNX mean, by subject: functions that enter themselves into ``operators``."""
