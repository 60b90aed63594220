"""A client for the parts of dstack's REST API that runs need."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import socket
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Collection, Iterator
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

from rldsl.launch.backend import Spending
from rldsl.store.errors import StoreError

CONFIG = Path("~/.dstack/config.yml")
PAGE = 100
"""Maximum number of runs in one response."""
LINES = 1000
TIMEOUT = 30.0
SERVER_ERROR = 500
Run = dict[str, Any]


RETRY_SECONDS = (0.5, 1.0, 2.0)
"""Pauses before a request is sent again whose answer was lost or broken."""


class DstackError(StoreError):
    """The server does not answer, or what it answers makes no sense: whether it did what was asked is not known."""


class DstackRefusal(DstackError):
    """The server refuses a request: nothing was done."""


class Server(NamedTuple):
    """Address, token and project of a server."""

    url: str
    token: str
    project: str

    def __repr__(self) -> str:
        return f"Server({self.url!r}, {self.project!r})"


def find_server() -> Server:
    """The server in DSTACK_SERVER_URL, DSTACK_TOKEN and DSTACK_PROJECT, or in the file of `dstack project add`."""
    url, token = os.environ.get("DSTACK_SERVER_URL"), os.environ.get("DSTACK_TOKEN")
    if url and token:
        return Server(_checked(url), token, os.environ.get("DSTACK_PROJECT", "main"))
    configured = _configured(os.environ.get("DSTACK_PROJECT"))
    if configured is None:
        raise DstackError(
            "no dstack server is known: set DSTACK_SERVER_URL, DSTACK_TOKEN and DSTACK_PROJECT, or `dstack project add`"
        )
    return configured


def _configured(project: str | None) -> Server | None:
    import yaml

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
    """Requests to one server, about one project."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server or find_server()

    def call(self, path: str, body: Any = None, answer: type | None = None, *, again: bool = True) -> Any:
        """The response to a JSON request, which should be of the type `answer`.

        A request whose answer is lost or broken is sent again, unless it must not be done twice.
        """
        return self._post(path, json.dumps(body).encode(), "application/json", answer, again)

    def project(self, path: str, body: Any = None, answer: type | None = None, *, again: bool = True) -> Any:
        """The response to a JSON request below the project's path."""
        return self.call(f"/api/project/{self.server.project}/{path}", body, answer, again=again)

    def upload(self, archive: bytes) -> str:
        """Uploads an uncompressed tar for runs and returns its id."""
        border, name = uuid.uuid4().hex, hashlib.sha256(archive).hexdigest()
        head = f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        data = head.encode() + archive + f"\r\n--{border}--\r\n".encode()
        kind = f"multipart/form-data; boundary={border}"
        return str(self._post("/api/files/upload_archive", data, kind, dict, again=True)["id"])

    def apply(self, name: str, spec: dict[str, Any]) -> None:
        """Submits a run. It is asked for once: after a lost answer, `runs` tells whether it was started."""
        plan = {"run_spec": {"run_name": name, **spec}, "current_resource": None}
        self.project("runs/apply", {"plan": plan, "force": False}, dict, again=False)

    def runs(self, names: Collection[str]) -> dict[str, Run]:
        """Runs by name; reads pages of the project's runs, newest first, until all names are found."""
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
        page = self.call("/api/runs/list", body, list)
        return [run for run in page if isinstance(run, dict) and isinstance(run.get("run_spec"), dict)]

    def stop(self, names: Collection[str]) -> None:
        """Asks runs to end; unknown names are ignored."""
        if names:
            self.project("runs/stop", {"runs_names": list(names), "abort": False})

    def delete(self, names: Collection[str]) -> None:
        """Deletes runs that have ended."""
        if names:
            self.project("runs/delete", {"runs_names": list(names)})

    def log(self, run: Run) -> str:
        """The output of the newest submission of a run."""
        submission = run.get("latest_job_submission") or {}
        if not submission.get("id"):
            return ""
        chunks = self._chunks(_name(run), submission["id"])
        return b"".join(chunks).decode("utf-8", "replace").replace("\r\n", "\n")

    def _chunks(self, name: str, submission: str) -> Iterator[bytes]:
        """The log in pieces of bytes, which may end within a line."""
        token = None
        while True:
            body = {"run_name": name, "job_submission_id": submission, "next_token": token, "limit": LINES}
            answer = self.project("logs/poll", body, dict)
            yield from (base64.b64decode(one["message"]) for one in answer.get("logs") or ())
            token = answer.get("next_token")
            if token is None:
                return

    def _post(self, path: str, data: bytes, kind: str, answer: type | None, again: bool) -> Any:
        headers = {"Authorization": f"Bearer {self.server.token}", "Content-Type": kind}
        request = urllib.request.Request(self.server.url + path, data, headers)  # noqa: S310 (checked to be http)
        for seconds in (*RETRY_SECONDS, None) if again else (None,):
            try:
                return self._send(request, answer)
            except _LostAnswer as error:
                if seconds is None:
                    words = f"the dstack server at {self.server.url} does not answer: {error}"
                    raise DstackError(words) from None
                time.sleep(seconds)
        raise AssertionError("the last attempt returns or raises")

    def _send(self, request: urllib.request.Request, answer: type | None) -> Any:
        """Sends a request once; raises `_LostAnswer` if it makes sense to try again."""
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as response:  # noqa: S310
                parsed = json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            if error.code >= SERVER_ERROR:
                raise _LostAnswer(f"{error.code} {error.reason}") from None
            raise DstackRefusal(f"dstack refuses: {self._reason(error)}") from None
        except (OSError, ValueError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ConnectionRefusedError | socket.gaierror):
                raise DstackError(f"the dstack server at {self.server.url} does not answer: {reason}") from None
            words = " ".join(str(reason).split())
            raise _LostAnswer(f"{type(reason).__name__} {words}".strip()) from None
        if answer is not None and not isinstance(parsed, answer):
            raise _LostAnswer(f"its answer is {json.dumps(parsed)[:60]}")
        return parsed

    def _reason(self, error: urllib.error.HTTPError) -> str:
        if error.code in (401, 403):
            return f"it does not know the token, or the token may not use the project {self.server.project}"
        try:
            detail = json.loads(error.read())["detail"]
            message = "; ".join(_detail(one) for one in (detail if isinstance(detail, list) else [detail]))
        except (OSError, ValueError, KeyError, TypeError):
            message = ""
        if error.code == 404:
            return f"the project {self.server.project}, or what was asked of it, is not there"
        return message or f"{error.code} {error.reason}"


class _LostAnswer(Exception):
    """No answer, or a broken one."""


def _name(run: Run) -> str:
    return str(run["run_spec"]["run_name"])


def _detail(detail: Any) -> str:
    """The message of an error, with the field that it is about."""
    if not isinstance(detail, dict):
        return str(detail)
    where = ".".join(str(part) for part in (detail.get("loc") or [])[1:] if part != "configuration")
    return f"{where}: {detail.get('msg')}" if where else str(detail.get("msg"))


def spending_of(run: Run) -> Spending:
    """What a run has cost so far, and its price while it has a machine."""
    job = run.get("latest_job_submission") or {}
    has_machine = run.get("status") in ("provisioning", "running", "terminating")
    price = _number(job.get("job_provisioning_data") or {}, "price") if has_machine else 0.0
    return Spending(_number(run, "cost"), price)


def _number(data: dict[str, Any], name: str) -> float:
    value = data.get(name)
    return float(value) if isinstance(value, int | float) else 0.0
