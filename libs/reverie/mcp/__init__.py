"""Reverie as tools, resources and prompts of the Model Context Protocol.

Tools, resources and prompts make REST calls through the `RestClient` that they get, so that they
work over HTTP and over stdio alike.
"""
