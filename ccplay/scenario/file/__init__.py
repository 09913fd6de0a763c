"""A scenario file as text: found, parsed, and located line by line."""
