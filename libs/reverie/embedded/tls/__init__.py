"""The TLS certificate of this machine."""
