"""What a link does to packets: rate, classes, MTU, offloads."""
