"""The dstack backend: a Submitit executor over dstack's REST API, and what jobs run on its machines."""
