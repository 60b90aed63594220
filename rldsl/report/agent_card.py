"""README.md of a model repository, with the metadata that the Hub and its leaderboards read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rldsl.report.benchmark_page import markdown_table
from rldsl.report.references import algorithm_name
from rldsl.report.words import amount
from rldsl.spec.session import Session

TASK = "reinforcement-learning"


def mean_reward(results: Mapping[str, Any]) -> str:
    """`436.80 +/- 141.86`, which leaderboards parse."""
    return f"{results['mean_reward']:.2f} +/- {results['std_reward']:.2f}"


def agent_card(name: str, session: Session, results: Mapping[str, Any], video: bool) -> str:
    """The card of the policy of a session, with the results of its evaluation."""
    env, algorithm = session.trial.env, algorithm_name(session.trial.agent)
    example = (
        f'```python\nimport rldsl\n\npolicy = rldsl.load_policy("hf://{name}")\naction = policy(observation)\n```\n'
        f"\n```bash\nrldsl enjoy hf://{name}\n```\n"
    )
    parts = [
        f"---\n{_metadata(name, session, results)}\n---\n",
        f"# {algorithm} in {env.label}\n",
        f"A policy trained with `rldsl`: {mean_reward(results)} over {results['n_eval_episodes']} episodes.\n",
        "The video is `replay.mp4`.\n" if video else "",
        f"## Use\n\n{example}",
        f"## Training\n\n{_training(session, results)}",
        "The complete settings are in `session.json` and `config.gin`, the learning curve is in `metrics.csv`, code\n"
        "and packages are in `provenance.json`. Weights are safetensors; loading them executes no code.\n",
    ]
    return "\n".join(part for part in parts if part)


def _metadata(name: str, session: Session, results: Mapping[str, Any]) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    env, agent = session.trial.env, session.trial.agent
    result = EvalResult(
        task_type=TASK,
        task_name=TASK,
        dataset_type=env.id,
        dataset_name=env.id,
        metric_type="mean_reward",
        metric_name="mean_reward",
        metric_value=mean_reward(results),
        verified=False,
    )
    data = ModelCardData(
        library_name="rldsl",
        pipeline_tag=TASK,
        tags=[env.id, agent.kind, "deep-reinforcement-learning", TASK],
        model_name=name.partition("/")[2],
        eval_results=[result],
    )
    return data.to_yaml()


def _training(session: Session, results: Mapping[str, Any]) -> str:
    facts = {
        "environment": session.trial.env.id,
        "algorithm": session.trial.agent.kind,
        "experiment": session.experiment,
        "session": session.id,
        "frames": amount(session.trial.budget.frames),
        "policy after": f"{amount(results['frame'])} frames",
        "evaluation": f"{results['n_eval_episodes']} episodes, most likely actions",
    }
    return markdown_table(("setting", "value"), list(facts.items()))
