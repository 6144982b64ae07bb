"""What crosses a process: request and response bodies, events, problems."""
