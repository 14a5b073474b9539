"""The commands of `burnish`, one file each or a few that belong together; each exports `COMMANDS`.

Building the help imports every module here, so slow imports are made inside the functions.
"""
