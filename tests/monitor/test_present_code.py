"""Sessions that other code has trained are shown as `status` shows them."""

from __future__ import annotations

import pytest

from tests.monitor.drive import Driver, drive
from tests.project import Project

EXPERIMENT = """
    import numpy as np
    from rldsl import Classic, Random, experiment, main

    np.random.seed(10)
    cartpole = experiment("cartpole").env(Classic("CartPole-v1", num_envs=4)).log_every(400)
    random = cartpole.agent(Random()).frames(2e3).seeds(1)

    if __name__ == "__main__":
        main(random)
"""


def test_done_by_other_code(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Noticed while the monitor is open, and over again once the code is as it was."""
    monkeypatch.chdir(project.root)
    file = project.write(EXPERIMENT)
    before = file.read_text()
    assert project.python("exp.py").returncode == 0

    async def scenario(driver: Driver) -> None:
        async def read_again() -> None:
            driver.app.index.code._next_check = 0.0
            await driver.refresh()

        assert "✓ done  " in driver.text
        await read_again()
        assert "other code" not in driver.text
        file.write_text(before.replace("seed(10)", "seed(11)"))
        await read_again()
        assert "✓ done (other code) " in driver.line("seed 0")
        assert "done (other code)" in project.python("exp.py", "status").stdout
        await driver.press("j", "enter")
        assert "✓ done (other code) " in driver.text.splitlines()[-2]
        await driver.press("1", "slash", *"status:done", "enter")
        assert "1 of 1 session" in driver.text
        file.write_text(f"{before}\n# a comment\n")
        await read_again()
        assert "other code" not in driver.text

    drive(project.runs, scenario, size=(80, 24))


def test_a_file_elsewhere_is_not_compared(project: Project) -> None:
    """The code of rldsl is: here one of its files had another digest."""
    file = project.write(EXPERIMENT)
    assert project.python("exp.py").returncode == 0
    file.write_text(file.read_text().replace("seed(10)", "seed(11)"))
    (provenance,) = project.session.glob("provenance*.json")

    async def scenario(driver: Driver) -> None:
        assert "other code" not in driver.text
        text = provenance.read_text()
        provenance.write_text(text.replace('"rldsl.agents.random":', '"rldsl.agents.gone":'))
        assert provenance.read_text() != text
        driver.app.index.code._next_check = 0.0
        await driver.refresh()
        assert "done (other code)" in driver.text

    drive(project.runs, scenario, size=(80, 24))
