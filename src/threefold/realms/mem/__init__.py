"""Memory: short notes about a user, and which of them say the same."""
