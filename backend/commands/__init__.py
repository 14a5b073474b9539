"""The commands of `burnish`, one file each or a few that belong together; each exports `COMMANDS`.

Every module here is imported to make the help, so what takes long to import is imported inside the functions.
"""
