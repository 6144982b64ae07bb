"""Commands that run and inspect Reverie."""
