"""What each plot over time shows, for screen and report alike; nothing here draws or prints."""
