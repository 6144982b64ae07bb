"""The sample day: a small fictional project, played against a running Reverie."""

from reverie.cli.demo.player import play_sample_day

__all__ = ["play_sample_day"]
