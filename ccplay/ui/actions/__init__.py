"""What the main screen's keys do, by subject; nothing here draws."""
