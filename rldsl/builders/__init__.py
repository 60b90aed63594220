"""How a person writes an experiment: immutable, fluent, checked at the line of the mistake."""
