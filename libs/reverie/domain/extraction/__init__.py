"""Rules that turn a conversation into candidate memories."""
