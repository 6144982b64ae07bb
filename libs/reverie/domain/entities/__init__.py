"""Files and named entities that a text mentions."""
