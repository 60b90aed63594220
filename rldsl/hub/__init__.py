"""Hugging Face Hub: copies sessions between machines through a dataset repository."""
