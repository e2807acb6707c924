"""Chat models: what answers, and by which wire. They make Threefold better and are never needed."""
