"""Imports experiments of other systems as specs: one file per system, each listing what had no counterpart."""
