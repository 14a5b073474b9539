"""How a text passes through a tokenizer, step by step."""
