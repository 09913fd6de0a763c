"""The content of a report as plain rows, lines and sentences, before anything is drawn."""
