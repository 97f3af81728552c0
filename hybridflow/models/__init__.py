"""Models: layers with ``compile``, ``fit``, ``evaluate`` and ``predict``."""
