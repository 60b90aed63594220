"""Retries for requests to the Hub that fail because of the network or a busy server."""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rldsl.store.errors import StoreError

T = TypeVar("T")

WAITS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Seconds before each retry. The actual wait is 50% to 100% of it, so that many machines do not retry in step."""
TRANSIENT_STATUS = frozenset({408, 409, 412, 425, 429, 500, 502, 503, 504})
"""HTTP statuses worth a retry: timeouts, server errors, rate limits, and commits that lost a race (409, 412)."""


MOST_SECONDS = 330.0
"""The longest wait that a server may ask for by `Retry-After`; the Hub counts calls in windows of 300 seconds."""


class HubError(StoreError):
    """The Hub cannot be reached or refuses a request; the message is one sentence."""


class NotAllowed(HubError):
    """The Hub refuses the token: nothing else that needs it can succeed."""


class StorageUnavailable(Exception):
    """A transfer to or from the storage of large files failed; its client has no classes for why."""


class Conflict(HubError):
    """Somebody else has committed since the state of the repository was read."""


def with_retries(
    call: Callable[[], T], what: str, waits: Sequence[float] = WAITS, *, retry_conflicts: bool = True
) -> T:
    """Returns the result of a call, retrying transient errors; raises HubError(`cannot {what}: ...`) otherwise.

    A server that says when to try again (`Retry-After`) is waited for. Without `retry_conflicts`, a commit that lost a
    race (412) raises `Conflict` at once.
    """
    for wait in (*waits, None):
        try:
            return call()
        except Exception as error:
            conflict = status_of(error) == 412 and not retry_conflicts
            if wait is None or conflict or not is_transient(error):
                raise _hub_error(error)(f"cannot {what}: {describe(error)}") from error
            time.sleep(max(wait * random.uniform(0.5, 1), retry_after(error)))
    raise AssertionError("the last attempt returns or raises")


def _hub_error(error: BaseException) -> type[HubError]:
    status = status_of(error)
    refused = refused_file(error) is not None  # by the storage, which does not know the token
    return NotAllowed if status in (401, 403) and not refused else Conflict if status == 412 else HubError


def retry_after(error: BaseException) -> float:
    """The seconds that the server asks to wait: `Retry-After`, or the end of the window in `RateLimit`; else 0."""
    for cause in error_chain(error):
        headers = getattr(getattr(cause, "response", None), "headers", None) or {}
        rate_limit = re.search(r"\bt=(\d+)", headers.get("RateLimit", "")) if status_of(cause) == 429 else None
        text = headers.get("Retry-After") or (rate_limit[1] if rate_limit else "")
        if text.isdigit():
            return min(float(text), MOST_SECONDS)
    return 0.0


def is_transient(error: BaseException) -> bool:
    """Whether a retry may help: after a transient HTTP status, or if the connection failed.

    It does not if the storage refused one file, which the client has tried several times.
    """
    if refused_file(error) is not None:
        return False
    if any(isinstance(cause, StorageUnavailable) for cause in error_chain(error)):
        return True
    return any(http_status(cause) in TRANSIENT_STATUS or _is_client_error(cause) for cause in error_chain(error))


def refused_file(error: BaseException) -> str | None:
    """The path of the file that the storage of large files refused; None for any other error."""
    if status_of(error) is None:
        return None
    found = (re.match(r"Error while uploading '(.+)' to the Hub", str(cause)) for cause in error_chain(error))
    return next((match[1] for match in found if match), None)


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


def status_of(error: BaseException) -> int | None:
    """The HTTP status of an error or of the newest of its causes that has one."""
    return next((status for cause in error_chain(error) if (status := http_status(cause)) is not None), None)


def error_chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, newest first."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def describe(error: BaseException) -> str:
    """What went wrong, in one line and without secrets."""
    from rldsl.store.scrub import scrub_text

    status = status_of(error)
    if (path := refused_file(error)) is not None:
        return f"the storage of the Hub refuses {path} (HTTP status {status})"
    if status == 401 and not os.environ.get("HF_TOKEN"):
        return "HF_TOKEN is not set; reading a private repository and writing need a token"
    if status == 401:
        return "the Hub does not accept the token in HF_TOKEN: make one at https://huggingface.co/settings/tokens"
    if status == 403:
        return "the token in HF_TOKEN is not allowed to do it; it needs write access to the repository"
    if status == 404:
        return "the Hub has no such repository, or the token in HF_TOKEN has no access to it"
    lines = str(error).strip().splitlines()
    return scrub_text(lines[0] if lines else type(error).__name__)
