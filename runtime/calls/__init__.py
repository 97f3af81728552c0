"""Native calls: from a Python call to machine code without a Python frame between."""
