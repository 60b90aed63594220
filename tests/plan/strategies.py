"""Any valid experiment: agents, nets, schedules, optimizers, environments, budgets, searches with all kinds of axes."""

from __future__ import annotations

from typing import Any, get_args

from hypothesis import strategies as st

from rldsl import (
    MLP,
    PPO,
    Adam,
    AdamW,
    Agent,
    Atari,
    Box2D,
    Classic,
    Constant,
    Conv,
    Cosine,
    Environment,
    Experiment,
    Exponential,
    Gym,
    Linear,
    MuJoCo,
    Net,
    Playground,
    Random,
    Recurrent,
    RMSprop,
    Schedule,
    Steps,
)
from rldsl.spec.budget import Budget, Evaluation, Seeds, Target
from rldsl.spec.catalog import AtariId, Box2DId, ClassicId, MuJoCoId, PlaygroundId
from rldsl.spec.net import Activation, Init
from rldsl.spec.search import (
    Asha,
    Choice,
    Condition,
    Dimension,
    Exhaustive,
    Grid,
    IntUniform,
    LogUniform,
    Method,
    Nevergrad,
    RandomSearch,
    Search,
    Sobol,
    Statistic,
    Uniform,
)

counts = st.integers(1, 10**9)
small = st.integers(1, 64)
fractions = st.floats(0, 1)
positive = st.floats(1e-9, 1e3)
sizes = st.lists(small, max_size=3).map(tuple)
frames = st.none() | counts


def one_of(literal: Any) -> st.SearchStrategy[str]:
    return st.sampled_from(get_args(literal))


@st.composite
def steps(draw: st.DrawFn) -> Steps:
    boundaries = sorted(draw(st.sets(counts, min_size=1, max_size=3)))
    values = draw(st.lists(positive, min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    return Steps(tuple(boundaries), tuple(values))


schedules: st.SearchStrategy[Schedule] = (
    st.builds(Constant, value=positive)
    | st.builds(Linear, start=positive, end=positive, over=frames)
    | st.builds(Cosine, start=positive, end=positive, over=frames)
    | st.builds(Exponential, start=positive, end=positive, over=frames)
    | steps()
)
rates = positive | schedules

shape = {"activation": one_of(Activation), "init": one_of(Init)}
layers = st.lists(st.tuples(small, small, small), min_size=1, max_size=3).map(tuple)
nets: st.SearchStrategy[Net] = (
    st.builds(MLP, hidden=sizes, layer_norm=st.booleans(), **shape)
    | st.builds(Conv, layers=layers, hidden=sizes, **shape)
    | st.builds(Recurrent, hidden=sizes, cell=st.sampled_from(["gru", "lstm"]), size=small, **shape)
)
below_1 = st.floats(0, 1, exclude_max=True)
betas = st.tuples(below_1, below_1)
optimizers = (
    st.builds(Adam, eps=positive, betas=betas)
    | st.builds(AdamW, eps=positive, betas=betas, weight_decay=fractions)
    | st.builds(RMSprop, eps=positive, alpha=below_1)
)

num_envs = st.sampled_from([1, 2, 4, 8])
plain = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
json_values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=2)
)
environments: st.SearchStrategy[Environment] = (
    st.builds(Classic, id=one_of(ClassicId), num_envs=num_envs)
    | st.builds(Box2D, id=one_of(Box2DId), num_envs=num_envs)
    | st.builds(MuJoCo, id=one_of(MuJoCoId), num_envs=num_envs)
    | st.builds(Playground, id=one_of(PlaygroundId), num_envs=num_envs)
    | st.builds(
        Atari,
        id=one_of(AtariId),
        num_envs=num_envs,
        sticky=below_1,
        frame_skip=small,
        noop_max=st.integers(0, 30),
        life_loss=st.booleans(),
        full_actions=st.booleans(),
    )
    | st.builds(
        Gym,
        id=st.text(min_size=1, max_size=12),
        num_envs=num_envs,
        kwargs=st.dictionaries(st.text(max_size=6), json_values, max_size=3),
        max_episode_steps=frames,
    )
)

LEAST_BATCH = 8
"""Every minibatch below divides every rollout, and so every batch."""
agents: st.SearchStrategy[Agent] = st.just(Random()) | st.builds(
    PPO,
    gamma=fractions,
    lam=fractions,
    lr=rates,
    critic_lr=st.none() | rates,
    clip=rates,
    entropy=rates,
    value_coef=fractions,
    rollout=st.sampled_from([8, 16, 64]),
    minibatch=st.sampled_from([1, 4, LEAST_BATCH]),
    epochs=small,
    max_grad_norm=st.none() | positive,
    normalize_advantages=st.booleans(),
    target_kl=st.none() | positive,
    net=nets,
    critic_net=st.none() | nets,
    log_std=st.none() | st.floats(-5, 2),
    squash=st.booleans(),
    optimizer=optimizers,
)
LEAST_FRAMES = 512
budgets = st.builds(Budget, frames=st.integers(LEAST_FRAMES, 10**9), log_every=frames, checkpoint_every=frames)
rarely = st.integers(10**10, 10**12)
"""Frames between evaluations: never finer than a log interval."""
evaluations = st.none() | st.builds(Evaluation, every=rarely, episodes=small, deterministic=st.booleans())


def listed(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Grid | Choice]:
    several = st.lists(values, min_size=1, max_size=2, unique_by=repr).map(tuple)
    return several.map(Grid) | several.map(Choice)


def between(low: float, high: float) -> st.SearchStrategy[tuple[float, float]]:
    return st.lists(st.floats(low, high), min_size=2, max_size=2, unique=True).map(sorted).map(tuple)


def dimension(paths: tuple[str, ...], axes: st.SearchStrategy[Any]) -> st.SearchStrategy[Dimension]:
    return st.builds(Dimension, paths=st.just(paths), axis=axes)


OF_ANY = (
    dimension(("env",), listed(environments.filter(lambda env: env.kind != "gym").map(lambda env: env.data()))),
    dimension(("budget.log_every",), st.just(IntUniform(1, 1000)) | listed(counts)),
)
OF_PPO = (
    dimension(("agent.gamma",), between(0, 1).map(lambda ends: Uniform(*ends)) | listed(fractions)),
    dimension(("agent.lr",), between(1e-6, 1).map(lambda ends: LogUniform(*ends)) | listed(rates)),
    dimension(("agent.epochs",), st.just(IntUniform(1, 9)) | listed(small)),
    dimension(("agent.net",), listed(nets)),
    dimension(("agent.lam", "agent.value_coef"), listed(st.tuples(fractions, fractions).map(list))),
)


NORMALIZES = Condition("agent.normalize_rewards", True)
CONDITIONAL = tuple(
    (
        Dimension(paths=("agent.max_grad_norm",), axis=Grid((1.0, 2.0)), when=NORMALIZES),
        Dimension(paths=("agent.normalize_rewards",), axis=parent),
    )
    for parent in (Grid((True, False)), Grid((False, True)))
)
"""Axes of which the first exists only for a value of the second."""


@st.composite
def searches(draw: st.DrawFn, agent: Agent) -> Search:
    menu = [*OF_ANY, *(OF_PPO if isinstance(agent, PPO) else ())]
    chosen = draw(st.lists(st.sampled_from(range(len(menu))), min_size=1, max_size=3, unique=True))
    dimensions = tuple(draw(menu[index]) for index in chosen)
    if isinstance(agent, PPO) and draw(st.booleans()):
        dimensions += draw(st.sampled_from(CONDITIONAL))
    return Search(
        dimensions=dimensions,
        method=draw(methods(dimensions)),
        objective=draw(one_of(Statistic)),
        maximize=draw(st.booleans()),
        max_failures=draw(st.none() | small),
    )


def methods(dimensions: tuple[Dimension, ...]) -> st.SearchStrategy[Method]:
    if all(isinstance(one.axis, Grid) for one in dimensions):
        return st.just(Exhaustive())
    trials, seed = st.integers(1, 3), st.integers(0, 99)
    return (
        st.builds(RandomSearch, trials=trials, seed=seed)
        | st.builds(Sobol, trials=trials, seed=seed)
        | st.builds(
            Asha,
            trials=trials,
            seed=seed,
            grace=st.none() | st.integers(1, LEAST_FRAMES - 1),
            eta=st.integers(2, 5),
            seeds=st.lists(small, min_size=1, max_size=2).map(sorted).map(tuple),
            stopping=st.booleans(),
            sampler=st.sampled_from(["random", "sobol"]),
        )
        | st.builds(Nevergrad, trials=trials, seed=seed, parallel=small)
    )


@st.composite
def experiments(draw: st.DrawFn, search: bool = True) -> Experiment:
    """A valid experiment, with a search or without."""
    agent = draw(agents)
    return Experiment(
        name=draw(st.from_regex(r"[a-z0-9][a-z0-9_.-]{0,7}(/[a-z0-9][a-z0-9_.-]{0,7})?", fullmatch=True)),
        agent=agent,
        env=draw(environments),
        budget=draw(budgets),
        evaluation=draw(evaluations),
        seeds=draw(st.builds(Seeds, count=st.integers(1, 5), first=st.integers(0, 100))),
        target=draw(st.none() | st.builds(Target, score=st.floats(-1e6, 1e6))),
        search=draw(st.none() | searches(agent)) if search else None,
    )
