"""Adapters, one module each; the module's name is its key. Framework-free: an engine knows how to make them."""
