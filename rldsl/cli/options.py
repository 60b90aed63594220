"""Options that several commands share, and the plan that they select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rldsl.cli.load import load, load_all
from rldsl.cli.selected import Selected, is_session, sessions_plan, with_overridden
from rldsl.launch.profiles import load_launcher
from rldsl.plan.overrides import Assignment, Options, Overridden, Source, apply, parse_set, select
from rldsl.plan.plan import Plan, load_plan, make_plan
from rldsl.spec.base import whole
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment

File: TypeAlias = Annotated[
    Path, typer.Argument(help="An experiment file, a saved plan, or the id of a session or trial.", show_default=False)
]
Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="More files; then a line for each experiment is shown."),
]
Only: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this one: cartpole/ppo, ppo, or 'ppo*'. Repeatable."),
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Override a field: agent.gamma=0.995. Repeatable."),
]
Gin: TypeAlias = Annotated[
    list[str] | None, typer.Option("--gin", metavar="BINDING", help="A gin binding: 'PPO.gamma = 0.995'. Repeatable.")
]
GinFile: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option("--gin-file", metavar="FILE", help="A file of gin bindings, such as a session's config.gin."),
]
Frames: TypeAlias = Annotated[
    str | None, typer.Option("--frames", metavar="N", help="Short for --set budget.frames=N; 4e6 is fine.")
]
Seeds: TypeAlias = Annotated[
    str | None, typer.Option("--seeds", metavar="N", help="How many seeds; 3,5,7: exactly these.")
]
Seed: TypeAlias = Annotated[
    list[int] | None, typer.Option("--seed", metavar="S", min=0, help="Only this seed. Repeatable.")
]
SessionIds: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--session", metavar="ID", help="Only this session, or all of this trial, by its id. Repeatable."),
]
Runs: TypeAlias = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The run directory.")]
Experiments: TypeAlias = Annotated[
    Path | None,
    typer.Option("--experiments", metavar="DIR", help="Experiment files that results are checked against."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
FrozenPlan: TypeAlias = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Exactly this plan, as `plan --out FILE` wrote it.")
]
On: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--on", metavar="LAUNCHER", help="Where to run: local, slurm, dstack, or a file such as launchers/mine.py."
    ),
]
Detach: TypeAlias = Annotated[
    bool, typer.Option("--detach", help="Return once the jobs are submitted; see `status` and `stop`.")
]
CancelStale: TypeAlias = Annotated[
    bool, typer.Option("--cancel-stale", help="Cancel jobs of these experiments that are no longer in the plan.")
]
Redo: TypeAlias = Annotated[
    bool, typer.Option("--redo", help="Set sessions aside that other code has trained, and train them again.")
]
Notify: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--notify",
        metavar="URL",
        envvar="RLDSL_NOTIFY",
        show_envvar=False,
        help="Post a message when a session fails and when all have ended: ntfy, Slack; or set RLDSL_NOTIFY.",
    ),
]
Debug: TypeAlias = Annotated[
    bool, typer.Option("--debug", help="Train in this process, so that breakpoint() works; without compilation.")
]
Continue: TypeAlias = Annotated[
    bool, typer.Option("--continue", help="Continue sessions that other code has started, with the present code.")
]

RUNS = Path("runs")


@dataclass(frozen=True)
class Choice:
    """The experiments of a file that a command line selects, with its overrides."""

    file: File
    only: Only = None
    set: Set = None
    gin: Gin = None
    gin_file: GinFile = None
    frames: Frames = None
    seeds: Seeds = None
    seed: Seed = None
    session: SessionIds = None
    plan_file: FrozenPlan = None

    def selected(
        self,
        runs: Path,
        *,
        sampled: bool | None = None,
        on: str | None = None,
        more: Sequence[Path] = (),
        overridden: bool = False,
    ) -> Selected:
        """What the command is about: experiments of a file, a saved plan, or sessions by their ids.

        `sampled` restricts the experiments to searches, or to all but searches. With `overridden`, sessions that were
        trained with overrides belong to the experiments of the file, unless the command line has overrides itself.
        """
        named = [*([str(self.file)] if is_session(self.file) else []), *(self.session or ())]
        file = self.file if self.file.suffix == ".py" else None
        frozen = self.plan_file or (self.file if self.file.suffix == ".json" else None)
        if named or frozen:
            self._refuse_changes("--session" if named else "--plan")
            if named and frozen:
                raise SpecError("--plan and sessions exclude each other")
            plan = sessions_plan(named, runs, file) if named else self._frozen(frozen, file)
            return Selected(plan if on is None else plan.on(load_launcher(on)), file=file)
        experiments = self.experiments(sampled, on, more)
        plan = make_plan(experiments, self._needed(experiments, more))
        plain = not any((self.set, self.gin, self.gin_file, self.frames, self.seeds, self.seed))
        return Selected(with_overridden(plan, experiments, runs) if overridden and plain else plan, experiments, file)

    def experiments(
        self, sampled: bool | None = None, on: str | None = None, more: Sequence[Path] = ()
    ) -> list[Overridden]:
        """The selected experiments with their overrides; `sampled` restricts them to searches, or to all others."""
        launcher = None if on is None else load_launcher(on)
        chosen = select(load_all([self.file, *more]), self.only or ())
        chosen = [one for one in chosen if sampled is None or one.sampled == sampled] or _refuse(chosen, sampled)
        if launcher is not None:
            chosen = [one.model_copy(update={"launcher": launcher}) for one in chosen]
        return apply(chosen, self._sources())

    def _needed(self, chosen: Sequence[Overridden], more: Sequence[Path]) -> list[Overridden]:
        """The experiments that the chosen ones come after and that are not chosen, with the same overrides."""
        names = {name for one in chosen for name in one.experiment.after} - {one.experiment.name for one in chosen}
        if not names:
            return []
        needed = [one for one in load_all([self.file, *more]) if one.name in names]
        return apply(needed, self._sources(), check=False)

    def _refuse_changes(self, instead: str) -> None:
        given: dict[str, object] = {"--only": self.only, "--set": self.set, "--gin": self.gin}
        given |= {"--gin-file": self.gin_file, "--frames": self.frames, "--seeds": self.seeds, "--seed": self.seed}
        if changed := [name for name, value in given.items() if value]:
            what = "runs a plan exactly as it is" if instead == "--plan" else "means sessions as they are"
            raise SpecError(f"{instead} {what}: {', '.join(changed)} cannot change it")

    @staticmethod
    def _frozen(path: Path | None, file: Path | None) -> Plan:
        assert path is not None
        if file is not None:
            load(file)  # for agents and environments that it defines
        return load_plan(path)

    def _sources(self) -> list[Source]:
        given = [parse_set(text) for text in self.set or ()]
        if self.frames is not None:
            given.append(Assignment("budget.frames", _whole("--frames", self.frames), f"--frames {self.frames}"))
        if self.seeds is not None and self.seed:
            raise SpecError("--seed and --seeds exclude each other: --seeds 3,5,7 means exactly these seeds")
        if self.seeds is not None and "," in self.seeds:
            values = [_whole("--seeds", text, "4 or 3,5,7") for text in self.seeds.split(",") if text.strip()]
            given.append(Assignment("seeds.values", values, f"--seeds {self.seeds}"))
        elif self.seeds is not None:
            given.append(
                Assignment("seeds.count", _whole("--seeds", self.seeds, "4 or 3,5,7"), f"--seeds {self.seeds}")
            )
        if self.seed:
            source = " ".join(f"--seed {seed}" for seed in self.seed)
            given.append(Assignment("seeds.values", list(self.seed), source))
        return [*([Options(given)] if given else []), *self._gin_sources()]

    def _gin_sources(self) -> list[Source]:
        if not self.gin and not self.gin_file:
            return []
        from rldsl.plan.gin_bindings import GinBindings

        texts = [GinBindings.from_text(text, f"--gin {text!r}") for text in self.gin or ()]
        return [*texts, *(GinBindings.from_file(path) for path in self.gin_file or ())]


def _whole(option: str, text: str, examples: str = "200000 or 2e5") -> int:
    try:
        return int(whole(float(text.replace("_", "").replace(",", ""))))
    except Exception:
        raise SpecError(f"{option} should be a whole number such as {examples}, got {text!r}") from None


def _refuse(chosen: Sequence[Experiment], sampled: bool | None) -> list[Experiment]:
    names = ", ".join(one.name for one in chosen)
    if sampled:
        raise SpecError(f"{names} is not a search: use train, or add a method such as .grid()")
    raise SpecError(f"{names} is a search: use the command search, or see it with plan")
