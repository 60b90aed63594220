"""The public API: `rldsl` and `rldsl.extend`. Everything else is private, and importing `rldsl` has no side effects."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import rldsl
import rldsl.extend
from rldsl.spec.agent import Agent
from rldsl.spec.environment import Environment
from rldsl.spec.launcher import Launcher
from rldsl.spec.net import Net
from rldsl.spec.optimizer import Optimizer
from rldsl.spec.schedule import Schedule
from tests.project import ROOT, Project

FAMILIES = (Agent, Environment, Launcher, Net, Optimizer, Schedule)
PUBLIC_MODULES = ("rldsl", "rldsl.extend")

NAMES = """
A2C Adam AdamW Agent Atari Box2D Classic Constant Conv Cosine CrossQ DQN Dstack Environment Experiment Exponential
Gym Launcher Linear Local MLP MuJoCo Net Optimizer PPO Playground Prioritized RMSprop Random Recurrent Reinforce Run
SAC SIL Sarsa Schedule Slurm SpecError Steps Wrapper choice experiment grid int_uniform load_policy load_runs
log_uniform logit_uniform main run uniform when zipped
"""

EXTEND = """
    ALL_ROWS ActionSpace Actor ActorCritic AgentContext AppendOnlyRing Arrays Backend Batch Below1 Budget Check
    Coefficients Compute Continuous Count Critic Discrete EnvError EpisodeBuffer FeedForward Flag Fraction
    FractionRate Gaussian GradientLearner Head Job JobRecord Kind Layout Learner LocalBackend Natural Network NoHash
    LogPoint SessionEnd
    NonNegative NonNegativeRate Normalization NumpyPolicy OffPolicy OffPolicyAgent OnPolicy OnPolicyAgent Params
    PerMember Policy Positive PositiveRate QNetwork QueueState QueueUnavailable Real Refused ReplayBuffer ReplayShape
    Resources RolloutBuffer Sizes Spaces Spec Step Trunk Twins Update VectorEnv VideoRecorder Whole World
    approximate_kl as_float boltzmann_probabilities build_trunk categorical_entropy categorical_log_prob clip_fraction
    clipped_value_loss combine_critics critics_loss discounted_returns double_q_target entropy_bonus
    epsilon_greedy_probabilities expected_soft_actor_loss expected_soft_value explained_variance gaussian_entropy
    gaussian_log_prob generalized_advantages greedy huber huber_td_loss init_linear linear linear_shapes make_actor
    make_rendered_env make_vector_env member_mean n_step_returns normalize_per_member ppo_clip_loss q_learning_target
    reinforce_loss restore_stream sample scope self_imitation_policy_loss self_imitation_value_loss soft_actor_loss
    soft_update squashed_gaussian_log_prob squashed_gaussian_sample stream stream_state td_target temperature_loss
    value_at value_loss
"""


def order(name: str) -> tuple[int, str]:
    """Constants and abbreviations, then classes, then functions, as the linter sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_the_exported_names_are_these() -> None:
    assert set(rldsl.__all__) == set(NAMES.split()) and set(rldsl.extend.__all__) == set(EXTEND.split())
    assert rldsl.__all__ == sorted(rldsl.__all__, key=order)


@pytest.mark.parametrize("module", [rldsl, rldsl.extend], ids=lambda module: module.__name__)
def test_every_exported_name_exists(module: object) -> None:
    for name in module.__all__:  # type: ignore[attr-defined]
        assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_what_is_imported_lazily() -> None:
    """The imports under TYPE_CHECKING in rldsl/extend.py are those of its `__getattr__`."""
    nodes = ast.walk(ast.parse(Path(rldsl.extend.__file__).read_text()))
    seen = {name.name: node.module for node in nodes if isinstance(node, ast.ImportFrom) for name in node.names}
    assert {name: seen.get(name) for name in rldsl.extend._MODULES} == rldsl.extend._MODULES


def test_every_kind_and_its_family_is_public() -> None:
    for family in FAMILIES:
        ours = {model.__name__ for model in family.kinds.values() if model.__module__.startswith("rldsl.")}
        assert {family.__name__, *ours} <= set(rldsl.__all__)


def sources() -> list[Path]:
    code = [
        *ROOT.glob("experiments/**/*.py"),
        *ROOT.glob("launchers/*.py"),
        *ROOT.glob("docs/examples/**/*.py"),
        *ROOT.glob("rldsl/cli/templates/*.py.txt"),
    ]
    return [*code, ROOT / "README.md", *ROOT.glob("docs/**/*.md")]


def imported(code: str) -> Iterator[tuple[str, str | None]]:
    """Modules of rldsl that a program imports, each with the name that it takes from it, if it does."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "rldsl":
            yield from ((node.module or "", name.name) for name in node.names)
        elif isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names if name.name.partition(".")[0] == "rldsl")
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "rldsl":
            yield "rldsl", node.attr


def is_public(module: str, name: str | None) -> bool:
    if module not in PUBLIC_MODULES:
        return False
    exported = rldsl.__all__ if module == "rldsl" else rldsl.extend.__all__
    return name is None or name in exported or (module, name) in (("rldsl", "extend"), ("rldsl", "__version__"))


def private_imports(text: str, markdown: bool) -> list[tuple[str, str | None]]:
    """What a file imports that is not public: a program, or the code blocks of a document."""
    programs = re.findall(r"^```python[^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE) if markdown else [text]
    found = [one for program in programs for one in imported(program) if not is_public(*one)]
    commands = re.findall(r"\b(?:from|import) (rldsl[\w.]*)", text) if markdown else []
    return found + [(module, None) for module in commands if module.rstrip(".") not in PUBLIC_MODULES]


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_documents_and_examples_import_nothing_private(path: Path) -> None:
    assert private_imports(path.read_text(), path.suffix == ".md") == []


@pytest.mark.parametrize(
    "code",
    [
        "from rldsl.spec.base import Count",
        "from rldsl import line_of_user",
        "from rldsl.extend import Pack",
        "import rldsl.spec.base",
        "import rldsl\nrldsl.spec.base",
    ],
)
def test_a_private_import_is_found(code: str) -> None:
    assert private_imports(code, markdown=False)
    assert private_imports(f"```python\n{code}\n```\n", markdown=True)
    assert not private_imports("from rldsl import PPO\nfrom rldsl.extend import Learner\n", markdown=False)


SNAPSHOT = """
import signal, sys, warnings

def snapshot():
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    return sys.excepthook, sys.unraisablehook, handlers, list(sys.path), list(warnings.filters), sys.getrecursionlimit()

before = snapshot()
import rldsl, rldsl.extend
assert snapshot() == before, "importing rldsl changes something"
try:
    rldsl.PPO(gama=1)
except rldsl.SpecError:
    pass
assert snapshot() == before, "an error changes something"
rldsl.extend.Count, rldsl.extend.Learner, rldsl.extend.VectorEnv
heavy = {"torch", "gymnasium", "jax", "pandas", "mujoco"} & set(sys.modules)
assert not heavy, heavy
"""


def test_importing_the_package_changes_nothing() -> None:
    ran = subprocess.run([sys.executable, "-c", SNAPSHOT], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_mistake_in_an_experiment_file_is_one_sentence(project: Project) -> None:
    project.write("from rldsl import PPO, main\n\nagent = PPO(gama=1)\nmain(agent)\n")
    ran = project.python("exp.py")
    assert ran.returncode == 2
    assert ran.stderr == "error: exp.py:3: PPO has no field 'gama'; did you mean gamma?\n"


def test_another_error_in_an_experiment_file_has_its_traceback(project: Project) -> None:
    project.write(
        """
        from rldsl import PPO, SpecError, main

        try:
            PPO(gama=1)
        except SpecError:
            1 / 0
        """
    )
    ran = project.python("exp.py")
    assert ran.returncode == 1
    assert ran.stderr.startswith("Traceback") and "ZeroDivisionError" in ran.stderr.splitlines()[-1]


def test_in_another_program_a_mistake_is_an_exception_like_any_other(project: Project) -> None:
    project.write(
        """
        import sys

        import rldsl

        before = sys.excepthook
        try:
            rldsl.PPO(gama=1)
        except rldsl.SpecError as error:
            assert error.where == "program.py:8"
        assert sys.excepthook is before
        rldsl.PPO(gama=1)
        """,
        "program.py",
    )
    ran = project.python("program.py")
    assert ran.returncode == 1 and ran.stderr.startswith("Traceback")
    assert ran.stderr.splitlines()[-1] == (
        "rldsl.SpecError: program.py:12: PPO has no field 'gama'; did you mean gamma?"
    )
