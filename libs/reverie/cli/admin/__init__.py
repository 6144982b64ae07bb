"""Commands for operators: keys, tenants, backups, audit."""
