"""Modules and layers: objects that hold variables."""
