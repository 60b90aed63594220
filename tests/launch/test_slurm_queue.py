"""The words of SLURM, in ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.launch.backend import QueueState, QueueUnavailable, Usage
from rldsl.launch.slurm_queue import job_states, job_usage, parse_sacct, parse_state, run_command

SACCT = """\
12_[3-4,7%2]|PENDING|0:0|None assigned
12_0|COMPLETED|0:0|node1
12_0.batch|COMPLETED|0:0|node1
12_1|FAILED|9:0|node2
12_1.0|CANCELLED|0:9|node2
12_2|FAILED|1:0|node2
12_2.0|OUT_OF_MEMORY|0:125|node2
13|CANCELLED by 0|0:0|node1
13.0|CANCELLED|0:15|node1
14|NODE_FAIL|0:0|node3
15|TIMEOUT|0:0|node3
nonsense
"""


def test_how_jobs_ended() -> None:
    found = parse_sacct(SACCT)
    assert [found[f"12_{index}"].state for index in (3, 4, 7)] == ["pending"] * 3
    assert found["12_0"] == QueueState("done", "", "node1")
    assert found["12_1"] == QueueState("failed", "killed by SIGKILL", "node2"), "by its step, which knows better"
    assert found["12_2"].reason == "out of memory"
    assert found["13"].state == "cancelled"
    assert (found["14"].reason, found["15"].reason) == ("node failure", "time limit")


@pytest.mark.parametrize(
    ("words", "state"),
    [
        (("PENDING", "", "", "Priority"), QueueState("pending", "Priority")),
        (("RUNNING", "", "node3", "None"), QueueState("running", where="node3")),
        (("FAILED", "2:0"), QueueState("failed", "exit 2")),
        (("FAILED", "0:64"), QueueState("failed", "killed by SIGRTMAX")),
        (("FAILED", "0:99"), QueueState("failed", "killed by signal 99")),
        (("PREEMPTED", "0:0"), QueueState("failed", "preempted")),
        (("SOMETHING_NEW", "0:0"), QueueState()),
    ],
)
def test_states(words: tuple[str, ...], state: QueueState) -> None:
    assert parse_state(*words) == state


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder}/calls\n{text}\n")
    (folder / name).chmod(0o755)


def test_two_calls_are_enough_for_thousands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write(tmp_path, "squeue", 'for i in $(seq 0 999); do echo "1_$i|RUNNING|None|node1"; done')
    write(tmp_path, "sacct", 'for i in $(seq 1000 1999); do echo "1_$i|OUT_OF_MEMORY|0:125|node1"; done')
    found = job_states([f"1_{index}" for index in range(2000)])
    assert (found["1_999"].state, found["1_1999"].reason) == ("running", "out of memory")
    assert (tmp_path / "calls").read_text().split() == ["squeue", "sacct"]


def test_a_queue_that_is_not_there_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(QueueUnavailable, match="there is no squeue on this machine"):
        job_states(["1"])


def test_a_queue_that_fails_or_hangs_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    write(tmp_path, "squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    with pytest.raises(QueueUnavailable, match="squeue failed: slurm_load_jobs error: Unable to contact"):
        job_states(["1"])
    write(tmp_path, "squeue", "exec sleep 20")
    with pytest.raises(QueueUnavailable, match="squeue did not answer in 0 seconds"):
        run_command(["squeue"], timeout=0.2)


def test_what_jobs_used_is_summed_over_all_their_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    lives = ["7_0|7200|1800|cpu=4,gres/gpu=2", "7_0|3600|900|cpu=4,gres/gpu=2", "7_1|3600|3600|cpu=1", "8|9|9|", "no"]
    write(tmp_path, "sacct", "\n".join(f"echo '{line}'" for line in lives))
    assert job_usage(["7_0", "7_1"]) == Usage(core_hours=4.0, gpu_hours=1.5)
    write(tmp_path, "sacct", "exit 1")
    assert job_usage(["7_0"]) == Usage(), "SLURM may keep no accounts"
