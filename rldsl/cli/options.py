"""Options that several commands share, and the plan that they select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from rldsl.cli.load import load, load_all, refuse_shared_names
from rldsl.launch.profiles import load_launcher
from rldsl.plan.overrides import Assignment, Options, Overridden, Source, apply, parse_set, select
from rldsl.plan.plan import Plan, load_plan, make_plan
from rldsl.spec.base import whole
from rldsl.spec.errors import SpecError
from rldsl.spec.experiment import Experiment

File: TypeAlias = Annotated[Path, typer.Argument(help="An experiment file.", show_default=False)]
Files: TypeAlias = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="More files; then a line for each experiment is shown."),
]
Only: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="NAME", help="Only this one: cartpole/ppo, or ppo. Repeatable."),
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
Seeds: TypeAlias = Annotated[str | None, typer.Option("--seeds", metavar="N", help="Short for --set seeds.count=N.")]
Runs: TypeAlias = Annotated[Path, typer.Option("--runs", metavar="DIR", help="The run directory.")]
Experiments: TypeAlias = Annotated[
    Path | None,
    typer.Option("--experiments", metavar="DIR", help="Experiment files that results are checked against."),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
FrozenPlan: TypeAlias = Annotated[
    Path | None, typer.Option("--plan", metavar="FILE", help="Run exactly this plan, as `plan --out FILE` wrote it.")
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

    def plan(
        self,
        sampled: bool | None = None,
        frozen: Path | None = None,
        on: str | None = None,
        more: Sequence[Path] = (),
    ) -> Plan:
        """The plan of the selected experiments of the file, and of `more` files.

        `sampled` restricts it to searches, or to all but searches.
        """
        if frozen is not None:
            plan = self._frozen(frozen)
            return plan if on is None else plan.on(load_launcher(on))
        return make_plan(self.experiments(sampled, on, more))

    def experiments(
        self, sampled: bool | None = None, on: str | None = None, more: Sequence[Path] = ()
    ) -> list[Overridden]:
        """The selected experiments with their overrides; `sampled` restricts them to searches, or to all others."""
        launcher = None if on is None else load_launcher(on)
        chosen = select(load_all([self.file, *more]), self.only or ())
        chosen = [one for one in chosen if sampled is None or one.sampled == sampled] or _refuse(chosen, sampled)
        if more:
            refuse_shared_names(chosen, [self.file, *more])
        if launcher is not None:
            chosen = [one.model_copy(update={"launcher": launcher}) for one in chosen]
        return apply(chosen, self._sources())

    def _frozen(self, path: Path) -> Plan:
        given: dict[str, object] = {
            "--only": self.only,
            "--set": self.set,
            "--gin": self.gin,
            "--gin-file": self.gin_file,
        }
        given |= {"--frames": self.frames, "--seeds": self.seeds}
        if changed := [name for name, value in given.items() if value]:
            raise SpecError(f"--plan runs a plan exactly as it is: {', '.join(changed)} cannot change it")
        load(self.file)  # for agents and environments that it defines
        return load_plan(path)

    def _sources(self) -> list[Source]:
        given = [parse_set(text) for text in self.set or ()]
        if self.frames is not None:
            given.append(Assignment("budget.frames", _whole("--frames", self.frames), f"--frames {self.frames}"))
        if self.seeds is not None:
            given.append(Assignment("seeds.count", _whole("--seeds", self.seeds), f"--seeds {self.seeds}"))
        return [*([Options(given)] if given else []), *self._gin_sources()]

    def _gin_sources(self) -> list[Source]:
        if not self.gin and not self.gin_file:
            return []
        from rldsl.plan.gin_bindings import GinBindings

        texts = [GinBindings.from_text(text, f"--gin {text!r}") for text in self.gin or ()]
        return [*texts, *(GinBindings.from_file(path) for path in self.gin_file or ())]


def _whole(option: str, text: str) -> int:
    try:
        return int(whole(float(text.replace("_", "").replace(",", ""))))
    except Exception:
        raise SpecError(f"{option} should be a whole number such as 200000 or 2e5, got {text!r}") from None


def _refuse(chosen: Sequence[Experiment], sampled: bool | None) -> list[Experiment]:
    names = ", ".join(one.name for one in chosen)
    if sampled:
        raise SpecError(f"there is nothing to search: {names} is no search: use train, or add a method such as .grid()")
    raise SpecError(f"{names} is a search: use the command search, or see it with plan")
