"""NVIDIA GPUs: assembling, loading and launching of programs."""
