"""The state of a session: a pure fold of its events, its series, and the results of traffic."""
