"""The parts of the Predictions page."""
