"""The everyday workflow, end to end: write an agent, train, edit, redo, extend, compare, export."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

from tests.project import Project, events, work

AGENT = '''
    """An agent of the user's own: PPO with another advantage."""

    from typing import ClassVar, Literal

    from rldsl import PPO, MLP, Classic, experiment, main


    class MyPPO(PPO, frozen=True):
        kind: Literal["my_ppo"] = "my_ppo"
        implementation: ClassVar[str] = "my_agent:MyPPOAgent"


    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(128)
    mine = cartpole.agent(MyPPO(rollout=32, minibatch=64, net=MLP((8,)))).frames(1024).seeds(2)

    if __name__ == "__main__":
        main(mine)
'''
IMPLEMENTATION = """
    from rldsl.agents.ppo import PPOAgent


    class MyPPOAgent(PPOAgent):
        def learning_rate(self, frame):
            return 1.0 * super().learning_rate(frame)
"""


def test_write_train_edit_redo_extend_compare_export(project: Project) -> None:
    project.write(AGENT, "exp.py")
    project.write(IMPLEMENTATION, "my_agent.py")

    def run(*arguments: object, code: int = 0) -> str:
        ran = project.python("exp.py", *arguments)
        assert ran.returncode == code, ran.stdout + ran.stderr
        return ran.stdout

    assert run().splitlines()[-1] == "2 sessions: 2 done"
    first = [work(session) for session in project.sessions]

    project.write(IMPLEMENTATION.replace("1.0 *", "0.5 *"), "my_agent.py")
    assert run("plan").count("done (other code)") == 3, "both sessions and the total"
    assert "2 finished sessions were trained with other code and kept" in run()
    session = next(project.runs.glob("*/*/seed-0"))
    id = session.parent.name[-12:]
    diff = project.rldsl("diff", f"{id}-s0", "exp.py").stdout
    assert "+        return 0.5 * super().learning_rate(frame)" in diff

    assert run("--redo").splitlines()[-1] == "2 sessions: 2 done"
    sessions = sorted(project.runs.glob("*/*/seed-[01]"))
    assert [work(path.with_name(f"{path.name}.old-1")) for path in sessions] == first
    assert all(work(path) != old for path, old in zip(sessions, first, strict=True))
    compared = project.rldsl("diff", f"{session}.old-1", session).stdout
    assert "-        return 1.0 * super().learning_rate(frame)" in compared

    assert "2 extend" in run("plan", "--frames", "2048")
    assert run("--frames", "2048").splitlines()[-1] == "2 sessions: 2 done"
    longer = [path for path in project.runs.glob("*/*/seed-[01]") if id not in str(path)]
    assert len(longer) == 2 and all(events(path)[0]["event"] == "extended" for path in longer)
    assert all(len(work(path)) == 16 for path in longer)
    assert "some were trained with --frames 2048" in run("status")

    (longer_id,) = {path.parent.name[-12:] for path in longer}
    result = project.rldsl("compare", id, longer_id, "--json")
    assert result.returncode == 0, "not worse, as far as two seeds tell: " + result.stdout + result.stderr
    (pair,) = json.loads(result.stdout)["comparisons"]
    assert [len(pair[side]["seeds"]) for side in ("a", "b")] == [2, 2]
    assert "CartPole-v1" in run("plot"), "the curves of both budgets"

    policy = Path(project.root, "policy.onnx" if find_spec("onnx") else "policy.pt2")
    exported = project.rldsl("export", f"{longer_id}-s0", policy.name, "--file", "exp.py")
    assert exported.returncode == 0, exported.stdout + exported.stderr
    assert policy.stat().st_size > 0
