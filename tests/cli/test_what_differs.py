"""Tables say what tells trials apart, and fit a terminal of 80 columns without breaking ids or cutting returns."""

from __future__ import annotations

import json
import re

from rldsl import MLP, PPO, SAC, Linear
from rldsl.report.words import setting_name, settings_text, value
from tests.cli.test_display import Terminal
from tests.project import Project

GRIDS = """
    from rldsl import MLP, PPO, Classic, Linear, Random, experiment, grid, main

    base = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).target(400).log_every(500)
    small, large = PPO(rollout=64, net=MLP((8, 8))), PPO(rollout=64, net=MLP((16, 16)), lr=Linear(1e-3))
    variants = base.frames(1e3).search(agent=grid(small, large)).named("cartpole/variants")
    settings = {"clip": grid(0.1, 0.2), "gamma": grid(0.9, 0.99), "lam": grid(0.9, 0.95), "epochs": grid(1, 2)}
    settings["entropy"] = grid(0.0)  # all trials have the same
    ppo = base.agent(PPO(rollout=64)).frames(1e3)
    many = ppo.search(**settings, lr=grid(1e-3, Linear(1e-3))).named("cartpole/many")
    single = base.agent(PPO(rollout=64, clip=0.1, gamma=0.9, lam=0.9, epochs=1, lr=1e-3)).frames(1e3).seeds(2)
    main(variants, many, single)
"""
ID = r"[0-9a-f]{12}-s\d"


def shown(project: Project, *arguments: str, columns: int = 80) -> list[str]:
    terminal = Terminal(project, "exp.py", *arguments, columns=columns)
    text = ""
    while terminal.process.poll() is None:
        text = terminal.read()
    text = terminal.read()
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def test_settings_as_they_are_written() -> None:
    assert value(Linear(1e-3).data()) == "Linear(0.001)"
    assert value(MLP((256, 256)).data()) == "MLP((256, 256))"
    assert value(PPO().data()) == "ppo" and value(SAC(lr=1e-4).data()) == "SAC(lr=0.0001)"
    assert value([256, 256]) == "(256, 256)" and value([8]) == "(8,)" and value(0.00012345678) == "0.000123457"
    assert [setting_name(path) for path in ("agent.net.hidden", "budget.frames", "search")] == [
        *("net.hidden", "frames", "search")
    ]
    assert settings_text({"agent.lr": 0.001, "env.num_envs": 4}) == "lr=0.001 env.num_envs=4"


def test_specs_of_one_kind_differ_in_their_fields(project: Project) -> None:
    project.write(GRIDS)
    wide = project.python("exp.py", "plan", "--only", "variants").stdout
    assert re.search(r"session +lr +net.hidden +seed +state", wide)
    assert re.search(rf"{ID} +0\.0003 +\(8, 8\) +0 +new", wide)
    assert re.search(rf"{ID} +Linear\(0\.001\) +\(16, 16\) +0 +new", wide)
    plan = json.loads(project.python("exp.py", "plan", "--only", "variants", "--json").stdout)
    assert [trial["differs"]["agent.net.hidden"] for trial in plan["trials"]] == [[8, 8], [16, 16]]


def test_80_columns_hold_plan_and_status(project: Project) -> None:
    project.write(GRIDS)
    for command in ("plan", "status"):
        lines = shown(project, command, "--only", "many")
        assert all(len(line) <= 80 for line in lines)
        starts = [index for index, line in enumerate(lines) if re.search(r"[0-9a-f]{9}", line)]
        trials = set()
        for start in starts:
            assert re.match(rf"{ID} clip=0\.[12] gamma=0\.9\d? lam=0\.9\d? epochs=[12] .*new +1k$", lines[start])
            whole = f"{lines[start]} {lines[start + 1]}"  # settings that do not fit are continued
            settings = re.search(r"(clip=\S+ gamma=\S+ lam=\S+ epochs=\S+).*?(lr=\S+)", whole)
            assert settings, whole
            trials.add(settings.groups())
        assert len(trials) == len(starts) > 20, "every trial can be told from the others"
    both = shown(project, "plan", "--only", "variants", "--only", "ppo")
    assert any(re.match(rf"cartpole/variants +{ID} lr=0.0003 net.hidden=\(8, 8\)", line) for line in both), (
        "whose trial it is"
    )


def test_the_final_table_and_status_have_settings_and_returns_at_80_columns(project: Project) -> None:
    project.write(GRIDS)
    lines = shown(project, "--only", "variants")
    rows = [line for line in lines if re.match(ID, line)]
    assert len(rows) == 2
    settings = (r"lr=0.0003 net.hidden=\(8, 8\)", r"lr=Linear\(0.001\) net.hidden=\(16, 16\)")
    for line, differs in zip(rows, settings, strict=True):
        assert re.match(rf"{ID} {differs} +done +1k .*\d+\.\d", line), line
    status = [line for line in shown(project, "status", "--only", "variants") if re.match(ID, line)]
    assert all("net.hidden=" in line and re.search(r"done +1k .*\d+\.\d", line) for line in status)


def test_sessions_that_experiments_share_count_once(project: Project) -> None:
    project.write(GRIDS)
    text = project.python("exp.py", "plan", "--only", "many", "--only", "ppo").stdout
    assert "1 session listed more than once: each counts once" in text
    assert "32 trials, 33 sessions: 33 new; 33k frames to go" in text
