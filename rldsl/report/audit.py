"""The audit: whether a result is what its experiment declares. Each rejection is one sentence.

A check is a function of a result and its entry that yields a sentence for each reason to reject the result.
`docs/protocol.md` lists the checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from rldsl.maths.scores import WINDOW, total_reward_ma
from rldsl.report.entry import Entry
from rldsl.report.result import METRIC, Facts, Result
from rldsl.report.words import value
from rldsl.spec.base import SCHEMA
from rldsl.spec.budget import SEARCH_SEEDS_FROM
from rldsl.spec.errors import SpecError
from rldsl.spec.paths import differences

MOST_LISTED = 3
"""Differences that a sentence lists."""
TOLERANCE = 1e-6
"""Relative difference between a stored score and the mean of the stored curve, whose numbers are rounded."""

Check = Callable[[Result, Entry], Iterable[str]]


def audit(result: Result, entry: Entry) -> list[str]:
    """Why a result does not belong in a benchmark table; empty if it does."""
    damaged = list(_damage(result, entry))
    return damaged or list(dict.fromkeys(chain.from_iterable(check(result, entry) for check in CHECKS)))


def unverified(result: Result) -> list[str]:
    """What the audit could not check because an earlier format of the file did not record it."""
    missing = []
    if all(one.curve is None for one in result.sessions):
        missing.append("the curve of each seed")
    if any(one.provenance is None for one in result.sessions):
        missing.append("code and packages of every seed")
    if any(one.compute is None for one in result.sessions):
        missing.append("device and kernels")
    return missing


def _damage(result: Result, entry: Entry) -> Iterator[str]:
    yield from result.damage
    for one in result.sessions:
        yield from one.damage
    try:
        spec = result.parsed_spec()
    except SpecError as error:
        yield f"its settings are not valid: {error.sentence}"
        return
    if result.schema == SCHEMA and spec.id != result.trial:
        yield f"its settings have the id {spec.id}, but it says {result.trial}"


def _finished(result: Result, entry: Entry) -> Iterator[str]:
    for one in result.sessions:
        if one.state != "done":
            yield f"seed {one.seed} has not finished training: it is at frame {one.frame:,} of {entry.frames:,}"


def _no_search(result: Result, entry: Entry) -> Iterator[str]:
    if entry.searched or any(one.seed >= SEARCH_SEEDS_FROM for one in result.sessions):
        yield "it is part of a search: train the best setting on the seeds of the benchmark"


def _settings(result: Result, entry: Entry) -> Iterator[str]:
    """Environment, frames and log interval have sentences of their own."""
    ran, declared = result.parsed_spec(), entry.trial
    if ran.id == declared.id:
        return
    if ran.env.id != declared.env.id:
        yield f"the environment is {ran.env.id}, the experiment has {declared.env.id}"
    if ran.budget.frames != declared.budget.frames:
        yield f"the budget is {ran.budget.frames:,} frames, the experiment has {declared.budget.frames:,}"
    if ran.budget.log_interval != declared.budget.log_interval:
        interval = f"{ran.budget.log_interval:,}"
        yield f"the log interval is {interval} frames, the experiment has {declared.budget.log_interval:,}"
    others = list(_setting_differences(ran.data(), declared.data()))
    if others:
        more = f" and {len(others) - MOST_LISTED} more" if len(others) > MOST_LISTED else ""
        yield f"settings differ: {'; '.join(others[:MOST_LISTED])}{more}"


def _setting_differences(ran: Facts, declared: Facts) -> Iterator[str]:
    for path, was, now in differences(ran, declared):
        if path not in ("env.id", "budget.frames", "budget.log_every") and not path.startswith("compute"):
            yield f"{path} is {value(was)}, the experiment has {value(now)}"


def _frames(result: Result, entry: Entry) -> Iterator[str]:
    """The last log point is at the end of the budget or, in results of earlier versions, one interval before it."""
    budget = result.parsed_spec().budget
    for one in result.sessions:
        if one.state == "done" and one.frame < budget.frames - budget.log_interval:
            yield f"the last log point of seed {one.seed} is at frame {one.frame:,} of {entry.frames:,}"


def _seeds(result: Result, entry: Entry) -> Iterator[str]:
    ran = [one.seed for one in result.sessions]
    if missing := [seed for seed in entry.seeds if seed not in ran]:
        yield f"{_listed('seed', missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if others := [seed for seed in ran if seed not in entry.seeds]:
        yield f"{_listed('seed', others)} {'is' if len(others) == 1 else 'are'} not declared by the experiment"
    if len(set(ran)) < len(ran):
        yield "it has a seed twice"


def _log_interval(result: Result, entry: Entry) -> Iterator[str]:
    """Log points are due every `log_interval` frames, and are taken at the next step of all environments."""
    spec = result.parsed_spec()
    interval, step = spec.budget.log_interval, spec.env.num_envs
    for one in result.sessions:
        if one.curve is None or one.state != "done":
            continue
        if one.curve.frame.size < WINDOW:
            few = f"seed {one.seed} has {one.curve.frame.size} log points with a return"
            yield f"{few}, and the score is the mean of the last {WINDOW}"
            continue
        distances = np.diff(one.curve.frame[-WINDOW:])
        if distances[:-1].min() < interval - step or distances.max() > interval + step:  # the budget may end earlier
            range_ = f"{distances.min():,.0f} to {distances.max():,.0f}"
            yield f"the log points of seed {one.seed} are {range_} frames apart, not {interval:,}"


def _metric(result: Result, entry: Entry) -> Iterator[str]:
    if result.metric != METRIC:
        yield f"its metric is {result.metric}, not {METRIC}"
    for one in result.sessions:
        if one.state != "done":
            continue
        if one.score is None:
            yield f"no episode ended with seed {one.seed}, so there is no score"
        elif one.curve is not None and one.curve.frame.size:
            mean = total_reward_ma(one.curve.value)
            if not math.isclose(one.score, mean, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
                yield f"the score of seed {one.seed} is {one.score:g}, but its last log points have a mean of {mean:g}"


def _one_code_version(result: Result, entry: Entry) -> Iterator[str]:
    """One digest of the code that the trial depends on; one commit where a session recorded no digest."""
    known = _provenance(result)
    kind = "code" if all(facts.get("code") for facts in known) else "sha"
    versions = sorted({str(facts.get(kind))[:10] for facts in known})
    if len(versions) > 1:
        yield f"it was computed with different code: {', '.join(versions)}"
    for package in ("torch", "numpy", "gymnasium", "mujoco", "ale-py", "playground"):
        found = {str(facts.get("packages", {}).get(package)) for facts in known}
        if len(found) > 1:
            yield f"it was computed with different versions of {package}: {', '.join(sorted(found))}"


def _clean_tree(result: Result, entry: Entry) -> Iterator[str]:
    known = _provenance(result)
    if any(facts.get("sha") is None for facts in known):
        yield "its code was not committed to a git repository; commit the file before training"
    elif any(facts.get("dirty") is not False for facts in known):
        yield "its code had changes that were not committed; commit them before training"


def _one_device(result: Result, entry: Entry) -> Iterator[str]:
    computed = [facts for one in result.sessions for facts in one.compute or ()]
    gpus = [facts.get("gpus") for facts in _provenance(result)] if _on_gpu(computed) else []
    for name, found in (
        ("devices", [facts["device"] for facts in computed if "device" in facts]),
        ("GPUs", gpus),
        ("kernels", [facts.get("kernels") for facts in computed]),
    ):
        if len({str(one) for one in found}) > 1:
            yield f"it was computed with different {name}: {', '.join(sorted({str(one) for one in found}))}"
    if len({bool(facts.get("compiled")) for facts in computed}) > 1:
        yield "some seeds were computed with compiled updates and some without"


def _on_gpu(computed: Sequence[Facts]) -> bool:
    return any(str(facts.get("device")).startswith("cuda") for facts in computed)


def _provenance(result: Result) -> list[Facts]:
    return [facts for one in result.sessions for facts in one.provenance or ()]


def _listed(noun: str, numbers: Sequence[Any]) -> str:
    return f"{noun}{'' if len(numbers) == 1 else 's'} {', '.join(map(str, numbers))}"


CHECKS: tuple[Check, ...] = (
    _finished,
    _no_search,
    _settings,
    _frames,
    _seeds,
    _log_interval,
    _metric,
    _one_code_version,
    _clean_tree,
    _one_device,
)
