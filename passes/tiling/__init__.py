"""From one fused kernel of graph ops to loops over on-chip tiles, one module per form of kernel."""
