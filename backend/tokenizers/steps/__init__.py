"""The way of a text through a tokenizer, step by step."""
