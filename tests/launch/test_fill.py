"""How jobs are filled with processes, what they ask for, and what `plan` says about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rldsl import DQN, PPO, SAC, Atari, Classic, Conv, Dstack, Local, MuJoCo, Slurm, experiment
from rldsl.builders.experiment import ExperimentBuilder
from rldsl.launch.fill import fill_jobs, fillings, job_shapes, packs_of, processes_per_job
from rldsl.launch.jobs import Job, JobMaker, Resources
from rldsl.launch.slurm_script import resource_options
from rldsl.plan.existing import Existing, PlannedSession
from rldsl.plan.memory import process_gb, replay_gb
from rldsl.plan.overrides import Overridden
from rldsl.plan.plan import make_plan
from rldsl.spec.launcher import Launcher

CART = experiment("cart").env(Classic("CartPole-v1", num_envs=4)).agent(PPO()).frames(1e6)
PONG = experiment("pong").env(Atari("Pong")).agent(DQN(net=Conv(), buffer=1_000_000)).frames(1e6)
ON_CPU, ON_GPU = Resources(1), Resources(1, 1)


def planned(*made: ExperimentBuilder) -> list[PlannedSession]:
    plan = make_plan([Overridden(one.build()) for one in made])
    return [one for row in plan.rows() for one in Existing(Path("absent")).planned(row)]


def jobs(sessions: list[PlannedSession], launcher: Launcher, gpu: bool = False) -> list[Job]:
    maker = JobMaker(Path("plan.json"), Path("runs"), None, [], gpu=gpu)
    return fill_jobs([maker.job(pack) for pack in packs_of(sessions, launcher)], launcher)


def shown(sessions: list[PlannedSession], launcher: Launcher) -> list[str]:
    return fillings(job_shapes(packs_of(sessions, launcher), launcher), launcher)


@pytest.mark.parametrize(
    ("launcher", "each", "expected"),
    [
        (Slurm(), ON_CPU, 1),
        (Slurm(), ON_GPU, 1),
        (Slurm(cpus=64), ON_CPU, 64),
        (Slurm(cpus=64), Resources(8), 8),
        (Slurm(cpus=64, gpus=8), ON_GPU, 8),
        (Slurm(cpus=64, gpus=8, per_gpu=4), ON_GPU, 32),
        (Slurm(cpus=8, gpus=8, per_gpu=4), ON_GPU, 8),
        (Slurm(cpus=64, processes=3), ON_CPU, 3),
        (Slurm(cpus=64, memory_gb=32), Resources(1, 0, 10.0), 3),
        (Slurm(cpus=4), Resources(8), 1),
        (Dstack(gpus=2, per_gpu=2), ON_GPU, 4),
        (Local(), ON_CPU, 1),
    ],
)
def test_a_job_has_as_many_processes_as_it_has_room_for(launcher: Launcher, each: Resources, expected: int) -> None:
    assert processes_per_job(launcher, each) == expected


def test_a_whole_node_is_filled_before_another_one_is_asked_for() -> None:
    launcher = Slurm(cpus=64, gpus=8)
    sessions = planned(CART.seeds(40).compute(device="cuda"))
    (job,) = jobs(sessions, launcher, gpu=True)
    assert len(job.packs) == 8 and {len(pack.sessions) for pack in job.packs} == {5}
    assert job.resources[:2] == (64, 8) and len(job.sessions) == len(set(job.sessions)) == 40
    assert job.command[1:3] == ("-m", "rldsl.launch.node")
    assert shown(sessions, launcher) == [
        "each job runs 8 processes with 1 thread, 1 GPU each",
        "warning: 56 of 64 cores of a job stay idle: more processes or threads, or fewer cpus",
    ]


def test_packs_of_several_experiments_share_a_job_if_they_need_the_same() -> None:
    launcher = Slurm(cpus=8)
    two = CART.named("other").seeds(2).agent(PPO(rollout=512))
    (job,) = jobs(planned(CART.seeds(6), two), launcher)
    assert len(job.packs) == 8
    apart = jobs(planned(CART.seeds(6), two.compute(threads=2)), launcher)
    assert [(len(job.packs), job.resources.cpus) for job in apart] == [(6, 8), (2, 8)]


def test_the_last_job_is_not_full_and_the_plan_says_so() -> None:
    launcher = Slurm(cpus=4, members=1)
    sessions = planned(CART.seeds(6))
    assert [len(job.packs) for job in jobs(sessions, launcher)] == [4, 2]
    assert shown(sessions, launcher) == [
        "1 job runs 4 processes with 1 thread each",
        "1 job runs 2 processes with 1 thread each",
        "warning: 2 of 4 cores of a job stay idle: more processes or threads, or fewer cpus",
    ]


def test_what_is_not_declared_is_what_the_processes_need() -> None:
    (job,) = jobs(planned(CART.seeds(6).compute(threads=2)), Slurm(processes=6, members=1))
    assert (len(job.packs), job.resources.cpus, job.resources.gpus) == (6, 12, 0)
    (job,) = jobs(planned(CART.seeds(6).compute(device="cuda")), Slurm(processes=6, per_gpu=4))
    assert (job.resources.cpus, job.resources.gpus) == (6, 2)
    (job,) = jobs(planned(CART.seeds(2)), Slurm())
    assert job.packs == () and job.resources.cpus == 1, "one pack is one process"


def test_of_one_process_that_fills_its_job_there_is_nothing_to_say() -> None:
    assert shown(planned(CART), Slurm()) == shown(planned(CART), Slurm(cpus=1)) == []
    assert shown(planned(CART), Slurm(cpus=2))[0] == "each job runs 1 process with 1 thread"


def test_too_many_processes_are_told() -> None:
    one = planned(CART.seeds(4).compute(device="cuda"))
    lines = shown(one, Slurm(cpus=2, gpus=1, processes=4, members=1))
    assert lines[1:] == [
        "warning: 4 threads share the 2 cores of a job: fewer processes, or more cpus",
        "warning: 4 processes share 1 GPU: say so with per_gpu=4",
    ]
    assert shown(one, Slurm(cpus=4, gpus=4, processes=2, members=1))[2:] == [
        "warning: 2 of 4 GPUs of a job stay idle: more processes, or fewer gpus"
    ]


# --- Memory -----------------------------------------------------------------------


def test_large_replay_buffers_are_asked_for_and_small_ones_are_left_to_the_queue() -> None:
    (pong,) = planned(PONG)
    trial = pong.row.trial
    assert 8.5 < replay_gb(trial, 1) < 10 and replay_gb(trial, 4) == pytest.approx(4 * replay_gb(trial, 1))
    (job,) = jobs([pong], Slurm())
    assert job.resources.memory_gb == 10
    assert resource_options(Slurm(), job.resources)["mem"] == "10240M"
    assert resource_options(Slurm(memory_gb=2.0), job.resources)["mem"] == "2048M"
    (small,) = jobs(planned(CART), Slurm())
    assert small.resources.memory_gb == 0 and "mem" not in resource_options(Slurm(), small.resources)
    assert process_gb(planned(CART)[0].row.trial, 8) == 1.0


def test_memory_limits_processes_and_too_little_is_told() -> None:
    sessions = planned(PONG.seeds(4))
    assert [len(job.packs) for job in jobs(sessions, Slurm(cpus=4, memory_gb=32.0))] == [3, 0]
    assert shown(sessions, Slurm(cpus=4, processes=4, memory_gb=16.0)) == [
        "each job runs 4 processes with 1 thread, about 10 GB each",
        "warning: a job needs about 39 GB of memory and asks for 16 GB: more memory_gb",
    ]


def test_jobs_that_differ_only_in_their_memory_are_submitted_together() -> None:
    sac = experiment("x").env(MuJoCo("Humanoid-v5")).agent(SAC(buffer=1_000_000)).frames(1e6).seeds(3)
    made = jobs(planned(sac), Slurm(members=2))
    assert [len(job.sessions) for job in made] == [2, 1] and len({job.resources for job in made}) == 1
