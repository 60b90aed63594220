"""The dstack backend: jobs become dstack runs, and their results are fetched from a repository on the Hub."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rldsl.hub.live import LiveStore
from rldsl.hub.sync import Sync
from rldsl.launch.backend import Check, QueueState, QueueUnavailable, Spending
from rldsl.launch.code import PROJECT
from rldsl.launch.dstack.api import Api, DstackError, Run, spending_of
from rldsl.launch.dstack.configuration import JOBS, configuration, read_names
from rldsl.launch.intents import Intent
from rldsl.launch.job_records import JobRecord
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.spec.dstack import HF_TOKEN, Dstack
from rldsl.spec.errors import SpecError
from rldsl.store.checkpoint import checkpoint_frames
from rldsl.store.session_dir import SessionDir
from rldsl.store.sources import source_files

OFFERS = 5
LAST_LINES = 20
REASONS = {
    "failed_to_start_due_to_no_capacity": "no capacity",
    "interrupted_by_no_capacity": "interrupted",
    "instance_unreachable": "node failure",
    "max_duration_exceeded": "time limit",
    "terminated_by_user": "stopped",
    "aborted_by_user": "stopped",
}
KILLED = 137
NO_RESULTS = (
    "Dstack.results is missing: machines come and go, so say where sessions are kept, "
    "as in results='user/name' on the Hugging Face Hub"
)


class DstackBackend:
    """One project of a dstack server."""

    def __init__(self, launcher: Dstack, runs: Path) -> None:
        self.launcher = launcher
        self.runs = runs

    def check(self) -> list[Check]:
        """The server, its fleets and secrets, and the repository of results; only the server if it does not answer."""
        try:
            api = Api()
            fleets = api.project("fleets/list", answer=list)
        except DstackError as error:
            return [Check("server", False, str(error))]
        server = f"{api.server.url} answers, project {api.server.project}"
        return [
            Check("server", True, server),
            self._fleet_check(fleets),
            *self._secret_checks(api),
            self._results_check(),
        ]

    def offers(self, resources: Resources) -> list[str]:
        """The resources of each run, and the cheapest machines that provide them, with their price."""
        wanted = configuration(self.launcher, resources, [JOBS])
        try:
            body = {"run_spec": {"configuration": wanted}, "max_offers": OFFERS}
            plan = Api().project("runs/get_plan", body, dict)
        except DstackError as error:
            return [_request(wanted), str(error)]
        offers = plan["job_plans"][0]["offers"]
        counted = Counter(_offer(one) for one in offers)
        lines = [line if count == 1 else f"{line}, {count} times" for line, count in counted.items()]
        more = plan["job_plans"][0]["total_offers"] - len(offers)
        rest = [f"and {more} more offers"] if more > 0 else []
        return [_request(wanted), *(lines or ["no machine is on offer that would do"]), *rest]

    def submit(self, jobs: Sequence[Job], code: Path, folder: Path) -> list[str]:
        """Uploads code, plan and jobs once, and starts a run for each job."""
        from rldsl.launch.dstack.executor import DstackExecutor

        if self.launcher.results is None:
            raise SpecError(NO_RESULTS)
        self.upload_checkpoints(jobs)
        executor = DstackExecutor(folder)
        first, maker = jobs[0], _maker(jobs[0])
        sources = source_files(maker.file, code / PROJECT) if maker.file else []
        facts = {"code": code, "plan": maker.plan, "name": first.name, "resources": first.resources, "sources": sources}
        executor.update_parameters(profile=self.launcher, **facts)
        return [job.job_id for job in executor.submit_array([self._task(job, code) for job in jobs])]

    def find(self, intent: Intent) -> dict[int, str]:
        """By the names of the runs, which are in the folder of a submission before the first one is started."""
        names = read_names(intent.folder)
        try:
            runs = Api().runs(names)
        except DstackError as error:
            raise QueueUnavailable(str(error)) from error
        return {index: name for index, name in enumerate(names) if name in runs}

    def states(self, ids: Sequence[str]) -> dict[str, QueueState]:
        try:
            runs = Api().runs(ids)
        except DstackError as error:
            raise QueueUnavailable(str(error)) from error
        return {name: state_of(run) for name, run in runs.items()}

    def cancel(self, ids: Sequence[str]) -> None:
        Api().stop(ids)

    def spending(self, ids: Sequence[str]) -> Spending:
        """What runs have cost so far, and the price of those that run now."""
        try:
            runs = Api().runs(ids).values()
        except DstackError as error:
            raise QueueUnavailable(str(error)) from error
        spent = [spending_of(run) for run in runs]
        return Spending(sum(one.cost for one in spent), sum(one.per_hour for one in spent))

    def fetch(self, records: Sequence[JobRecord]) -> None:
        """Pulls sessions that are not done from their repository; a volume cannot be reached from here.

        Of the checkpoints only the best one is pulled: the others are needed only on the next machine.
        """
        repositories: dict[str, list[str]] = defaultdict(list)
        for record in records:
            launcher = record.spec()
            if isinstance(launcher, Dstack) and launcher.repository:
                repositories[launcher.repository] += [one for one in record.directories if not self._done(one)]
        for name, sessions in repositories.items():
            if sessions:
                Sync(LiveStore(name), self.runs, sessions).pull(checkpoints=False)

    def last_lines(self, record: JobRecord) -> list[str]:
        from rldsl.launch.dstack.executor import split_log

        api = Api()
        run = api.runs([record.job_id]).get(record.job_id)
        return split_log(api.log(run))[0].splitlines()[-LAST_LINES:] if run else []

    def _task(self, job: Job, code: Path) -> Any:
        from rldsl.launch.dstack.task import HostPack, HostTask

        file = _maker(job).file
        return HostTask(
            sessions=job.sessions,
            directories=self._relative(job),
            file=str(file.relative_to(code)) if file else None,
            folder=str(job.cwd.relative_to(code)) if job.cwd else PROJECT,
            path=tuple(str(Path(one).relative_to(code)) for one in job.path if Path(one).is_relative_to(code)),
            origin=tuple(_maker(job).origin),
            until=job.until,
            packs=tuple(HostPack(len(one.sessions), one.attempts, one.resources) for one in job.packs),
            cpus=job.resources.cpus,
            results=self.launcher.results or "",
            seconds=self.launcher.hours * 3600,
            push_seconds=self.launcher.push_minutes * 60,
            retried="error" in self.launcher.retry_on,
        )

    def _relative(self, job: Job) -> tuple[str, ...]:
        return tuple(str(one.resolve().relative_to(self.runs.resolve())) for one in job.directories or (job.directory,))

    def upload_checkpoints(self, jobs: Sequence[Job]) -> None:
        """Pushes sessions that began on this machine, so that the runs resume them."""
        begun = [path for job in jobs for path in self._relative(job) if self._begun(path)]
        if begun and self.launcher.repository:
            repository = LiveStore(self.launcher.repository)
            repository.create()
            pulled = Sync(repository, self.runs, begun).pull(checkpoints=False)
            if missing := [path for path in begun if path not in pulled]:
                Sync(repository, self.runs, missing).push()

    def _done(self, session: str) -> bool:
        return SessionDir(self.runs / session).state() == "done"

    def _begun(self, session: str) -> bool:
        return bool(checkpoint_frames(SessionDir(self.runs / session).checkpoints))

    def _fleet_check(self, fleets: list[dict[str, Any]]) -> Check:
        names = [one["name"] for one in fleets if not self.launcher.fleets or one["name"] in self.launcher.fleets]
        if names:
            return Check("fleet", True, ", ".join(names))
        wanted = " or ".join(self.launcher.fleets)
        return Check("fleet", False, f"there is no fleet {wanted}".rstrip() + ": runs need one (`dstack apply`)")

    def _secret_checks(self, api: Api) -> list[Check]:
        if not self.launcher.secrets:
            return []
        known = {one["name"] for one in api.project("secrets/list", answer=list)}
        absent = [name for name in self.launcher.secrets if name not in known]
        words = f"the project has no secret {', '.join(absent)}: `dstack secret set`"
        return [Check("secrets", not absent, words if absent else ", ".join(self.launcher.secrets))]

    def _results_check(self) -> Check:
        if self.launcher.results is None:
            return Check("results", False, NO_RESULTS)
        if self.launcher.repository and not os.environ.get(HF_TOKEN):
            return Check("results", False, f"{HF_TOKEN} is not set here: results cannot come home")
        return Check("results", True, self.launcher.results)


def _maker(job: Job) -> JobMaker:
    if job.maker is None:
        raise SpecError("a job for dstack needs its JobMaker: paths are different on the machine that runs it")
    return job.maker


def state_of(run: Run) -> QueueState:
    """The `QueueState` of a run of `/api/runs/list`."""
    job = run.get("latest_job_submission") or {}
    why = job.get("termination_reason") or run.get("termination_reason") or ""
    where = ((job.get("job_provisioning_data") or {}).get("hostname")) or ""
    match run["status"]:
        case "pending" | "submitted" | "provisioning" as status:
            retry = f"again after: {_reason(job, why)}" if why else ""
            return QueueState("pending", retry or ("starts a machine" if status == "provisioning" else ""), where)
        case "running":
            return QueueState("running", "", where)
        case "terminating":
            return QueueState("completing", "", where)
        case "done":
            return QueueState("done", "", where)
        case "failed":
            return QueueState("failed", _reason(job, why), where)
        case "terminated":
            return QueueState("failed" if why == "max_duration_exceeded" else "cancelled", _reason(job, why), where)
    return QueueState()


def _reason(job: dict[str, Any], why: str) -> str:
    code = job.get("exit_status")
    if why == "container_exited_with_error" and code is not None:
        return f"exit {code}" + (": killed, perhaps out of memory" if code == KILLED else "")
    known, message = REASONS.get(why), (job.get("termination_reason_message") or "").partition(". ")[0]
    if known == "no capacity" and message:
        return f"no capacity ({message[0].lower()}{message[1:]})"
    return known or why.replace("_", " ")


def _request(run: dict[str, Any]) -> str:
    """A line with the resources that a run asks for."""
    wanted = run["resources"]
    gpu = wanted.get("gpu") or {}
    gpus = [f"{gpu['count']} GPU", " or ".join(gpu.get("name", [])), gpu.get("memory", "")] if gpu else []
    spot = {"auto": "spot or on demand"}.get(run["spot_policy"], run["spot_policy"])
    price = f"at most ${run['max_price']:.2f}/h" if "max_price" in run else ""
    words = [f"{wanted['cpu']} cores", wanted["memory"], " ".join(filter(None, gpus)), spot, price]
    return f"each run asks for at least {', '.join(filter(None, words))}".replace("..", "").replace("GB", " GB")


def _offer(offer: dict[str, Any]) -> str:
    resources = offer["instance"]["resources"]
    kind = "spot" if resources.get("spot") else "on demand"
    words = [
        f"${offer['price']:.2f}/h",
        offer["backend"],
        offer["region"],
        kind,
        _machine(resources),
        offer["availability"],
    ]
    return "  ".join(word.replace("_", " ") for word in words)


def _machine(resources: dict[str, Any]) -> str:
    gpus = [f"{one['name']} {one['memory_mib'] / 1024:.0f} GB" for one in resources.get("gpus") or []]
    return ", ".join([*gpus, f"{resources['cpus']} cores", f"{resources['memory_mib'] / 1024:.0f} GB"])
