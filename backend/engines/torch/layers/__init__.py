"""What the layers of a model compute in less time, with the same results."""
