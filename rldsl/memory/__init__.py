"""Rollout and replay buffers, with the member axis first. Import the module you need: `replay_size` needs no torch."""
