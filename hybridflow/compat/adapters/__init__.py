"""Functions of TensorFlow that mean something else than those here: what differs, over what is here."""
