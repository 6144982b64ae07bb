"""How hooks and commands find the gateway of this machine, and call it."""
