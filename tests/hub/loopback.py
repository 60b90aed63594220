"""A small Hub server: the endpoints that `huggingface_hub` and `datasets` call, with failures on demand.

Every commit is kept as a dictionary from paths to contents, so that old revisions can be read.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

TOKEN = "hf_LoopbackTokenOfTheTests0123456789"
LARGE = (".safetensors", ".parquet", ".png", ".mp4")
PAGE = 1000
"""Entries of a page of a listing."""
HARNESSES = "/api/agent-harnesses"
"""The client asks for it once a day."""
DROP = 0
"""Instead of a status: the connection is closed without a response; a commit is made before."""


@dataclass
class Repo:
    """A repository."""

    private: bool = True
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
        self.repos: dict[tuple[str, str], Repo] = {}
        """By kind, `datasets` or `models`, and name."""
        self.large: dict[str, bytes] = {}
        self.has_buckets = True
        self.buckets: dict[str, dict[str, dict[str, Any]]] = {}
        """The files of each bucket; their contents are in the Xet storage."""
        self.bucket_log: list[tuple[str, str]] = []
        """The operations on buckets, in order: type and path."""
        self.xet = ""
        """The folder of the Xet storage."""
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []
        self.failures: list[tuple[str, int]] = []
        """Failures of the next matching requests: a pattern for `METHOD /path`, and a status or `DROP`."""
        self.always: list[tuple[str, int]] = []
        """Failures of all matching requests."""
        self.failure_headers: dict[str, str] = {}
        """Headers of the responses to failed requests, such as `Retry-After`."""
        self.on_commit: Callable[[Repo], object] = lambda repo: None
        """Called with the repository after a commit, before the response is sent."""
        self.refuse: Callable[[dict[str, bytes]], bool] = lambda files: False
        """Whether a commit with these files is refused as a whole."""
        self.lock = threading.Lock()
        self.url = ""

    def repo(self, name: str, kind: str = "datasets") -> Repo:
        return self.repos[kind, name]

    def calls(self) -> list[str]:
        """Requests to the Hub; the contents of large files go to its storage. One request is made once a day."""
        return [f"{method} {path}" for method, path in self.requests if not path.startswith(("/large/", HARNESSES))]

    def uploads(self) -> list[str]:
        return [path for method, path in self.requests if method == "PUT"]

    def failure(self, asked: str) -> int | None:
        with self.lock:
            for index, (pattern, status) in enumerate(self.failures):
                if re.match(pattern, asked):
                    del self.failures[index]
                    return status
        return next((status for pattern, status in self.always if re.match(pattern, asked)), None)


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def xet_size(storage: str, xet_hash: str) -> int:
    """The size of a file in the Xet storage, from the shards that list the segments of each file.

    A hash is printed as four little-endian numbers. A file is a header (hash, flags, number of segments) and its
    segments (hash, flags, size, first and last chunk), of 48 bytes each.
    """
    key = b"".join(bytes.fromhex(xet_hash[at : at + 16])[::-1] for at in range(0, 64, 16))
    if not any(key):
        return 0
    for shard in Path(storage).rglob("*.mdb"):
        data = shard.read_bytes()
        at = data.find(key, 48)
        if at >= 0:
            (segments,) = struct.unpack_from("<I", data, at + 36)
            return sum(struct.unpack_from("<I", data, at + 48 * index + 36)[0] for index in range(1, segments + 1))
    raise KeyError(xet_hash)


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
            self._answer({"error": "a failure requested by the test"}, failure, self.hub.failure_headers)
        elif not self._allowed(path):
            self._answer({"error": "unauthorized"}, 401)
        elif failure == DROP:
            if "/commit/" in path:
                self._route(path, parse_qs(url.query), silent=True)
            self.close_connection = True
        else:
            self._route(path, parse_qs(url.query))

    def _allowed(self, path: str) -> bool:
        """Everybody may read public repositories; all else needs the token. A wrong token is never accepted."""
        token = self.headers.get("Authorization")
        if token is not None or path.startswith("/large/") or path == HARNESSES:
            return token in (None, f"Bearer {TOKEN}")
        public = [name for (_, name), repo in self.hub.repos.items() if not repo.private]
        reading = self.command in ("GET", "HEAD") or "/paths-info/" in path
        return reading and any(f"/{name}" in path for name in public)

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
                self.query = query
                with self.hub.lock:
                    try:
                        answer, status, headers = do(self, *found.groups()), 200, {}
                    except KeyError as error:
                        missing = "RepoNotFound" if isinstance(error.args[0], tuple) else "EntryNotFound"
                        answer, status, headers = {"error": f"no {error}"}, 404, {"X-Error-Code": missing}
                if not silent and answer is not None:
                    self._answer(answer, status, headers)
                return
        self._answer({"error": f"the test server has no {self.command} {path}"}, 501)

    def _answer(self, value: Any, status: int = 200, headers: dict[str, str] | None = None) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def create(self) -> Any:
        asked = json.loads(self.body)
        name, kind = f"{asked['organization']}/{asked['name']}", f"{asked.get('type', 'model')}s"
        url = {"url": f"{self.hub.url}/{'datasets/' if kind == 'datasets' else ''}{name}"}
        if (kind, name) in self.hub.repos:
            self._answer({"error": "exists", **url}, 409)
            return None
        private = asked.get("visibility") == "private" or asked.get("private") is True
        made = self.hub.repos[kind, name] = Repo(private)
        made.commit({".gitattributes": b"*.safetensors filter=lfs\n"}, set())
        return url

    def info(self, kind: str, name: str, revision: str | None) -> Any:
        repo = self.hub.repo(name, kind)
        sha, files = repo.at(revision or "main")
        siblings = {} if "expand" in self.query else {"siblings": [{"rfilename": path} for path in files]}
        return {"id": name, "sha": sha, "private": repo.private, "tags": [], **siblings}

    def validate(self) -> Any:
        """Parses the front matter of a card."""
        content = json.loads(self.body)["content"]
        front = re.match(r"---\n(.*?)\n---\n", content, re.DOTALL)
        try:
            facts = yaml.safe_load(front[1]) if front else None
        except yaml.YAMLError:
            facts = None
        if isinstance(facts, dict):
            return {"errors": [], "warnings": []}
        self._answer({"errors": [{"message": "the front matter is not valid"}], "warnings": []}, 400)
        return None

    def squash(self, kind: str, name: str) -> Any:
        repo = self.hub.repo(name, kind)
        repo.commits, repo.written = [("f" * 40, repo.files)], [set()]
        return {}

    def paths_info(self, kind: str, name: str, revision: str) -> Any:
        _, files = self.hub.repo(name, kind).at(revision)
        asked = parse_qs(self.body.decode())["paths"]
        return [entry for path in asked if (entry := self._path_entry(path.strip("/"), files)) is not None]

    def _path_entry(self, path: str, files: dict[str, bytes]) -> dict[str, Any] | None:
        if path in files:
            return self._entry(path, files[path])
        if not path or any(one.startswith(f"{path}/") for one in files):
            return {"type": "directory", "path": path, "oid": git_id(path.encode()), "size": 0}
        return None

    def tree(self, kind: str, name: str, revision: str, folder: str | None) -> Any:
        _, files = self.hub.repo(name, kind).at(revision)
        below = f"{(folder or '').strip('/')}/".lstrip("/")
        found = [path for path in files if path.startswith(below)]
        if below and not found:
            raise KeyError(below)
        entries = {path: self._entry(path, files[path]) for path in found}
        folders = {path[: end.start()] for path in found for end in re.finditer("/", path) if end.start() >= len(below)}
        entries |= {path: self._path_entry(path, files) or {} for path in folders}
        if self.query.get("recursive", ["False"])[0].lower() != "true":
            entries = {path: entry for path, entry in entries.items() if "/" not in path.removeprefix(below)}
        start = int(self.query.get("cursor", ["0"])[0])
        rest = [entries[path] for path in sorted(entries)][start:]
        following = f"{self.path.partition('?')[0]}?recursive=True&cursor={start + PAGE}"
        headers = {"Link": f'<{self.hub.url}{following}>; rel="next"'} if len(rest) > PAGE else {}
        self._answer(rest[:PAGE], 200, headers)

    def _entry(self, path: str, data: bytes) -> dict[str, Any]:
        entry = {"type": "file", "path": path, "size": len(data), "oid": git_id(data)}
        if path.endswith(LARGE):
            entry["lfs"] = {"oid": hashlib.sha256(data).hexdigest(), "size": len(data), "pointerSize": 130}
        return entry

    def preupload(self, kind: str, name: str, revision: str) -> Any:
        _, files = self.hub.repo(name, kind).at(revision)
        asked = json.loads(self.body)["files"]
        return {"files": [self._mode(one["path"], files.get(one["path"])) for one in asked]}

    def _mode(self, path: str, data: bytes | None) -> dict[str, Any]:
        large = path.endswith(LARGE)
        oid = None if data is None else hashlib.sha256(data).hexdigest() if large else git_id(data)
        return {"path": path, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False, "oid": oid}

    def batch(self, kind: str | None, name: str) -> Any:
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

    def commit(self, kind: str, name: str, revision: str) -> Any:
        repo = self.hub.repo(name, kind)
        files, touched = dict(repo.files), set()
        header, *lines = map(json.loads, self.body.splitlines())
        if header["value"].get("parentCommit") not in (None, repo.commits[-1][0]):
            self._answer({"error": "a commit has happened since"}, 412)
            return None
        for one in lines:
            path = one["value"]["path"]
            touched.add(path)
            if one["key"] == "deletedFile":
                del files[path]
            elif one["key"] == "file":
                files[path] = base64.b64decode(one["value"]["content"])
            else:
                files[path] = self.hub.large[one["value"]["oid"]]
        if self.hub.refuse({path: files[path] for path in touched if path in files}):
            self._answer({"error": "a file is not allowed"}, 400)
            return None
        sha = repo.commit(files, touched)
        self.hub.on_commit(repo)
        return {"commitUrl": f"{self.hub.url}/{kind}/{name}/commit/{sha}", "commitOid": sha, "success": True}

    def create_bucket(self, name: str) -> Any:
        if not self.hub.has_buckets:
            raise KeyError(name)
        known = name in self.hub.buckets
        self.hub.buckets.setdefault(name, {})
        self._answer({"url": f"{self.hub.url}/buckets/{name}"}, 409 if known else 200)

    def bucket_info(self, name: str) -> Any:
        size = sum(one["size"] for one in self.hub.buckets[name].values())
        facts = {"id": name, "private": True, "createdAt": "2026-01-01T00:00:00.000Z", "size": size}
        return {**facts, "totalFiles": len(self.hub.buckets[name])}

    def bucket_tree(self, name: str, prefix: str | None) -> Any:
        below = unquote(prefix or "").strip("/")
        return [one for path, one in sorted(self.hub.buckets[name].items()) if path.startswith(below)]

    def bucket_paths(self, name: str) -> Any:
        files, asked = self.hub.buckets[name], json.loads(self.body)["paths"]
        return [files[path] for path in asked if path in files]

    def bucket_batch(self, name: str) -> Any:
        """Applies operations one by one; a failed one does not undo the others."""
        files, failed = self.hub.buckets[name], []
        for one in map(json.loads, self.body.splitlines()):
            self.hub.bucket_log.append((one["type"], one["path"]))
            if one["type"] == "deleteFile" and files.pop(one["path"], None) is None:
                failed.append({"path": one["path"], "error": "there is no such file"})
            elif one["type"] == "addFile":
                size = xet_size(self.hub.xet, one["xetHash"])
                files[one["path"]] = {"type": "file", "path": one["path"], "size": size, "xetHash": one["xetHash"]}
        return {"success": not failed, "failed": failed}

    def xet_token(self, name: str) -> Any:
        """The storage is a folder of this machine, which the client of the Xet storage supports for tests."""
        url, expires = f"local://{self.hub.xet}", int(time.time()) + 3600
        headers = {"X-Xet-Cas-Url": url, "X-Xet-Access-Token": "xet", "X-Xet-Token-Expiration": str(expires)}
        self._answer({"casUrl": url, "accessToken": "xet", "exp": expires}, 200, headers)

    def bucket_resolve(self, name: str, path: str) -> Any:
        one = self.hub.buckets[name][unquote(path)]
        route = f"{self.hub.url}/api/buckets/{name}/xet-read-token"
        headers = {"X-Xet-Hash": one["xetHash"], "X-Xet-Refresh-Route": route, "X-Linked-Size": str(one["size"])}
        self._answer({}, 200, headers)

    def resolve(self, kind: str | None, name: str, revision: str, path: str) -> Any:
        sha, files = self.hub.repo(name, "datasets" if kind else "models").at(revision)
        data = files[path]
        large = path.endswith(LARGE)
        etag = hashlib.sha256(data).hexdigest() if large else git_id(data)
        headers = {"X-Repo-Commit": sha, "ETag": f'"{etag}"', "Content-Type": "application/octet-stream"}
        headers |= {"X-Linked-Etag": etag, "X-Linked-Size": str(len(data))} if large else {}
        if part := re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", "")):
            first, last = int(part[1]), min(int(part[2] or len(data)), len(data) - 1)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            self._answer(data[first : last + 1], 206, headers)
        else:
            self._answer(data, 200, headers)


KIND, NAME, REVISION = "(datasets|models)", r"([^/]+/[^/]+?)", "([^/]+)"
ROUTES = {
    f"GET {HARNESSES}": lambda _: {"standardEnvVars": [], "harnesses": {}},
    r"POST /api/repos/create": Handler.create,
    r"POST /api/buckets/([^/]+/[^/]+)": Handler.create_bucket,
    r"GET /api/buckets/([^/]+/[^/]+)": Handler.bucket_info,
    r"GET /api/buckets/([^/]+/[^/]+)/tree(/.*)?": Handler.bucket_tree,
    r"POST /api/buckets/([^/]+/[^/]+)/paths-info": Handler.bucket_paths,
    r"POST /api/buckets/([^/]+/[^/]+)/batch": Handler.bucket_batch,
    r"GET /api/buckets/([^/]+/[^/]+)/xet-(?:read|write)-token": Handler.xet_token,
    r"(?:GET|HEAD) /buckets/([^/]+/[^/]+)/resolve/(.+)": Handler.bucket_resolve,
    r"POST /api/validate-yaml": Handler.validate,
    rf"GET /api/{KIND}/{NAME}(?:/revision/{REVISION})?": Handler.info,
    rf"GET /api/{KIND}/{NAME}/tree/{REVISION}(/.*)?": Handler.tree,
    rf"POST /api/{KIND}/{NAME}/paths-info/{REVISION}": Handler.paths_info,
    rf"POST /api/{KIND}/{NAME}/super-squash/main": Handler.squash,
    rf"POST /api/{KIND}/{NAME}/preupload/{REVISION}": Handler.preupload,
    rf"POST /(datasets/)?{NAME}\.git/info/lfs/objects/batch": Handler.batch,
    r"PUT /large/([0-9a-f]+)": Handler.store,
    rf"POST /api/{KIND}/{NAME}/commit/{REVISION}": Handler.commit,
    rf"(?:GET|HEAD) /(datasets/)?{NAME}/resolve/{REVISION}/(.+)": Handler.resolve,
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
        with tempfile.TemporaryDirectory() as hub.xet:
            yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
