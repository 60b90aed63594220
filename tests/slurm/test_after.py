"""Experiments that come after others, with SLURM's own dependencies."""

from __future__ import annotations

from tests.project import events, until
from tests.slurm.lab import EXPERIMENT, Lab

MORE = """
first = cart.agent(Slow(nap=0.01)).frames(500).named("first")
second = cart.agent(Slow()).frames(100).named("second").after(first)
wrong = cart.agent(Slow(wrong=True)).frames(100).named("wrong")
never = cart.agent(Slow(nap=0.001)).frames(100).named("never").after(wrong, first)

if __name__ == "__main__":
    main(never, second, wrong, first)
"""


def test_jobs_wait_for_those_before_them_and_are_cancelled_if_one_fails(lab: Lab) -> None:
    lab.project.write(EXPERIMENT.partition("if __name__")[0] + MORE)
    said = lab.train("--detach")
    assert "2 sessions start when first is done" in said and "2 sessions start when first, wrong is done" in said
    arrays = {record["experiment"]: record["job_id"].partition("_")[0] for record in lab.records}
    shown = lab.cluster.ask("scontrol", "show", "job", arrays["never"])
    assert f"afterok:{arrays['first']}_*" in shown and f"afterok:{arrays['wrong']}_*" in shown
    waiting = lab.command("status", "--only", "second")
    assert "after first: " in waiting or "done" in waiting
    names = {record["experiment"]: lab.runs / record["directories"][0] for record in lab.records}
    until(lambda: "done" in [one["event"] for one in events(names["second"])], 120)
    done = [one["time"] for one in events(names["first"]) if one["event"] == "done"]
    assert done and done[0] <= min(one["time"] for one in events(names["second"]) if one["event"] == "launched")
    lab.until_gone()
    assert all(one["event"] != "launched" for one in events(names["never"]))
    told = lab.status("--only", "never")[0]
    assert told["state"] == "new" and "not started: it comes after wrong, whose session " in told["reason"]
    assert "failed" in told["reason"] and "cancelled" in told["reason"]
    again = lab.train("--only", "never", "--detach", fails=True)
    assert "2 sessions not started: it comes after wrong" in again
