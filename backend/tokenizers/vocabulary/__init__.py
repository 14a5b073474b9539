"""A tokenizer's vocabulary: its pieces, where they come from, and tables to search."""
