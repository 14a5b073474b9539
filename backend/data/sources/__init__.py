"""Kinds of data source, one file each; the file's name is its key."""
