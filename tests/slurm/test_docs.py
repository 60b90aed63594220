"""The page about SLURM, typed from its first line to its last on a real cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl.launch.job_records import read_records
from tests.docs import test_commands
from tests.docs.documents import parse_blocks
from tests.project import ROOT
from tests.slurm.cluster import Cluster

PAGE = ROOT / "docs" / "slurm.md"


@pytest.mark.timeout(900)
def test_every_command_of_the_page_does_what_it_says(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_commands, "TIMEOUT", 240)  # a job waits for its turn
    text = PAGE.read_text().replace("<!-- not run: needs a SLURM cluster -->", "<!-- output varies -->")
    reader = test_commands.Reader(tmp_path)
    assert reader.read(parse_blocks(text, PAGE.name)) >= 10
    records = read_records(reader.home / "runs")
    assert [record.stopped for record in records] == [False, *[True] * 4], "one of four sessions, then four of one"
