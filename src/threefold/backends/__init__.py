"""Where records are kept: one folder or file for each back end, chosen by `open_backend`."""
