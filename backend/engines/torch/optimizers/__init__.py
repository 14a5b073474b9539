"""Optimizers, one module each; the module's name is its key. torch is imported only when one is created."""
