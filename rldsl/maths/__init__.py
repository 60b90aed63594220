"""Pure functions, named after their equations. Import the module you need: half of them do not need torch."""
