"""The three languages (graph, tile, npu), and the evaluator that runs the first two."""
