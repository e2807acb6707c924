"""Contract suites, fakes and strategies, so that others can test their own back end against the same behaviour."""
