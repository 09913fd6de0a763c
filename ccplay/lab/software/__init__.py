"""Runs disciplines in software: packets wait in a netfilter queue in front of a link's rate.

``lab/disciplines`` decides; here packets are received, and sent at the link's rate.
"""
