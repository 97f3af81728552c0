"""What Keras's layers inherit from a backend."""


class Layer:
    """Nothing: Keras's own methods do."""
