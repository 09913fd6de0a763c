"""Results, comparisons and progress as text for a terminal."""
