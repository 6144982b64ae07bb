"""API keys and tokens of an identity provider."""
