"""What every process shares that holds packets of netfilter queues beside the lab."""
