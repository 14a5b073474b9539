"""Ways to start the processes of a run, one file each."""
