"""Finding a model, saying what it holds, converting it once where its weights are pickled."""
