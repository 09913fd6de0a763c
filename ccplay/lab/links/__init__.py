"""The settings of a link: rate, classes, MTU, offloads."""
