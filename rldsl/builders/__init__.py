"""Fluent, immutable experiment builders with errors that point at the user's line."""
