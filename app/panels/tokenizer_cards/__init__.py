"""The sides of the Tokenizer page, one file each, and what they share."""
