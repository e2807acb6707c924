"""What an agent should see now: computed for each request, from everything that is known, under a budget."""
