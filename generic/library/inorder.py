"""Run work on the nodes of a graph in order, independent ones at once.

The threads are daemons, so that the exit of a process never waits for a provider that is silent.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from graphlib import TopologicalSorter
from queue import SimpleQueue

from actuator.errors import RequeueAfter

Graph = Mapping[str, Iterable[str]]
"""Names, and for each the names that come before it."""


def run_in_order(graph: Graph, work: Callable[[str], None], parallel: int = 1) -> None:
    """Call `work` for each name after those before it; at most `parallel` calls at once.

    After an error no further call begins. When the running ones have ended, it raises the first
    error, or a RequeueAfter if there is nothing else. Raises CycleError.
    """
    order = TopologicalSorter(graph)
    if parallel == 1:
        for name in order.static_order():
            work(name)
        return
    order.prepare()
    ended: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()

    def call(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # raised in the calling thread
            ended.put((name, error))
        else:
            ended.put((name, None))

    errors: list[BaseException] = []
    ready: deque[str] = deque()
    running = 0
    while running or (order.is_active() and not errors):
        ready += order.get_ready()
        while ready and running < parallel and not errors:
            run = copy_context().run
            threading.Thread(target=run, args=(call, ready.popleft()), daemon=True).start()
            running += 1
        name, error = ended.get()
        running -= 1
        if error is None:
            order.done(name)
        else:
            errors.append(error)
    if errors:
        raise min(errors, key=lambda error: isinstance(error, RequeueAfter))
