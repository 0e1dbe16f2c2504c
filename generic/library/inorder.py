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

    A RequeueAfter holds up only what comes after its name. After another error no further call
    begins. When the running ones have ended, it raises the first error, or the first RequeueAfter
    if there is nothing else. Raises CycleError.
    """
    order = TopologicalSorter(graph)
    order.prepare()
    if parallel == 1:
        _run_here(order, work)
    else:
        _run_in_threads(order, work, parallel)


def _run_here(order: TopologicalSorter[str], work: Callable[[str], None]) -> None:
    waits: list[RequeueAfter] = []
    while ready := order.get_ready():
        for name in ready:
            try:
                work(name)
            except RequeueAfter as wait:
                waits.append(wait)
            else:
                order.done(name)
    if waits:
        raise waits[0]


def _run_in_threads(
    order: TopologicalSorter[str], work: Callable[[str], None], parallel: int
) -> None:
    ended: SimpleQueue[tuple[str, BaseException | None]] = SimpleQueue()

    def call(name: str) -> None:
        try:
            work(name)
        except BaseException as error:  # raised in the calling thread
            ended.put((name, error))
        else:
            ended.put((name, None))

    waits: list[RequeueAfter] = []
    errors: list[BaseException] = []
    ready: deque[str] = deque(order.get_ready())
    running = 0
    while running or (ready and not errors):
        while ready and running < parallel and not errors:
            run = copy_context().run
            threading.Thread(target=run, args=(call, ready.popleft()), daemon=True).start()
            running += 1
        name, error = ended.get()
        running -= 1
        if error is None:
            order.done(name)
            ready += order.get_ready()
        elif isinstance(error, RequeueAfter):
            waits.append(error)
        else:
            errors.append(error)
    for error in (*errors, *waits):
        raise error
