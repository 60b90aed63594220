"""Programs of a queue that answer nonsense, fail or hang: one sentence, and `status` shows what the files say."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from rldsl.launch import slurm_queue
from rldsl.launch.backend import QueueState, QueueUnavailable
from tests.faults.record import cases, record

IDS = ["12_0", "12_1", "13"]
WORDS = (
    *("12_0|RUNNING|None|node1", "12_[0-1]|PENDING|Resources|", "13|FAILED|1:0|node2", "13.batch|FAILED|0:9|node2"),
    *("12_[0-", "|||", "12_1|", "13|CANCELLED by 0|0:0|", "12_0|COMPLETED|x:y|n", "12_[1-999999999]|PENDING|x|"),
    *("slurm_load_jobs error: Socket timed out", "\x00\x01", "12_0|RUNNING|None|node1|more", "é" * 50, ""),
)


def answers(number: int) -> list[bytes]:
    stream = random.Random(5)
    made = []
    for _ in range(number):
        lines = [stream.choice(WORDS).encode() for _ in range(stream.randrange(4))]
        text = bytearray(b"\n".join(lines) + b"\n" * stream.randrange(2))
        for _ in range(stream.randrange(4)):
            if text:
                text[stream.randrange(len(text))] = stream.randrange(256)
        made.append(bytes(text))
    return made


def test_nonsense_from_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm_queue, "TIMEOUT", 5.0)
    for name in ("squeue", "sacct", "sbatch"):
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ncat "{tmp_path}/answer"\nexit $(cat "{tmp_path}/code")\n')
        program.chmod(0o755)
    sentences = 0
    number = cases(60, 1500)
    for index, answer in enumerate(answers(number)):
        (tmp_path / "answer").write_bytes(answer)
        (tmp_path / "code").write_text(str(int(index % 10 == 0)))
        for ask in (lambda: slurm_queue.job_states(IDS), slurm_queue.job_comments):
            try:
                states = ask()
            except QueueUnavailable as error:
                assert "\n" not in str(error)
                sentences += 1
            else:
                assert isinstance(states, list) or all(isinstance(one, QueueState) for one in states.values())
    record("nonsense from SLURM", cases=number, sentences=sentences, tracebacks=0)


def test_a_queue_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "squeue").write_text("#!/bin/sh\nsleep 60\n")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(QueueUnavailable, match="did not answer"):
        slurm_queue.run_command(["squeue"], timeout=0.5)
