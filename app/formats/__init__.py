"""Wire formats, each with its reader and its writer: JSON, CSV, Arrow, npy and tensors. They know no HTTP."""
