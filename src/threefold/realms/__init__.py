"""What the data means: one package for each realm, none imports another."""
