"""A scenario file as text: found, parsed, located line by line."""
