"""`python -m rldsl.launch.dstack.host FOLDER`: on a machine of dstack's, the Submitit job of this run.

The value of the function goes home through the log: the only thing that is left of a machine.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path

from rldsl.launch.dstack.executor import RESULT


def main(folder: str) -> None:
    """Runs the job; a failure is told too, and is the end of this process."""
    from submitit.core.job_environment import JobEnvironment
    from submitit.core.submission import process_job

    try:
        process_job(folder)
    finally:
        result = JobEnvironment().paths.result_pickle
        if result.exists():
            tell(result)


def tell(result: Path) -> None:
    """One line of the log."""
    sys.stdout.flush()
    print(f"\n{RESULT}{base64.b64encode(result.read_bytes()).decode()}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
