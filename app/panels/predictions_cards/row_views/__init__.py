"""The forms in which one predicted row is shown whole, one file each; `registry` says which task takes which."""
