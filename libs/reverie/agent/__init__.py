"""What runs beside a coding agent."""
