"""The paths of traffic if there are several: found, pinned, changed. No traffic is started here."""
