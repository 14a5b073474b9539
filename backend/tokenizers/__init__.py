"""Opening tokenizers and looking into them."""
