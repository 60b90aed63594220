"""dstack's REST API, as much of it as runs need: JSON over HTTP, nothing to install."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import urllib.error
import urllib.request
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.store.errors import StoreError

CONFIG = Path("~/.dstack/config.yml")
PAGE = 100
"""Runs of one answer, at most."""
LINES = 1000
TIMEOUT = 30.0
Run = dict[str, Any]


class DstackError(StoreError):
    """The server refuses, or does not answer; a sentence."""


class Server(NamedTuple):
    """Where the server is, and who asks."""

    url: str
    token: str
    project: str

    def __repr__(self) -> str:
        return f"Server({self.url!r}, {self.project!r})"


def find_server() -> Server:
    """By DSTACK_SERVER_URL, DSTACK_TOKEN and DSTACK_PROJECT, or else by what `dstack project add` wrote."""
    url, token = os.environ.get("DSTACK_SERVER_URL"), os.environ.get("DSTACK_TOKEN")
    if url and token:
        return Server(_checked(url), token, os.environ.get("DSTACK_PROJECT", "main"))
    written = _written(os.environ.get("DSTACK_PROJECT"))
    if written is None:
        raise DstackError(
            "no dstack server is known: set DSTACK_SERVER_URL, DSTACK_TOKEN and DSTACK_PROJECT, or `dstack project add`"
        )
    return written


def _written(project: str | None) -> Server | None:
    import yaml  # type: ignore[import-untyped]

    try:
        projects = yaml.safe_load(CONFIG.expanduser().read_text())["projects"]
        chosen = [one for one in projects if (one["name"] == project if project else one.get("default"))]
        return Server(_checked(chosen[0]["url"]), chosen[0]["token"], chosen[0]["name"]) if chosen else None
    except (OSError, yaml.YAMLError, KeyError, TypeError):
        return None


def _checked(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise DstackError(f"the address of a dstack server begins with http:// or https://, not {url!r}")
    return url.rstrip("/")


class Api:
    """Calls to one server, about one project."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or find_server()

    def call(self, path: str, body: Any = None) -> Any:
        """The answer to a JSON body."""
        return self._post(path, json.dumps(body).encode(), "application/json")

    def project(self, path: str, body: Any = None) -> Any:
        """The same, about the project."""
        return self.call(f"/api/project/{self.server.project}/{path}", body)

    def upload(self, archive: bytes) -> str:
        """The id of an uncompressed tar that runs can ask for."""
        border, name = uuid.uuid4().hex, hashlib.sha256(archive).hexdigest()
        head = f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        data = head.encode() + archive + f"\r\n--{border}--\r\n".encode()
        return str(self._post("/api/files/upload_archive", data, f"multipart/form-data; boundary={border}")["id"])

    def apply(self, name: str, spec: dict[str, Any]) -> None:
        """Submits a run."""
        self.project(
            "runs/apply", {"plan": {"run_spec": {"run_name": name, **spec}, "current_resource": None}, "force": False}
        )

    def runs(self, names: Collection[str]) -> dict[str, Run]:
        """Runs by their names: of all of the project's, newest first, as many pages as it takes to find these."""
        found: dict[str, Run] = {}
        last: Run | None = None
        while len(found) < len(set(names)) and (page := self._page(last)):
            found |= {name: run for run in page if (name := _name(run)) in names and not run.get("deleted")}
            last = page[-1] if len(page) == PAGE else None
            if last is None:
                break
        return found

    def _page(self, after: Run | None) -> list[Run]:
        body = {"project_name": self.server.project, "limit": PAGE, "job_submissions_limit": 1}
        if after is not None:
            body |= {"prev_submitted_at": after["submitted_at"], "prev_run_id": after["id"]}
        return list(self.call("/api/runs/list", body))

    def stop(self, names: Collection[str]) -> None:
        """Asks runs to end; those that are not there are passed over."""
        if names:
            self.project("runs/stop", {"runs_names": list(names), "abort": False})

    def delete(self, names: Collection[str]) -> None:
        """Forgets runs that have ended."""
        if names:
            self.project("runs/delete", {"runs_names": list(names)})

    def log(self, run: Run) -> str:
        """What the newest submission of a run has printed."""
        submission = run.get("latest_job_submission") or {}
        if not submission.get("id"):
            return ""
        chunks = self._chunks(_name(run), submission["id"])
        return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")

    def _chunks(self, name: str, submission: str) -> Iterator[bytes]:
        """Pieces of bytes, cut anywhere."""
        token = None
        while True:
            body = {"run_name": name, "job_submission_id": submission, "next_token": token, "limit": LINES}
            answer = self.project("logs/poll", body)
            yield from (base64.b64decode(one["message"]) for one in answer["logs"])
            token = answer.get("next_token")
            if token is None:
                return

    def _post(self, path: str, data: bytes, kind: str) -> Any:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": kind}
        request = urllib.request.Request(self.server.url + path, data, headers)  # noqa: S310 (checked to be http)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
                return json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as error:
            raise DstackError(f"dstack refuses: {self._reason(error)}") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise DstackError(f"the dstack server at {self.server.url} does not answer: {reason}") from None

    def _reason(self, error: urllib.error.HTTPError) -> str:
        if error.code in (401, 403):
            return f"it does not know the token, or the token may not use the project {self.server.project}"
        try:
            detail = json.loads(error.read())["detail"]
            said = "; ".join(_told(one) for one in (detail if isinstance(detail, list) else [detail]))
        except (OSError, ValueError, KeyError, TypeError):
            said = ""
        if error.code == 404:
            return f"the project {self.server.project}, or what was asked of it, is not there"
        return said or f"{error.code} {error.reason}"


def _name(run: Run) -> str:
    return str(run["run_spec"]["run_name"])


def _told(detail: Any) -> str:
    """What is wrong, and with which field where it says so."""
    if not isinstance(detail, dict):
        return str(detail)
    where = ".".join(str(part) for part in (detail.get("loc") or [])[1:] if part != "configuration")
    return f"{where}: {detail.get('msg')}" if where else str(detail.get("msg"))
