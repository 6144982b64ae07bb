"""Settings, and the files and variables they are read from."""
