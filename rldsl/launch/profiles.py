"""Launcher profiles: files of a project, by default in `launchers/`, that declare one launcher each."""

from __future__ import annotations

from pathlib import Path

from rldsl.spec.errors import SpecError, suggestion
from rldsl.spec.launcher import Launcher
from rldsl.spec.user_error import user_error
from rldsl.spec.user_file import load_user_file

FOLDER = Path("launchers")


def load_launcher(name: str) -> Launcher:
    """The launcher that `--on NAME` means: the profile `launchers/NAME.py`, a kind such as `slurm`, or a file."""
    file = Path(name) if name.endswith(".py") else FOLDER / f"{name}.py"
    if file.is_file():
        return load_profile(file)
    if name.endswith(".py"):
        raise SpecError(f"--on {name}: there is no such file")
    if name not in Launcher.kinds:
        known = [*Launcher.kinds, *(path.stem for path in profile_files())]
        raise SpecError(f"--on {name}: there is no such launcher; {suggestion(name, known)}")
    return Launcher.parse(name, root="--on")


def profile_files() -> list[Path]:
    """The profiles of the project in the working directory."""
    return sorted(FOLDER.glob("*.py"))


def load_project_launchers() -> None:
    """Loads all profiles of the project, for launcher classes that they define."""
    for file in profile_files():
        load_profile(file)


def load_profile(file: Path) -> Launcher:
    """The launcher that a file declares. Its directory is not searched for modules: `slurm.py` is no library."""
    try:
        module = load_user_file(file, f"launcher_{file.stem}", search_path=False)
    except SpecError:
        raise
    except Exception as error:
        raise user_error(error, file) from error
    launchers = [value for value in vars(module).values() if isinstance(value, Launcher)]
    if len(launchers) != 1:
        raise SpecError(f"{file}: the file should declare one launcher, it declares {len(launchers)}")
    return launchers[0]
