"""This machine, one session for each core."""

from rldsl import Local

launcher = Local()
