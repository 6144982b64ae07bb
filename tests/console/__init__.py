"""Tests of the console, over HTTP and in a browser."""
