"""Connections, transactions, queries by name, migrations."""
