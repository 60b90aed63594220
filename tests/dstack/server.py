"""A real dstack server on this machine, with a fleet of stand-ins for machines."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import sysconfig
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rldsl.launch.dstack.api import Api, Server

ROOT = Path(__file__).parents[2]
DSTACK = ROOT / ".venv-dstack" / "bin"
PROJECT = "rl"
TOKEN = "a-token-of-the-tests-0123456789"
FLEET = "machines"
SECONDS = 90.0


@dataclass
class Cluster:
    """A server that answers."""

    server: Server
    folder: Path
    """With the folders of the machines, in which jobs have theirs."""

    @property
    def api(self) -> Api:
        return Api(self.server)

    def environment(self) -> dict[str, str]:
        return {"DSTACK_SERVER_URL": self.server.url, "DSTACK_TOKEN": TOKEN, "DSTACK_PROJECT": PROJECT}


@contextmanager
def running_cluster(folder: Path, machines: int) -> Iterator[Cluster]:
    """A server, a project and machines at rest, while the block lasts."""
    port = _free_port()
    with _server(folder / "server", port), _machines(folder / "machines", machines) as ssh:
        cluster = Cluster(Server(f"http://127.0.0.1:{port}", TOKEN, PROJECT), folder / "machines")
        until(lambda: _healthy(cluster.server.url), "the server to answer")
        cluster.api.call("/api/projects/create", {"project_name": PROJECT})
        add_fleet(cluster, folder, ssh, machines)
        until(lambda: _idle(cluster) == machines, "machines at rest")
        yield cluster


def add_fleet(cluster: Cluster, folder: Path, port: int, machines: int) -> None:
    """Machines that the server reaches by SSH."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    key = {"public": (folder / "key.pub").read_text(), "private": (folder / "key").read_text()}
    hosts = [f"127.0.0.{number}" for number in range(1, machines + 1)]
    access = {"user": "root", "port": port, "ssh_key": key, "hosts": hosts}
    spec = {
        "configuration": {"type": "fleet", "name": FLEET, "ssh_config": access},
        "configuration_path": None,
        "profile": {"name": "default"},
    }
    cluster.api.project("fleets/apply", {"plan": {"spec": spec, "current_resource": None}, "force": False})


@contextmanager
def _server(folder: Path, port: int) -> Iterator[None]:
    folder.mkdir(parents=True)
    own = {
        "HOME": str(folder),
        "DSTACK_SERVER_DIR": str(folder),
        "DSTACK_DEFAULT_CREDS_DISABLED": "1",
        "DSTACK_DO_NOT_UPDATE_DEFAULT_PROJECT": "1",
        "DSTACK_SERVER_SENTRY_DSN": "",
        "GPUHUNT_CATALOG_URL": "http://127.0.0.1:9",
    }
    command = [DSTACK / "dstack", "server", "--host", "127.0.0.1", "--port", str(port), "--token", TOKEN, "-y"]
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log, start_new_session=True)
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def _machines(folder: Path, count: int) -> Iterator[int]:
    programs = str(own_environment(folder.with_name("environment")))
    command = [DSTACK / "python", Path(__file__).with_name("machines.py"), str(count), str(folder), programs]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


def own_environment(folder: Path) -> Path:
    """A Python environment of the machines, with what pip would install there but without rldsl; returns its `bin`.

    The packages are links to those of the tests: `pip install` finds them in place, and anything else is missing.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (goal,) = folder.glob("lib/python*/site-packages")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if "rldsl" not in path.name and path.name != "__pycache__":
            (goal / path.name).symlink_to(path)
    return folder / "bin"


def _idle(cluster: Cluster) -> int:
    instances = [one for fleet in cluster.api.project("fleets/list") for one in fleet["instances"]]
    return sum(one["status"] == "idle" for one in instances)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthcheck", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def until(true: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Waits for something that takes its time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds:.0f} seconds in vain for {what}"
        time.sleep(0.5)
