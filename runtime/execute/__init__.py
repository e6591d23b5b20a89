"""The functional device: one compiled function per family of instructions, over the addresses of a core's memories.

| file | content |
|---|---|
| `core.py` | the block of words that is a core; footprint checks |
| `lanes.py` | widening and transposing by vectors |
| `moves.py` `feeds.py` `dequantise.py` `im2col.py` `cube.py` `drain.py` `vector.py` | the families |
| `sync.py` | tokens and counters |
| `queues.py` | program order, and the interleavings of the queues |
"""
