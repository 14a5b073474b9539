"""How sure a number is, and whether two differ: intervals, tests, and what depends on what."""
