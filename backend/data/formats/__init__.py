"""File formats, one reader each: columns first, then rows in chunks with each row's line number."""
