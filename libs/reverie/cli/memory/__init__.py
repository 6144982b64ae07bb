"""Commands on memories, sessions, tasks and the vault."""
