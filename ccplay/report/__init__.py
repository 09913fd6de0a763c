"""What is said of sessions: tables in a terminal, figures, the page, every sample."""
