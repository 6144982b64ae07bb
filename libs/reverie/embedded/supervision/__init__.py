"""Starts, watches and stops Postgres, NATS and the services of one machine.

- `supervisor`: the work of `reverie up`, which starts all in the order that they need.
- `hand_over`: puts a small program in the supervisor's place once all is ready.
- `process_watch`: what supervisor and successor do until a signal: restart what ends, stop all.
- `stop_request`: the work of `reverie down`.
- `service_layout`: which service processes run, with their ports and their environment.
- `service_process`: one of them.
"""
