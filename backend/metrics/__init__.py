"""How predictions are measured: a file for each metric, or for each family that one calculation gives."""
