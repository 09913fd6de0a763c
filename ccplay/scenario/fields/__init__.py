"""The keys of a scenario file: what each reads, means and looks like in the schema."""
