"""Methods that are generators of steps, and run on the driver of their object.

The same class serves threads and asyncio: on an object with a driver `Sync` a method returns its result, on one with a
driver `Async` an awaitable of it. Type checkers see the same.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .drivers import Async, Sync
    from .steps import Steps

P = ParamSpec("P")
T = TypeVar("T")
M = TypeVar("M", "Sync", "Async")
"""The driver."""


class Driven(Generic[M]):
    """An object with operations."""

    driver: M


class operation(Generic[P, T]):  # noqa: N801  a decorator
    """Make a method of a generator of steps. Other steps use `Class.method.steps(self, …)`."""

    def __init__(self, steps: Callable[Concatenate[Any, P], Steps[T]]) -> None:
        self.steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Driven[Sync], kind: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, owner: Driven[Async], kind: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        if owner is None:
            return self

        @wraps(self.steps)
        def run(*arguments: P.args, **named: P.kwargs) -> Any:
            return owner.driver.run(self.steps(owner, *arguments, **named))

        return run


class attribute(Generic[T]):  # noqa: N801  a decorator
    """An operation without arguments that is read like a field: its value, or an awaitable of it."""

    def __init__(self, steps: Callable[[Any], Steps[T]]) -> None:
        self.steps = steps
        self.__doc__ = steps.__doc__

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...
    @overload
    def __get__(self, owner: Driven[Sync], kind: type) -> T: ...
    @overload
    def __get__(self, owner: Driven[Async], kind: type) -> Awaitable[T]: ...
    def __get__(self, owner: Any, kind: type) -> Any:
        return self if owner is None else owner.driver.run(self.steps(owner))
