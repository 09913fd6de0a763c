"""The state of a session: a pure fold of its events, and the series that it keeps."""
