"""The story of the pipeline, the command line and the reports."""
