"""Parts that run on the machine of a coding agent: hooks, git, rules, setup, transcripts."""
