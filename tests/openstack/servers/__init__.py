"""What runs OpenStack's API servers on loopback, without agents, brokers and hypervisors."""
