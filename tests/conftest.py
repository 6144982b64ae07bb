"""Loads the shared fixtures for every test."""

pytest_plugins = ("tests.support.fixtures",)
