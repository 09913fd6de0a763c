"""What a run measured: its figures of merit, how far they can be trusted, and what repeats say."""
