"""The actions of the main screen's keys, by subject; nothing here draws."""
