"""`python -m rldsl.launch.dstack.host FOLDER`: runs the Submitit job of a run, on a machine of dstack.

The result is printed to the log, which is all that remains of a machine.
"""

from __future__ import annotations

import base64
import os
import sys
import traceback
from pathlib import Path

from rldsl.launch.dstack.configuration import RAISED
from rldsl.launch.dstack.executor import RESULT


def main(folder: str) -> None:
    """Runs the job and prints its result. An exception is a result too, and ends this process with an error.

    Not so where dstack would then run the function again and again: it would raise the same exception.
    """
    from submitit.core.job_environment import JobEnvironment
    from submitit.core.submission import process_job

    try:
        process_job(folder)
    except Exception:
        if os.environ.get(RAISED) is None:
            raise
        traceback.print_exc()
        sys.exit(int(os.environ[RAISED]))
    finally:
        result = JobEnvironment().paths.result_pickle
        if result.exists():
            print_result(result)


def print_result(result: Path) -> None:
    """Prints the pickled result as one line."""
    sys.stdout.flush()
    print(f"\n{RESULT}{base64.b64encode(result.read_bytes()).decode()}", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1])
