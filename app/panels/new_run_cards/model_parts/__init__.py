"""Parts of the model's card: the list of models, downloads, and what is known of the chosen one."""
