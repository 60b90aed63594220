"""Asking again: what the network or a busy Hub refuses now, it may grant a little later."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rldsl.store.errors import StoreError

T = TypeVar("T")

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before each further try, at most; half of it at least, so that many machines do not come back as one."""
PASSING = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""Answers that another try may turn: too busy, broken for now, or another commit was faster."""


class HubError(StoreError):
    """The Hub cannot be reached or refuses; a sentence."""


def with_retries(call: Callable[[], T], what: str, waits: Sequence[float] = WAITS) -> T:
    """The answer of a call, which is made again where that may help; otherwise a sentence that names `what`."""
    for wait in (*waits, None):
        try:
            return call()
        except Exception as error:
            if wait is None or not passing(error):
                raise HubError(f"cannot {what}: {sentence(error)}") from error
            time.sleep(wait * random.uniform(0.5, 1))
    raise AssertionError("the last try returns or raises")


def passing(error: BaseException) -> bool:
    """Whether an error, or what it came from, may go away by itself."""
    import httpx2

    return any(isinstance(one, httpx2.TransportError) or status(one) in PASSING for one in chain(error))


def status(error: BaseException) -> int | None:
    """The HTTP status that an error speaks of."""
    return getattr(getattr(error, "response", None), "status_code", None)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def sentence(error: BaseException) -> str:
    """What went wrong, in one line."""
    from rldsl.store.scrub import scrub_text

    code = next((code for one in chain(error) if (code := status(one)) is not None), None)
    if code in (401, 403):
        return "the Hub refuses the token in HF_TOKEN, or there is none; it needs the right to write"
    if code == 404:
        return "the Hub has no such repository, or HF_TOKEN may not see it"
    lines = str(error).strip().splitlines()
    return scrub_text(lines[0] if lines else type(error).__name__)
