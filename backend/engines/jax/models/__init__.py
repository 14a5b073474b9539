"""Families of models, one module each; the module's name is the `model_type` of config.json, dashes as underscores."""
