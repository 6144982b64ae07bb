"""The console: pages for people, made from the REST calls of who is signed in."""
