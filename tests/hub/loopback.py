"""A small Hub server: the endpoints that `huggingface_hub` calls for a dataset, with failures on demand.

Every commit is kept as a dictionary from paths to contents, so that old revisions can be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_LoopbackTokenOfTheTests0123456789"
LARGE = (".safetensors",)
DROP = 0
"""Instead of a status: the connection is closed without a response; a commit is made before."""


@dataclass
class Repo:
    """A dataset repository."""

    commits: list[tuple[str, dict[str, bytes]]] = field(default_factory=list)
    written: list[set[str]] = field(default_factory=list)
    """The paths that each commit touched."""

    @property
    def files(self) -> dict[str, bytes]:
        return self.commits[-1][1]

    def at(self, revision: str) -> tuple[str, dict[str, bytes]]:
        return self.commits[-1] if revision == "main" else (revision, dict(self.commits)[revision])

    def commit(self, files: dict[str, bytes], touched: set[str]) -> str:
        sha = hashlib.sha1(f"{len(self.commits)}{sorted(files)}".encode()).hexdigest()
        self.commits.append((sha, files))
        self.written.append(touched)
        return sha


class Hub:
    """The state of the server and the requests that it got."""

    def __init__(self) -> None:
        self.repos: dict[str, Repo] = {}
        self.large: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.failures: list[tuple[str, int]] = []
        """Failures of the next matching requests: a pattern for `METHOD /path`, and a status or `DROP`."""
        self.on_commit: Callable[[Repo], object] = lambda repo: None
        """Called with the repository after a commit, before the response is sent."""
        self.lock = threading.Lock()
        self.url = ""

    def repo(self, name: str) -> Repo:
        return self.repos[name]

    def uploads(self) -> list[str]:
        return [path for method, path in self.requests if method == "PUT"]

    def failure(self, asked: str) -> int | None:
        with self.lock:
            for index, (pattern, status) in enumerate(self.failures):
                if re.match(pattern, asked):
                    del self.failures[index]
                    return status
        return None


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 (names defined by the base class)

    def _serve(self) -> None:
        self.body = self._read()
        url = urlsplit(self.path)
        path = unquote(url.path)
        with self.hub.lock:
            self.hub.requests.append((self.command, path))
            self.hub.bodies.append(self.body)
        failure = self.hub.failure(f"{self.command} {path}")
        if failure not in (None, DROP):
            self._answer({"error": "a failure requested by the test"}, failure)
        elif self.command != "PUT" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            self._answer({"error": "unauthorized"}, 401)
        elif failure == DROP:
            if "/commit/" in path:
                self._route(path, parse_qs(url.query), silent=True)
            self.close_connection = True
        else:
            self._route(path, parse_qs(url.query))

    def _read(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _route(self, path: str, query: dict[str, list[str]], silent: bool = False) -> None:
        for pattern, do in ROUTES.items():
            if found := re.fullmatch(pattern, f"{self.command} {path}"):
                with self.hub.lock:
                    try:
                        answer, status = do(self, *found.groups()), 200
                    except KeyError as error:
                        answer, status = {"error": f"no {error}"}, 404
                if not silent and answer is not None:
                    self._answer(answer, status)
                return
        self._answer({"error": f"the test server has no {self.command} {path}"}, 501)

    def _answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in (headers or {"Content-Type": "application/json"}).items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def create(self) -> Any:
        asked = json.loads(self.body)
        name = f"{asked['organization']}/{asked['name']}"
        url = {"url": f"{self.hub.url}/datasets/{name}"}
        if name in self.hub.repos:
            self._answer({"error": "exists", **url}, 409)
            return None
        made = self.hub.repos[name] = Repo()
        made.commit({".gitattributes": b"*.safetensors filter=lfs\n"}, set())
        return url

    def info(self, name: str) -> Any:
        return {"id": name, "sha": self.hub.repo(name).at("main")[0], "private": True, "tags": [], "siblings": []}

    def tree(self, name: str, revision: str, folder: str | None) -> Any:
        _, files = self.hub.repo(name).at(revision)
        below = f"{(folder or '').strip('/')}/".lstrip("/")
        found = {path: data for path, data in files.items() if path.startswith(below)}
        if below and not found:
            raise KeyError(below)
        return [self._entry(path, data) for path, data in found.items()]

    def _entry(self, path: str, data: bytes) -> dict[str, Any]:
        entry = {"type": "file", "path": path, "size": len(data), "oid": git_id(data)}
        if path.endswith(LARGE):
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        return entry

    def preupload(self, name: str, revision: str) -> Any:
        _, files = self.hub.repo(name).at(revision)
        asked = json.loads(self.body)["files"]
        return {"files": [self._mode(one["path"], files.get(one["path"])) for one in asked]}

    def _mode(self, path: str, data: bytes | None) -> dict[str, Any]:
        large = path.endswith(LARGE)
        oid = None if data is None else hashlib.sha256(data).hexdigest() if large else git_id(data)
        return {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}

    def batch(self, name: str) -> Any:
        objects = []
        for one in json.loads(self.body)["objects"]:
            known = one["oid"] in self.hub.large
            upload = {"actions": {"upload": {"href": f"{self.hub.url}/large/{one['oid']}"}}}
            objects.append({"oid": one["oid"], "size": one["size"], **({} if known else upload)})
        return {"transfer": "basic", "objects": objects}

    def store(self, oid: str) -> Any:
        if hashlib.sha256(self.body).hexdigest() != oid:
            self._answer({"error": "the content does not match the oid"}, 400)
            return None
        self.hub.large[oid] = self.body
        return {}

    def commit(self, name: str, revision: str) -> Any:
        repo = self.hub.repo(name)
        files, touched = dict(repo.files), set()
        for line in self.body.splitlines()[1:]:
            one = json.loads(line)
            path = one["value"]["path"]
            touched.add(path)
            if one["key"] == "deletedFile":
                del files[path]
            elif one["key"] == "file":
                files[path] = base64.b64decode(one["value"]["content"])
            else:
                files[path] = self.hub.large[one["value"]["oid"]]
        sha = repo.commit(files, touched)
        self.hub.on_commit(repo)
        return {"commitUrl": f"{self.hub.url}/datasets/{name}/commit/{sha}", "commitOid": sha, "success": True}

    def resolve(self, name: str, revision: str, path: str) -> Any:
        sha, files = self.hub.repo(name).at(revision)
        data = files[path]
        large = path.endswith(LARGE)
        etag = hashlib.sha256(data).hexdigest() if large else git_id(data)
        headers = {"X-Repo-Commit": sha, "ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}
        self._answer(data, 200, headers | ({"X-Linked-Etag": etag, "X-Linked-Size": str(len(data))} if large else {}))


NAME = r"([^/]+/[^/]+?)"
ROUTES = {
    r"POST /api/repos/create": Handler.create,
    rf"GET /api/datasets/{NAME}(?:/revision/main)?": Handler.info,
    rf"GET /api/datasets/{NAME}/tree/([^/]+)(/.*)?": Handler.tree,
    rf"POST /api/datasets/{NAME}/preupload/([^/]+)": Handler.preupload,
    rf"POST /datasets/{NAME}\.git/info/lfs/objects/batch": Handler.batch,
    r"PUT /large/([0-9a-f]+)": Handler.store,
    rf"POST /api/datasets/{NAME}/commit/([^/]+)": Handler.commit,
    rf"(?:GET|HEAD) /datasets/{NAME}/resolve/([^/]+)/(.+)": Handler.resolve,
}


@contextmanager
def running_hub() -> Iterator[Hub]:
    """Runs a server for the duration of the block."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
