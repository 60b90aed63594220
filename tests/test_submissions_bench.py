"""The measurement of large submissions: it runs, and what it prints is what it found."""

from __future__ import annotations

import re
import subprocess
import sys

from tests.project import ROOT


def test_it_measures_submitting_and_asking() -> None:
    command = [sys.executable, "-m", "benchmarks.submissions", "--sessions", "40"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = dict(re.findall(r"^(submit|status|status \(all running\)): ([\d.]+) s of CPU", done.stdout, re.MULTILINE))
    assert len(found) == 3 and all(float(seconds) > 0 for seconds in found.values())
    assert re.search(r"^files in \.jobs, .* 1\.\d\d a session", done.stdout, re.MULTILINE)
