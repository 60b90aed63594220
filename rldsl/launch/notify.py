"""Sends a message to a URL: a webhook of Slack, Mattermost or Discord, a topic of ntfy, or a program of your own."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT = 10.0


def check_url(url: str) -> str | None:
    """Why messages cannot be sent to a URL, as a sentence; None if they can."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        return f"--notify {url}: it should be a URL such as https://ntfy.sh/my-topic"
    return None


def post_message(url: str, text: str, title: str = "rldsl") -> str | None:
    """Posts `{"title", "text", "content"}` as JSON; returns a sentence if that fails, and never raises."""
    if (problem := check_url(url)) is not None:
        return problem
    body = json.dumps({"title": title, "text": text, "content": text}).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "rldsl",
        "Title": title.encode("ascii", "replace").decode(),
    }
    request = urllib.request.Request(url, body, headers, method="POST")  # noqa: S310 (http or https, see check_url)
    host = urllib.parse.urlsplit(url).netloc.rpartition("@")[2]
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT):  # noqa: S310
            return None
    except urllib.error.HTTPError as error:
        return f"{host} refused a notification: HTTP {error.code}"
    except (OSError, ValueError) as error:
        return f"{host} could not be notified: {error}"
