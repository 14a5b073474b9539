"""Engines, one package each; the package's name is its key."""
