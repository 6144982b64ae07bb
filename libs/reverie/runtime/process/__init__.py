"""The life of a process: start, background tasks, health, shutdown."""
