"""The report's page: one HTML file with its sections and figures, written to a directory."""
