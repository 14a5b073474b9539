"""Which devices are available, what fits, and how to start many processes."""
