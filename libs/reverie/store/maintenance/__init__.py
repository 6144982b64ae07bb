"""What maintenance reads and writes: archiving, promotion, topics, reflection, clean-up."""
