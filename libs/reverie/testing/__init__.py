"""Fakes of the ports and servers for tests."""
