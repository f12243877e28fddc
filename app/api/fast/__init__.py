"""The shortcut of the routes that are called most: past the framework, on private parts of uvicorn and FastAPI."""
