"""Experiments of other systems, turned into specs: one file per system, each with a list of what had no counterpart."""
