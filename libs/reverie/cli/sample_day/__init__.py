"""The sample day: a small fictional project, played against a running Reverie."""

from reverie.cli.sample_day.play import play

__all__ = ["play"]
