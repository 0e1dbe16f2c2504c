"""Sums of Kubernetes quantities: "80m" and "20m" are "100m", "512Mi" twice "1Gi".

Adds and formats like `resource.Quantity` of Go's API machinery ("canonical form"): the text is
part of a hash that Gardener computes too. Parsing is the Kubernetes client's. Not distinguished:
exponents ("12e6"), and a lone number such as "1.250", both of which Go keeps as written.
"""

import re
from collections.abc import Iterable
from decimal import ROUND_UP, Decimal, localcontext

_BINARY = [(Decimal(1024) ** (6 - n), f"{letter}i") for n, letter in enumerate("EPTGMK")]
_DECIMAL = [(Decimal(10) ** (18 - 3 * n), unit) for n, unit in enumerate([*"EPTGMk", "", *"mun"])]
_ONE = (Decimal(1), "")
_NANO = Decimal("1e-9")
_DIGITS = 128
"""Enough for each quantity that `_QUANTITY` allows, as a number of 1n."""
_NONE = "<nil>"
_QUANTITY = re.compile(r"[+-]?[\d.]{1,40}(?:[numkMGTPE]|[KMGTPE]i|[eE]-?\d{1,2})?", re.ASCII)


def total(quantities: Iterable[str | int | None]) -> str:
    """Return the sum, "<nil>" for none. Raises ValueError, or ArithmeticError on overflow."""
    given = [str(quantity) for quantity in quantities if quantity is not None]
    if not given:
        return _NONE
    numbers = [_number(text) for text in given]
    format = next((text for text, number in zip(given, numbers, strict=True) if number), "")
    return _canonical(sum(numbers, Decimal()), binary=format.endswith("i"))


def _number(text: str) -> Decimal:
    if not _QUANTITY.fullmatch(text):
        raise ValueError(f"expected a quantity such as 100m or 1Gi, got {text!r}")
    from kubernetes.utils.quantity import parse_quantity  # with it comes the whole client

    number: Decimal = parse_quantity(text)  # type: ignore[no-untyped-call]
    with localcontext(prec=_DIGITS):  # Go rounds each quantity away from zero to whole 1n
        return number.quantize(_NANO, ROUND_UP)


def _canonical(number: Decimal, *, binary: bool) -> str:
    """Format with the largest unit of which it is a whole number; the smallest unit is 1n.

    Numbers below 1024, and those that are not whole, get no binary unit.
    """
    if not number:
        return "0"
    whole = number == number.to_integral_value()
    units = [*_BINARY, _ONE] if binary and whole and abs(number) >= 1024 else _DECIMAL
    factor, suffix = next((unit for unit in units if number % unit[0] == 0), units[-1])
    return f"{int(number / factor)}{suffix}"
