"""Hugging Face: a dataset repository that carries sessions between machines."""
