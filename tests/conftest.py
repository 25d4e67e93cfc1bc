"""How many examples the properties are tried on; ``thorough`` is chosen with ``--hypothesis-profile``."""

from hypothesis import settings

settings.register_profile("thorough", max_examples=2000, deadline=None)
