"""Prefix scans, sorts, top-k, scatters and histograms."""
