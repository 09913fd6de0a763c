"""Finds, pins and changes the paths of traffic if there are several, but starts no traffic."""
