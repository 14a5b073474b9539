"""The parts of a run that the loop puts together: events, checkpoints, schedule, stopping, preparation."""
