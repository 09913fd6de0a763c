"""What a session showed: summaries, statistics, figures."""
