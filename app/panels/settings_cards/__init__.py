"""Owns the cards of the Settings page."""
