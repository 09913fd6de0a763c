"""The stream of events: its JSON lines, its sources (labs, recordings) and its sinks.

Nothing here knows what events mean to a session.
"""
