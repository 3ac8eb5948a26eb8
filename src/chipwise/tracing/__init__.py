"""Networks as they are: modules of PyTorch that run without memory, ONNX graphs, files of weights -> `Program`.

torch and onnx are optional and imported when they are used.
"""
