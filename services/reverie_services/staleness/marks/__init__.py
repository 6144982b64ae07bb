"""Which memories a change makes doubtful, and how strongly."""
