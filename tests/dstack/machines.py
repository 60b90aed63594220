"""Stand-ins for the machines of a dstack SSH fleet, for a real, unmodified server: run with dstack's own Python.

`python machines.py COUNT FOLDER BIN`: each machine is an SSH server at 127.0.0.1, 127.0.0.2, ... with dstack's shim and
runner behind it. It says that it has a GPU, and runs the commands of a job as processes of this machine, in a folder of
their own below FOLDER and with the programs in BIN. One line on the output says the port of all of them.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

import paramiko

VERSION = version("dstack")
SHIM, RUNNER = 10998, 10999
"""The ports that the server asks for through SSH."""
PATIENCE = 10.0
"""Seconds between asking a job to end and ending it, as the real runner has it."""
GPU = {"gpu_count": 1, "gpu_vendor": "nvidia", "gpu_name": "NVIDIA L4", "gpu_memory": 23034}
SIZE = {"cpus": 8, "memory": 32 * 2**30, "disk_size": 200 * 2**30}


class Job:
    """What dstack's runner does in a container: files, commands, logs, states."""

    def __init__(self, folder: Path, programs: str) -> None:
        self.folder, self.programs = folder, programs
        self.lock = threading.Lock()
        self.asked: dict[str, Any] = {}
        self.archives: dict[str, bytes] = {}
        self.states: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.process: subprocess.Popen[bytes] | None = None
        self.ending: str | None = None
        self.last = 0

    def run(self) -> dict[str, str]:
        self.folder.mkdir(parents=True)
        spec, run = self.asked["job_spec"], self.asked["run"]["run_spec"]
        for one in spec.get("file_archives") or []:
            goal = (self.folder / one["path"]).parent
            goal.mkdir(parents=True, exist_ok=True)
            with tarfile.open(fileobj=io.BytesIO(self.archives[one["id"]])) as tar:
                tar.extractall(goal, filter="data")
        self.process = subprocess.Popen(
            ["bash", "-c", " && ".join(run["configuration"]["commands"])],
            cwd=self.folder,
            env=self._environment(spec, run["run_name"]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        (self.folder / "pid").write_text(str(self.process.pid))
        self._say("running")
        threading.Thread(target=self._follow, args=(self.process,), daemon=True).start()
        if spec.get("max_duration"):
            threading.Timer(spec["max_duration"], self.end, ["max_duration_exceeded"]).start()
        return {"working_dir": str(self.folder), "username": "root"}

    def _environment(self, spec: dict[str, Any], name: str) -> dict[str, str]:
        own = {"PATH": f"{self.programs}:/usr/bin:/bin", "HOME": str(self.folder), "LANG": "C.UTF-8"}
        told = {"DSTACK_RUN_NAME": name, "DSTACK_NODE_RANK": str(spec["job_num"]), "DSTACK_NODES_NUM": "1"}
        return {**own, **spec["env"], **told}

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        while data := os.read(process.stdout.fileno(), 1000):  # pieces, cut anywhere, with the ends of a terminal
            message = base64.b64encode(data.replace(b"\n", b"\r\n")).decode()
            with self.lock:
                self.logs.append({"timestamp": self._now(), "message": message})
        code = process.wait()
        code = code if code >= 0 else 128 - code
        if self.ending:
            self._say("terminated", termination_reason=self.ending, exit_status=code)
        elif code == 0:
            self._say("done", termination_reason="done_by_runner", exit_status=0)
        else:
            self._say("failed", termination_reason="container_exited_with_error", exit_status=code)

    def end(self, why: str) -> None:
        """Asks first."""
        if self.process is None or self.process.poll() is not None:
            return
        self.ending = why
        self._signal(signal.SIGINT)
        threading.Timer(PATIENCE, self._signal, [signal.SIGKILL]).start()

    def _signal(self, number: int) -> None:
        assert self.process is not None
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def _say(self, state: str, **facts: Any) -> None:
        with self.lock:
            self.states.append({"timestamp": self._now(), "state": state, **facts})

    def _now(self) -> int:
        self.last = max(self.last + 1, int(time.time() * 1000))
        return self.last

    def pull(self, after: int) -> dict[str, Any]:
        with self.lock:
            states = [one for one in self.states if one["timestamp"] > after]
            logs = [one for one in self.logs if one["timestamp"] > after]
            last = max(after, self.last)
        rest = {"runner_logs": [], "no_connections_secs": 0, "has_more": False}
        return {"job_states": states, "job_logs": logs, "last_updated": last, **rest}


class Machine:
    """One machine: at most one job at a time, each in a folder of its own."""

    def __init__(self, address: str, folder: Path, programs: str) -> None:
        self.address, self.folder, self.programs = address, folder, programs
        self.tasks: dict[str, dict[str, Any]] = {}
        self.jobs = 0
        self.fresh()
        self.ports = {SHIM: _serve(Shim, self), RUNNER: _serve(Runner, self)}

    def fresh(self) -> None:
        self.jobs += 1
        self.job = Job(self.folder / f"job-{self.jobs}", self.programs)

    @property
    def about(self) -> dict[str, Any]:
        return {**SIZE, **GPU, "addresses": [f"{self.address}/8"]}


class Api(BaseHTTPRequestHandler):
    """JSON over HTTP."""

    protocol_version = "HTTP/1.1"
    machine: Machine

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer(self.get(self.path))

    def do_POST(self) -> None:
        self.answer(self.post(self.path, self.body()))

    def answer(self, value: Any) -> None:
        data = json.dumps({"error": "not here"} if value is None else value).encode()
        self.send_response(404 if value is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data


class Shim(Api):
    """What starts containers."""

    def get(self, path: str) -> Any:
        programs = [
            {"name": name, "version": VERSION, "status": "installed"} for name in ("dstack-runner", "dstack-shim")
        ]
        fixed = {
            "/api/healthcheck": {"service": "dstack-shim", "version": VERSION},
            "/api/instance/health": {},
            "/api/instance/info": {"gpu_vendor": "nvidia", "gpu_driver_version": "550.54"},
            "/api/components": {"components": programs},
            "/api/tasks": {
                "tasks": [{"id": one["id"], "status": one["status"]} for one in self.machine.tasks.values()]
            },
        }
        return fixed.get(path) or self.machine.tasks.get(path.removeprefix("/api/tasks/"))

    def post(self, path: str, body: bytes) -> Any:
        if path == "/api/tasks":
            id = json.loads(body)["id"]
            self.machine.fresh()
            fine = {"termination_reason": "", "termination_message": "", "ports": []}
            self.machine.tasks[id] = {"id": id, "status": "running", **fine}
            return {}
        found = re.fullmatch(r"/api/tasks/([^/]+)/(terminate|remove)", path)
        if not found or found[1] not in self.machine.tasks:
            return None
        if found[2] == "remove":
            del self.machine.tasks[found[1]]
        else:
            self.machine.job.end("terminated_by_user")
            asked = json.loads(body)
            why = {name: asked[name] for name in ("termination_reason", "termination_message")}
            self.machine.tasks[found[1]] |= {"status": "terminated", **why}
        return {}


class Runner(Api):
    """What runs in a container."""

    def get(self, path: str) -> Any:
        if path.startswith("/api/pull"):
            return self.machine.job.pull(int(path.partition("timestamp=")[2]))
        now = {"timestamp_micro": int(time.time() * 1e6), "cpu_usage_micro": 1, "gpus": []}
        fixed = {
            "/api/healthcheck": {"service": "dstack-runner", "version": VERSION},
            "/api/metrics": {**now, "memory_usage_bytes": 1, "memory_working_set_bytes": 1},
        }
        return fixed.get(path)

    def post(self, path: str, body: bytes) -> Any:
        job = self.machine.job
        if path == "/api/submit":
            job.asked = json.loads(body)
        elif path == "/api/upload_archive":
            head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
            for part in BytesParser().parsebytes(head + body).get_payload():
                job.archives[part.get_filename()] = part.get_payload(decode=True)
        elif path == "/api/run":
            return job.run()
        elif path == "/api/stop":
            job.end("terminated_by_user")
        elif path != "/api/upload_code":
            return None
        return {}


def _serve(kind: type[Api], machine: Machine) -> int:
    server = ThreadingHTTPServer(("127.0.0.1", 0), type(kind.__name__, (kind,), {"machine": machine}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


class Files(paramiko.SFTPServerInterface):
    """Takes what the server puts on a machine, and forgets what is in it."""

    sizes: dict[str, int] = {}  # noqa: RUF012 (one for all)

    def open(self, path: str, flags: int, attr: object) -> Any:
        self.sizes[path] = 0
        return Written(path)

    def stat(self, path: str) -> Any:
        return _sized(self.sizes[path]) if path in self.sizes else paramiko.SFTP_NO_SUCH_FILE

    lstat = stat


class Written(paramiko.SFTPHandle):
    def __init__(self, path: str) -> None:
        super().__init__(0)
        self.path = path

    def write(self, offset: int, data: bytes) -> int:
        Files.sizes[self.path] = max(Files.sizes[self.path], offset + len(data))
        return paramiko.SFTP_OK

    def stat(self) -> Any:
        return _sized(Files.sizes[self.path])


def _sized(size: int) -> paramiko.SFTPAttributes:
    about = paramiko.SFTPAttributes()
    about.st_size = size
    return about


class Door(paramiko.ServerInterface):
    """Who comes in, and what of: a shell that knows three answers, and tunnels to the shim and the runner."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.tunnels: dict[int, int] = {}

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_auth_publickey(self, username: str, key: object) -> int:
        return paramiko.AUTH_SUCCESSFUL

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED if kind == "session" else paramiko.OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_direct_tcpip_request(self, chanid: int, origin: object, destination: tuple[str, int]) -> int:
        if destination[1] not in self.machine.ports:
            return paramiko.OPEN_FAILED_CONNECT_FAILED
        self.tunnels[chanid] = self.machine.ports[destination[1]]
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        threading.Thread(target=_reply, args=(channel, self._known(command.decode())), daemon=True).start()
        return True

    def _known(self, command: str) -> str:
        if command.strip() == "uname -m":
            return "x86_64\n"
        if "host_info.json" in command and "cat " in command:
            return json.dumps(self.machine.about)
        if f":{SHIM}/api/healthcheck" in command:
            return json.dumps({"service": "dstack-shim", "version": VERSION})
        return ""


def _reply(channel: paramiko.Channel, text: str) -> None:
    time.sleep(0.02)  # the answer to the request itself goes first
    if text:
        channel.sendall(text.encode())
    channel.send_exit_status(0)
    channel.shutdown_write()
    channel.close()


def _tunnel(channel: paramiko.Channel, port: int) -> None:
    inner = socket.create_connection(("127.0.0.1", port))

    def copy(read: Any, write: Any, end: Any) -> None:
        try:
            while data := read(65536):
                write(data)
        except OSError:
            pass
        finally:
            end()

    def shut() -> None:
        try:
            inner.shutdown(socket.SHUT_WR)
        except OSError:
            inner.close()

    threading.Thread(target=copy, args=(channel.recv, inner.sendall, shut), daemon=True).start()
    threading.Thread(target=copy, args=(inner.recv, channel.sendall, channel.close), daemon=True).start()


def _welcome(connection: socket.socket, machine: Machine, key: paramiko.PKey) -> None:
    try:
        transport, door = paramiko.Transport(connection), Door(machine)
        transport.add_server_key(key)
        transport.set_subsystem_handler("sftp", paramiko.SFTPServer, Files)
        transport.start_server(server=door)
        while transport.is_active():
            channel = transport.accept(5)
            port = door.tunnels.pop(channel.get_id(), None) if channel else None
            if port:
                _tunnel(channel, port)
    except (OSError, EOFError, paramiko.SSHException):
        connection.close()


def _listen(machine: Machine, port: int, key: paramiko.PKey) -> int:
    listener = socket.create_server((machine.address, port), backlog=50)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_welcome, args=(connection, machine, key), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    return listener.getsockname()[1]


def main(count: int, folder: Path, programs: str) -> None:
    key = paramiko.RSAKey.generate(2048)
    port = 0
    for number in range(1, count + 1):
        port = _listen(Machine(f"127.0.0.{number}", folder / f"machine-{number}", programs), port, key)
    print(port, flush=True)
    sys.stdin.read()  # as long as the tests hold the other end


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
