"""From a model's file, or from Python, into the graph dialect."""
