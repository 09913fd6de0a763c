"""What holds for all tests."""

from hypothesis import HealthCheck, settings

# The same examples on every machine, however slow it is.
settings.register_profile(
    "anywhere", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("anywhere")
