"""The differences between the recorded gardenlet and the simulated one, as sentences. Pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from hack.gardenlet.protocol import DELETION, FlowProtocol, Recording, Waits

TARGET = "make record-gardenlet"
_POLL_SECONDS = 10.0
"""gardenlet counts polls, at most this long, and the first is at once."""
_FLOW_SECONDS = 30.0
"""From the error to the end of the flow, with which the Shoot shows it."""


def version_problem(recorded: Recording, gardener: str) -> str | None:
    """Return why the recording is not one of this version of Gardener, or None."""
    if recorded.gardener == gardener:
        return None
    return (
        f"the recording is of Gardener {recorded.gardener}, the project uses {gardener}; "
        f"run `{TARGET}` and review the differences"
    )


def unexplained(recorded: Recording, simulated: Recording) -> list[str]:
    """Return the differences without a known reason, and known differences that no longer exist."""
    found = [
        *differences(recorded.flows, simulated.flows),
        *of_waits(recorded.waits, simulated.waits),
        *of_thresholds(recorded.shown_after, simulated.waits),
    ]
    known = [difference for entry in recorded.known for difference in entry.differences]
    ended = [f"known difference no longer exists, remove it: {item}" for item in known]
    return [item for item in found if item not in known] + [
        text for text, item in zip(ended, known, strict=True) if item not in found
    ]


def differences(
    recorded: Mapping[str, FlowProtocol], simulated: Mapping[str, FlowProtocol]
) -> Iterator[str]:
    """Yield a sentence for each difference."""
    for name in sorted(recorded.keys() | simulated.keys()):
        if name not in simulated:
            yield f"{name}: the simulation does not have this flow"
        elif name not in recorded:
            yield f"{name}: the recording does not have this flow"
        else:
            yield from _of_flow(name, recorded[name], simulated[name])


def of_waits(recorded: Waits, simulated: Waits) -> Iterator[str]:
    """Yield a sentence for each kind that gardenlet awaits otherwise than the simulation."""
    for kind in sorted(recorded.keys() & simulated.keys()):
        numbers = zip(
            ("tolerates an error of", "waits for"), recorded[kind], simulated[kind], strict=True
        )
        for what, real, ours in numbers:
            if real != ours:
                yield (
                    f"waits: gardenlet {what} {kind} for {real:.0f} s, "
                    f"the simulation for {ours:.0f} s"
                )


def of_thresholds(lasted: Mapping[str, float], simulated: Waits) -> Iterator[str]:
    """Yield a sentence for each kind whose error is shown earlier or later than simulated."""
    for kind in sorted(lasted.keys() & simulated.keys()):
        threshold = simulated[kind][0]
        if not threshold - _POLL_SECONDS <= lasted[kind] <= threshold + _FLOW_SECONDS:
            word = "earlier" if lasted[kind] < threshold else "later"
            yield (
                f"errors: gardenlet shows an error of {kind} {word} than after the "
                f"{threshold:.0f} s of the simulation"
            )


def _of_flow(name: str, real: FlowProtocol, simulated: FlowProtocol) -> Iterator[str]:
    for kind in sorted(real.steps.keys() | simulated.steps.keys()):
        if kind not in simulated.steps:
            yield f"{name}: the simulation writes no {kind}"
        elif kind not in real.steps:
            yield f"{name}: gardenlet writes no {kind}, the simulation does"
        else:
            yield from _of_steps(f"{name}: {kind}", real.steps[kind], simulated.steps[kind])
    both = real.steps.keys() & simulated.steps.keys()
    for later in sorted(real.order.keys() | simulated.order.keys()):
        if later.removeprefix(DELETION) in both:
            awaited, ours = (_awaited(flow, later, both) for flow in (real, simulated))
            for step in sorted(awaited - ours):
                yield f"{name}: only gardenlet waits for {step} before {later}"
            for step in sorted(ours - awaited):
                yield f"{name}: only the simulation waits for {step} before {later}"


def _awaited(flow: FlowProtocol, later: str, kinds: Collection[str]) -> set[str]:
    return {item for item in flow.order.get(later, ()) if item.removeprefix(DELETION) in kinds}


def _of_steps(
    where: str, real: Sequence[Sequence[str]], simulated: Sequence[Sequence[str]]
) -> Iterator[str]:
    """Each sequence of one side has to be one of the other."""
    for steps in real:
        if steps not in simulated:
            yield f"{where}: only gardenlet writes [{_joined(steps)}]"
    for steps in simulated:
        if steps not in real:
            yield f"{where}: only the simulation writes [{_joined(steps)}]"


def _joined(steps: Sequence[str]) -> str:
    return ", then ".join(steps)
