"""Optimizers, one module each; the module's name is its key. A module imports torch only when one is made."""
