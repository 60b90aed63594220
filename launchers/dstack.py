"""GPUs of clouds or of one's own, found by dstack: the cheapest that will do, spot machines too."""

from rldsl import Dstack

launcher = Dstack(gpu=("L4", "A10G"), max_price=0.8, hours=12, results="me/results", secrets=("hf_token",))
