"""Jobs as processes of this machine: so many at a time, each with its log, each stopped or killed when asked."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Literal

import pytest

from rldsl import Classic, Launcher, Local, Random, SpecError, experiment
from rldsl.launch.jobs import Job, JobMaker
from rldsl.launch.local import LocalRun
from rldsl.launch.process_end import STOPPED, end_reason, oom_kills
from rldsl.plan.existing import Existing
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.store.errors import CannotWrite
from rldsl.store.session_dir import SessionDir
from rldsl.train import __main__ as worker
from tests.plan.test_plan_file import resealed
from tests.project import until

SLEEP = "import time; print('ready', flush=True); time.sleep(60)"


def job(root: Path, name: str, code: str) -> Job:
    return Job((name,), root / name, (sys.executable, "-c", code))


def log(one: Job) -> str:
    return (one.directory / "log.txt").read_text()


def ready(one: Job) -> bool:
    return (one.directory / "log.txt").exists() and "ready" in log(one)


def finish(run: LocalRun) -> list[Job]:
    ended: list[Job] = []
    until(lambda: ended.extend(run.poll()) or not run.active)
    return ended


def test_a_job_runs_and_its_output_is_its_log(tmp_path: Path) -> None:
    one = job(tmp_path, "a", "import sys; print('out'); print('err', file=sys.stderr)")
    run = LocalRun([one], Local())
    assert finish(run) == [one]
    assert run.exit_codes == {one: 0}
    assert sorted(log(one).split()) == ["err", "out"]
    assert not run.crashed


def test_a_log_is_added_to(tmp_path: Path) -> None:
    one = job(tmp_path, "a", "print('again')")
    for _ in range(2):
        finish(LocalRun([one], Local()))
    assert log(one) == "again\nagain\n"


def test_no_more_run_at_a_time_than_the_launcher_says(tmp_path: Path) -> None:
    jobs = [job(tmp_path, str(index), SLEEP) for index in range(3)]
    run = LocalRun(jobs, Local(parallel=2))
    run.poll()
    assert list(run.running) == jobs[:2]
    assert list(run.waiting) == jobs[2:]
    run.kill()
    finish(run)
    assert set(run.exit_codes) == set(jobs[:2]), "what waited was never started"


def test_a_crash_of_one_does_not_touch_the_rest(tmp_path: Path) -> None:
    bad, good = job(tmp_path, "bad", "import os; os._exit(9)"), job(tmp_path, "good", "print('fine')")
    run = LocalRun([bad, good], Local(parallel=1))
    finish(run)
    assert run.exit_codes == {bad: 9, good: 0}
    assert run.crashed


def test_stop_asks_and_waits(tmp_path: Path) -> None:
    code = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3));" + SLEEP
    one = job(tmp_path, "a", code)
    run = LocalRun([one], Local())
    run.poll()
    until(lambda: ready(one))
    run.stop()
    finish(run)
    assert run.exit_codes == {one: STOPPED}
    assert not run.crashed, "a job that was asked to stop did as it should"


def test_kill_ends_at_once_what_does_not_listen(tmp_path: Path) -> None:
    one = job(tmp_path, "a", "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN);" + SLEEP)
    run = LocalRun([one], Local())
    run.poll()
    until(lambda: ready(one))
    run.stop()
    run.poll()
    assert run.active
    run.kill()
    finish(run)
    assert run.exit_codes == {one: -9}


def test_the_launcher_and_the_worker_mean_the_same_by_stopped() -> None:
    assert STOPPED == worker.STOPPED


def test_a_directory_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("mine")
    with pytest.raises(CannotWrite, match=r"cannot write .*/a: file exists"):
        LocalRun([job(tmp_path, "a", "")], Local()).poll()


def test_a_launcher_has_room_for_one_at_least() -> None:
    with pytest.raises(SpecError, match=r"Local\.parallel should be greater than 0, got 0"):
        Local(parallel=0)


def test_the_worker_finds_its_sessions_by_the_command_of_its_job(tmp_path: Path) -> None:
    made = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(1000).seeds(3).build()
    plan = make_plan([Overridden(made)])
    plan.save(tmp_path / "plan.json")
    planned_sessions = Existing(tmp_path).planned(next(plan.rows()))
    origin = ["python", "exp.py", "--token=hf_secretsecretsecretsecretsecretsecret"]
    maker = JobMaker(tmp_path / "plan.json", tmp_path, tmp_path / "exp.py", origin)
    made_job = maker.job(planned_sessions[1:])
    assert made_job.command[:3] == (sys.executable, "-m", "rldsl.train")
    options = worker._parse(list(made_job.command[3:]))
    assert options.file == tmp_path / "exp.py"
    assert "secretsecret" not in json.dumps(options.command)
    sessions = worker.planned_sessions(options.plan, options.session)
    assert [session.id for session in sessions] == list(made_job.sessions) == [one.id for one in planned_sessions[1:]]
    assert made_job.directory == tmp_path / sessions[0].directory


def test_a_session_that_the_plan_does_not_have_is_refused(tmp_path: Path) -> None:
    made = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(1000).build()
    make_plan([Overridden(made)]).save(tmp_path / "plan.json")
    with pytest.raises(SpecError, match=r"the plan .*plan\.json has no session abc-s0"):
        worker.planned_sessions(tmp_path / "plan.json", ["abc-s0"])


class Elsewhere(Launcher, frozen=True):
    """A launcher of a user's own."""

    kind: Literal["elsewhere"] = "elsewhere"


def test_a_worker_need_not_know_the_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(1000).on(Elsewhere()).build()
    plan, path = make_plan([Overridden(made)]), tmp_path / "plan.json"
    plan.save(path)
    (row,) = plan.rows()
    monkeypatch.delitem(Launcher.kinds, "elsewhere")
    assert worker.planned_sessions(path, [f"{row.id}-s0"])[0].experiment == "x/random"


def test_a_worker_refuses_a_plan_whose_trial_was_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built = experiment("x").env(Classic("CartPole-v1")).agent(Random()).frames(1000).build()
    plan, path = make_plan([Overridden(built)]), tmp_path / "plan.json"
    plan.save(path)
    path.write_text(path.read_text().replace('"frames": 1000', '"frames": 2000'))
    (row,) = plan.rows()
    assert worker.main([str(path), "--runs", str(tmp_path / "runs"), "--session", f"{row.id}-s0"]) == 1
    error = capsys.readouterr().err
    assert "plan.json was changed by hand or damaged: its checksum" in error and error.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_worker_skips_trials_of_other_sessions_unparsed(tmp_path: Path) -> None:
    base = experiment("x").env(Classic("CartPole-v1")).agent(Random())
    made = [base.named(name).frames(frames).build() for name, frames in (("a", 1000), ("b", 2000))]
    plan, path = make_plan([Overridden(one) for one in made]), tmp_path / "plan.json"
    plan.save(path)
    first, second = plan.rows()
    resealed(path, '"kind": "random"', '"kind": "nonsense"')
    assert worker.planned_sessions(path, [f"{second.id}-s0"])[0].experiment == "b"
    with pytest.raises(SpecError, match="nonsense"):
        worker.planned_sessions(path, [f"{first.id}-s0"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_how_a_process_ended_is_journalled_for_each_of_its_sessions(tmp_path: Path, number: signal.Signals) -> None:
    directories = [SessionDir.create(tmp_path, f"env/agent-0/seed-{seed}", {"schema": 2}, "") for seed in range(2)]
    paths = tuple(one.path for one in directories)
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    one = Job(("a", "b"), paths[0], (sys.executable, "-c", code), directories=paths)
    run = LocalRun([one], Local())
    finish(run)
    expected = "killed by SIGKILL (out of memory?)" if number == signal.SIGKILL else "killed by SIGSEGV"
    assert run.reasons[one] == expected
    for directory in directories:
        state = directory.read_state()
        assert (state.status, state.state, state.note) == ("crashed", "resume", expected)


def test_a_crash_is_not_journalled_for_a_session_that_another_process_has(tmp_path: Path) -> None:
    directory = SessionDir.create(tmp_path, "env/agent-0/seed-0", {"schema": 2}, "")
    one = Job(("a",), directory.path, (sys.executable, "-c", "import os; os._exit(9)"), directories=(directory.path,))
    directory.journal.append("started", frame=0, pid=os.getpid())
    with directory.claim():
        finish(LocalRun([one], Local()))
        assert directory.state() == "running"
    assert directory.read_state().status == "started"
    finish(LocalRun([one], Local()))
    assert directory.read_state().status == "started", "the process that ended is not the one that started last"


def test_an_out_of_memory_kill_that_the_kernel_counts_is_certain() -> None:
    assert end_reason(-9, oom_kills()) == "killed by SIGKILL (out of memory?)"
    assert end_reason(-9, oom_kills() - 1) == "killed by SIGKILL (out of memory)"
    assert end_reason(1, 0) == "exit 1"
