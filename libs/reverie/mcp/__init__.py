"""Reverie as tools, resources and prompts of the Model Context Protocol.

One adapter for both transports: it makes REST calls through a `Rest` that it is given.
"""
