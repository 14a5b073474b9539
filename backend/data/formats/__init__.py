"""File formats, one reader each: columns first, then rows in pieces with the line on which each stands."""
