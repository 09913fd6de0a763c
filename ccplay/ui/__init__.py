"""The screen. Nothing outside imports Textual."""
