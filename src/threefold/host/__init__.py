"""What runs agents: a request in, its context computed, an agent chosen, the turn recorded."""
