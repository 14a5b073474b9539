"""Rows, not tensors: sources, splits, tokenised features and the batches cut from them."""
