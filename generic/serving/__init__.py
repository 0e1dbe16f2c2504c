"""Shows a process to the outside: its metrics, its health and its log lines.

Start reading at `metrics` (every metric of a manager), then `health` (liveness and readiness,
served by `httpserver`, as metrics and webhooks are) and `logs` (the format of each line).

Not here: the decision what is counted or logged (the rooms above, which call these).
"""
