"""Submission as a transaction: no job is in a queue without a record of it, wherever its submitter was killed.

The intent is on the disk before the queue is asked, and records replace it when the queue has answered. An intent that
is left over belongs to a submitter that was killed or got no answer: the next command asks the queue which of its jobs
have arrived, records those, and gives up the others. A job that arrives later ends before it trains, and is cancelled.

    with submission_lock(runs):                    # one submitter at a time; the others wait
        settle_submissions(runs)                   # what killed submitters have left
        ...                                        # which sessions have no job?
        records = submit_jobs(runs, launcher, jobs, code)

A backend has two duties: `Backend.find` must find whatever `Backend.submit` has started and, where jobs can read the
run directory, a job must ask `intents.is_wanted` before it trains.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rldsl.launch.backend import QueueUnavailable, Refused, backend_for
from rldsl.launch.follow import STOP_SIGNALS
from rldsl.launch.intents import Intent, late_intents, open_intents
from rldsl.launch.job_records import JobRecord, new_submission, read_records, record_of, write_records
from rldsl.launch.jobs import Job
from rldsl.launch.submission_lock import submission_lock
from rldsl.spec.errors import SpecError
from rldsl.spec.launcher import Launcher, Local
from rldsl.store.errors import AlreadyRunning, StoreError
from rldsl.store.journal import Garbage, Journal, read_journal
from rldsl.store.session_dir import SessionDir

MOST_IDS = 6


def submit_jobs(runs: Path, launcher: Launcher, jobs: Sequence[Job], code: Path, search: str = "") -> list[JobRecord]:
    """Submits jobs with equal resources, and returns the records of those that the queue has accepted.

    Signals that ask this process to stop are handled once all accepted jobs are recorded. Raises `Refused` if the
    queue did not accept all jobs, and `QueueUnavailable` if it is not known which ones it has.
    """
    backend = backend_for(launcher, runs)
    with submission_lock(runs), _signals_later():
        folder = new_submission(runs)
        records = (record_of(job, "", folder.name, launcher, runs) for job in jobs)
        intent = Intent(folder, tuple(replace(record, search=search) for record in records))
        intent.write()
        try:
            ids = dict(enumerate(backend.submit(jobs, code, folder)))
        except SpecError:  # before anything was submitted
            intent.close()
            raise
        except Refused as error:
            _record(intent, dict(enumerate(error.ids)), runs)
            intent.close()
            raise
        except StoreError as error:
            return _settle_unanswered(intent, runs, error)
        recorded = _record(intent, ids, runs)
        intent.close()
        return recorded


def _settle_unanswered(intent: Intent, runs: Path, error: StoreError) -> list[JobRecord]:
    """Records the jobs that the queue has although it reported an error; raises `Refused` if some are missing."""
    try:
        found = backend_for(intent.launcher, runs).find(intent)
    except StoreError:
        words = f"{error}; which jobs it has accepted is not known, the next command asks again"
        raise QueueUnavailable(words) from error
    records = _record(intent, found, runs)
    intent.settle(found)
    if len(records) < len(intent.jobs):
        raise Refused(str(error), [record.job_id for record in records]) from error
    return records  # only the answer was lost


def settle_submissions(runs: Path) -> list[str]:
    """Settles what killed submitters have left; returns a sentence for each submission with jobs in the queue.

    Raises `QueueUnavailable` if a queue does not answer. The caller holds the lock.
    """
    notes = []
    for intent in open_intents(runs):
        found = _find(intent, runs)
        _record(intent, found, runs, again=True)
        intent.settle(found)
        if found:
            few = len(intent.jobs) - len(found)
            rest = f"; the other {few} were never submitted" if few else ""
            notes.append(f"found {_jobs(found)} of a submission that was interrupted, and recorded them{rest}")
    late_ones = late_intents(runs)
    known = {(record.submission, record.job_id) for record in read_records(runs)} if late_ones else set()
    for intent in late_ones:
        late = {at: id for at, id in _find(intent, runs).items() if (intent.name, id) not in known}
        if late:
            backend_for(intent.launcher, runs).cancel(list(late.values()))
            notes.append(f"cancelled {_jobs(late)} of a submission that was interrupted: they arrived too late")
    return notes


def try_to_settle(runs: Path) -> list[str]:
    """As `settle_submissions`, for commands that submit nothing: problems are sentences, too."""
    if not open_intents(runs) and not late_intents(runs):
        return []
    try:
        with submission_lock(runs, wait=False):
            return settle_submissions(runs)
    except AlreadyRunning as error:
        return [str(error)]
    except StoreError as error:
        return [f"a submission was interrupted, and which of its jobs are in the queue is not known: {error}"]


def _find(intent: Intent, runs: Path) -> dict[int, str]:
    try:
        return backend_for(intent.launcher, runs).find(intent)
    except SpecError as error:
        raise QueueUnavailable(str(error)) from error


def _record(intent: Intent, ids: Mapping[int, str], runs: Path, *, again: bool = False) -> list[JobRecord]:
    """Records the accepted jobs of a submission, and journals them in their sessions.

    `again`: a submitter that was killed may have done a part of it.
    """
    records = [replace(intent.jobs[position], job_id=id) for position, id in sorted(ids.items())]
    known = {record.job_id for record in read_records(runs) if record.submission == intent.name} if again else ()
    write_records(runs, [record for record in records if record.job_id not in known])
    for record in records:
        _write_to_journals(record, runs, again)
    return records


def _write_to_journals(record: JobRecord, runs: Path, again: bool) -> None:
    """Records a job in the journals of its sessions; not for this machine, where the process itself does so."""
    if record.backend == Local.model_fields["kind"].default:
        return
    for directory in record.directories:
        path = SessionDir(runs / directory).journal.path
        if again and any(
            not isinstance(one, Garbage) and one.get("job_id") == record.job_id for one in read_journal(path)
        ):
            continue
        journal = Journal(path, durable=False)
        journal.append("submitted", place=record.backend, job_id=record.job_id, submission=record.submission)


def _jobs(ids: Mapping[int, str]) -> str:
    shown = ", ".join(list(ids.values())[:MOST_IDS]) + (", ..." if len(ids) > MOST_IDS else "")
    return f"{len(ids):,} job{'' if len(ids) == 1 else 's'} ({shown})"


@contextmanager
def _signals_later() -> Iterator[None]:
    """Requests to stop that arrive inside the block are handled after it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers: list[int] = []
    previous = {number: signal.signal(number, lambda number, _: numbers.append(number)) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if numbers:
            signal.raise_signal(numbers[0])
