"""Entity tags of responses that have not changed."""


def matches(if_none_match: str, etag: str) -> bool:
    """RFC 9110, 13.1.2: the weak comparison."""
    tags = [tag.strip().removeprefix("W/") for tag in if_none_match.split(",")]
    return "*" in tags or etag in tags
