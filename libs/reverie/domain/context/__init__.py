"""The context that an agent receives, and its token budgets."""
