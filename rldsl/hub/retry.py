"""Retries for requests to the Hub that fail because of the network or a busy server."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rldsl.store.errors import StoreError

T = TypeVar("T")

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before each retry. The actual wait is 50% to 100% of it, so that many machines do not retry in step."""
TRANSIENT_STATUS = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""HTTP statuses worth a retry: timeouts, server errors, rate limits, and commits that lost a race (409, 412)."""


class HubError(StoreError):
    """The Hub cannot be reached or refuses a request; the message is one sentence."""


def with_retries(call: Callable[[], T], what: str, waits: Sequence[float] = WAITS) -> T:
    """Returns the result of a call, retrying transient errors; raises HubError(`cannot {what}: ...`) otherwise."""
    for wait in (*waits, None):
        try:
            return call()
        except Exception as error:
            if wait is None or not is_transient(error):
                raise HubError(f"cannot {what}: {describe(error)}") from error
            time.sleep(wait * random.uniform(0.5, 1))
    raise AssertionError("the last attempt returns or raises")


def is_transient(error: BaseException) -> bool:
    """Whether a retry may help: after a transient HTTP status, or if the connection failed."""
    return any(http_status(cause) in TRANSIENT_STATUS or _is_client_error(cause) for cause in error_chain(error))


def _is_client_error(error: BaseException) -> bool:
    """Whether the HTTP client failed before there was a response.

    `HTTPError` is the base class of the errors of huggingface_hub's HTTP client, and of its own `HfHubHTTPError`.
    Taking it from there leaves the choice of the client to huggingface_hub.
    """
    from huggingface_hub.errors import HfHubHTTPError, HTTPError  # type: ignore[attr-defined]

    return isinstance(error, HTTPError) and not isinstance(error, HfHubHTTPError) and http_status(error) is None


def http_status(error: BaseException) -> int | None:
    """The HTTP status of the response that an error belongs to."""
    status: int | None = getattr(getattr(error, "response", None), "status_code", None)
    return status


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, newest first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def describe(error: BaseException) -> str:
    """What went wrong, in one line and without secrets."""
    from rldsl.store.scrub import scrub_text

    status = next((status for cause in error_chain(error) if (status := http_status(cause)) is not None), None)
    if status in (401, 403):
        return "the Hub refuses the token in HF_TOKEN, or there is none; it needs write access"
    if status == 404:
        return "the Hub has no such repository, or the token in HF_TOKEN has no access to it"
    lines = str(error).strip().splitlines()
    return scrub_text(lines[0] if lines else type(error).__name__)
