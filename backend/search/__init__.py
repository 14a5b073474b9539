"""The hyperparameter search: a run folder whose engine proposes trials and trains them as runs of their own."""
