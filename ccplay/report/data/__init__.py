"""What a report shows, as plain rows, lines and sentences, before anything draws it."""
