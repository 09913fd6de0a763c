"""The keys of a scenario file: how each is read, its meaning, and its form in the schema."""
