"""The real results of the docs: what is trained, what a trivial rule reaches, and the table that sets them side by side."""
