"""Damaged model files: bytes, numbers, lines and lengths of a whole one changed at random."""

import faulthandler
import os
import random
import re
import resource
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence

import psutil
from threadpoolctl import threadpool_limits

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = (
    b"-1", b"-13", b"0", b"1", b"2", b"3", b"7", b"255", b"65536", b"2147483647", b"-2147483648", b"4294967295",
    b"99999999999999999999", b"1e308", b"-1e400", b"1e-400", b"NaN", b"Infinity", b"-0", b"0.5", b"1e9", b"", b"null",
)  # fmt: skip
WORDS = (b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\x00\x00\x00", b"\x00" * 4, b"\xf3\xff\xff\xff")
MEMORY_BYTES, SECONDS = 1 << 30, 20
CHUNK = 100
FIELD = re.compile(rb"[\n,]")


def mutants(whole: bytes, count: int, seed: int = 0) -> Iterator[bytes]:
    """So many damaged files, each of one to three damages."""
    rng = random.Random(seed)
    for _ in range(count):
        content = whole
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            content = rng.choice(DAMAGES)(content or b"\0", rng)
        yield content


def _flipped(content: bytes, rng: random.Random) -> bytes:
    damaged = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    return bytes(damaged)


def _other_number(content: bytes, rng: random.Random) -> bytes:
    numbers = list(NUMBER.finditer(content))
    if not numbers:
        return _other_word(content, rng)
    start, end = rng.choice(numbers).span()
    return content[:start] + rng.choice(NUMBERS) + content[end:]


def _other_word(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + rng.choice(WORDS) + content[start + 4 :]


def _deleted(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randint(1, 40) :]


def _doubled(content: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(content))
    end = start + rng.randint(1, 200)
    return content[:end] + content[start:end] + content[end:]


def _cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def _swapped(content: bytes, rng: random.Random) -> bytes:
    """Two lines, or two parts between commas, in each other's place."""
    ends = [match.start() for match in FIELD.finditer(content)]
    if len(ends) < 4:
        return _flipped(content, rng)
    first, second = sorted(rng.sample(range(len(ends) - 1), 2))
    a, b, c, d = ends[first], ends[first + 1], ends[second], ends[second + 1]
    return content[:a] + content[c:d] + content[b:c] + content[a:b] + content[d:]


DAMAGES: Sequence[Callable[[bytes, random.Random], bytes]] = (
    _flipped, _other_number, _other_number, _other_word, _deleted, _doubled, _cut, _swapped,
)  # fmt: skip


def outcomes(contents: Sequence[bytes], read: Callable[[bytes], str]) -> Iterator[tuple[bytes, str]]:
    """Each file with what `read` returns of it, or the end of the process that read it; many share a process."""
    for start in range(0, len(contents), CHUNK):
        chunk = contents[start : start + CHUNK]
        while chunk:
            lines = _of_child(chunk, read)
            yield from zip(chunk, lines, strict=False)
            chunk = chunk[len(lines) :]


def _of_child(contents: Sequence[bytes], read: Callable[[bytes], str]) -> list[str]:
    """One outcome of each file, up to the first that ends the process."""
    inlet, outlet = os.pipe()
    if not (pid := os.fork()):
        try:
            os.close(inlet)
            faulthandler.disable()
            threadpool_limits(
                1, user_api="openmp"
            )  # threads of the parent are none of a fork, which would wait for them
            used = psutil.Process().memory_info().data  # what the limit counts, much of it never touched
            resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY_BYTES, used + MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            for content in contents:
                signal.alarm(SECONDS)
                try:
                    outcome = read(content)
                except BaseException:  # noqa: BLE001  it is the outcome
                    outcome = "raised " + traceback.format_exc()
                os.write(outlet, outcome.replace("\n", "|").encode() + b"\n")
        finally:
            os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as file:
        lines = file.read().decode(errors="replace").splitlines()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return lines if len(lines) == len(contents) else [*lines, f"ended with {status}"]
