"""What is here to compute on, what fits, and how to start many processes."""
