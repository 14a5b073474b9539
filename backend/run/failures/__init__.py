"""Every failure that Burnish recognises, one file each; a file's name is the failure's code."""
