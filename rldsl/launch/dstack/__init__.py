"""dstack: a Submitit executor over its REST API, and the place that trains sessions with it."""
