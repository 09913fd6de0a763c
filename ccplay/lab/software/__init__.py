"""Runs disciplines in software: packets wait in a netfilter queue in front of a link's rate.

``lab/disciplines`` decides on packets; this package receives them and sends them at the link's
rate.
"""
