"""Pure functions named after their equations. Import the module that is needed: half of them do without torch."""
