"""What a flow is doing at one moment, and why, in sentences from the numbers at hand.

Rules over measured values; what the values do not show is not said, or said not to be known.
"""
