"""The monitor: a Textual app that watches the sessions of a run directory (`rldsl watch`)."""
