"""The report's page: one HTML file, its sections and its figures, written to a directory."""
