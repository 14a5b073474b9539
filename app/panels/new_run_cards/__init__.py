"""The cards of the New run page."""
