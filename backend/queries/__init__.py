"""The questions that the window may ask, one file per subject; each exports `QUERIES`. They are answered in workers."""
