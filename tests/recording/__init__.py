"""Record what must stay while the code is rearranged, and compare a tree with it: `python -m tests.recording`.

Nothing here knows a module of the program: it is called as people call it, so that a recording outlives every move.
CPU kernels differ between machines, so a recording is compared where it was made, and `make test` has no part in it.
"""
