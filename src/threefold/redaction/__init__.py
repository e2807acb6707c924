"""Taking secrets and personal data out of texts, before anything is stored of them."""
