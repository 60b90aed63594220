"""`python -m rldsl.play.export SESSION_DIRECTORY FILE`: writes a policy as ONNX or as a torch.export program.

The file is read back and compared with the policy on random observations before it gets its name.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from rldsl.envs.contract import EnvError
from rldsl.play.export_check import Agreement, compare
from rldsl.play.export_formats import FORMATS, Signature
from rldsl.play.policy import TrainedPolicy, load_agent, read_checkpoint
from rldsl.play.policy_module import PolicyModule
from rldsl.spec.errors import SpecError
from rldsl.spec.implementation import implementation
from rldsl.spec.session import Session
from rldsl.spec.user_file import load_user_file
from rldsl.store.errors import StoreError, writing
from rldsl.store.session_dir import SessionDir

INTERRUPTED = 130


@dataclass(frozen=True)
class Exported:
    """What was written, and how well it agrees with the policy."""

    file: str
    session: str
    experiment: str
    env: str
    checkpoint: str
    frame: int
    inputs: dict[str, str]
    outputs: dict[str, str]
    observations: int
    """Random observations on which the file was compared with the policy."""
    largest_difference: float
    """Of an action's number; 0 for discrete actions, which are equal."""
    near_ties: int
    """Observations at which two discrete actions are equally good up to rounding, and the file chose the other one."""


def main(arguments: list[str]) -> int:
    """Exports a policy; returns the exit code, 2 for an error that the user can mend."""
    options = _parse(arguments)
    try:
        if options.file:
            load_user_file(options.file)
        exported = export(SessionDir(options.directory), options.out, options.checkpoint)
    except (SpecError, StoreError, EnvError) as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        return 2
    except KeyboardInterrupt:
        return INTERRUPTED
    print(json.dumps(asdict(exported), indent=2) if options.json else _summary(exported))  # noqa: T201
    return 0


def export(directory: SessionDir, out: Path, checkpoint: str = "best") -> Exported:
    """Writes the policy of a session's checkpoint to a `.onnx` or `.pt2` file, if it agrees with the policy."""
    kind = FORMATS[out.suffix]
    kind.check_installed()
    session = Session.from_record(directory.read_session(), directory.path)
    saved = read_checkpoint(directory, checkpoint)
    about: dict[str, Any] = {
        "session": session.id,
        "experiment": session.experiment,
        "env": session.trial.env.label,
        "checkpoint": checkpoint,
        "frame": saved.frame,
    }
    env = session.trial.env
    temporary = out.with_name(f".{out.stem}.partial{out.suffix}")
    with closing(implementation(env)(env, 1, 1)) as made, torch.no_grad():
        agent = load_agent(session, made.spaces, saved)
        module, policy = PolicyModule(agent, made), TrainedPolicy(agent, made, session.seed)
        signature = Signature.of(module)
        with writing(out):
            out.parent.mkdir(parents=True, exist_ok=True)
        try:
            with writing(temporary):
                kind.write(module, signature, temporary, {**about, "rldsl": version("rldsl")})
            agreement = compare(policy, module, kind.read(temporary, signature), made, np.random.default_rng(0))
            _refuse_difference(agreement, out)
            with writing(out):
                temporary.replace(out)
        finally:
            temporary.unlink(missing_ok=True)
    return Exported(
        file=str(out),
        **about,
        inputs=signature.described(signature.inputs),
        outputs=signature.described(signature.outputs),
        observations=agreement.observations,
        largest_difference=agreement.largest_difference,
        near_ties=agreement.near_ties,
    )


def _refuse_difference(agreement: Agreement, out: Path) -> None:
    if not agreement.agrees:
        raise SpecError(
            f"{out} was not written: at random observations its actions differ from the policy's by up to "
            f"{agreement.largest_difference:g}; an agent with its own `policy` needs its own export"
        )


def _summary(exported: Exported) -> str:
    def listed(tensors: dict[str, str]) -> str:
        return ", ".join(f"{name} {shape}" for name, shape in tensors.items())

    ties = f" ({exported.near_ties} at near ties)" if exported.near_ties else ""
    return "\n".join(
        [
            f"{exported.file}: the {exported.checkpoint} checkpoint of {exported.session}, frame {exported.frame:,}",
            f"inputs   {listed(exported.inputs)}",
            f"outputs  {listed(exported.outputs)}",
            f"verified on {exported.observations} random observations: actions differ by at most "
            f"{exported.largest_difference:.2g}{ties}",
        ]
    )


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m rldsl.play.export", description=__doc__)
    parser.add_argument("directory", type=Path, help="the directory of a session")
    parser.add_argument("out", type=Path, help="the file to write, .onnx or .pt2")
    parser.add_argument("--checkpoint", default="best", help="best, last, or one that a hook has named")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--file", type=Path, help="a file that defines classes of the session")
    options = parser.parse_args(arguments)
    if options.out.suffix not in FORMATS:
        parser.error(f"{options.out} must end in {' or '.join(FORMATS)}")
    return options


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
