"""Charts as Vega-Lite specifications: plain dictionaries made from the report records, the same for every face.

They hold data and encodings; fonts, grid and background are left to whoever draws them. Every chart describes
itself in words under `description`.
"""
