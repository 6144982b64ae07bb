"""Reading a question, scoring, ranking and diversity."""
