"""What is put before an agent, and within which token budgets."""
