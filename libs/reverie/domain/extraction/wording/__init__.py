"""How sentences are worded: patterns, their rating, and what a record leaves out of them."""
