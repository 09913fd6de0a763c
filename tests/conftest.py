"""What holds for all tests."""

import signal

from hypothesis import HealthCheck, settings

# The same examples on every machine, however slow it is.
settings.register_profile(
    "anywhere", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("anywhere")

# A shell starts jobs in the background with SIGINT ignored, and every program here inherits that.
signal.signal(signal.SIGINT, signal.default_int_handler)
