"""What happens after the commit: durable, resumable, best effort."""
