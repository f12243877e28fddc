"""Middleware around every request: bodies, hosts, problems, measurements and the OpenAPI document."""
