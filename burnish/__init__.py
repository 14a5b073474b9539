"""What an installation adds to site-packages: the program in `__main__`, and in a wheel `app`, `backend` and `resources` in here."""
