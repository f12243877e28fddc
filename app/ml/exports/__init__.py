"""Models as files that other programs predict with: ONNX, and a script of numpy."""
