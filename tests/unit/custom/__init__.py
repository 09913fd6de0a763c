"""Queue disciplines of the user's own."""
