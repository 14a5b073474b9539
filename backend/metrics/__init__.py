"""How predictions are evaluated: one file per metric, or per family of metrics computed together."""
