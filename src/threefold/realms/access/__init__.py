"""Who may come in over a network, and requests that are done once however often they come."""
