"""Finds a model, describes what it contains, and converts it once if its weights are pickled."""
