"""The sample day: a small fictional project, played against a running Reverie."""
