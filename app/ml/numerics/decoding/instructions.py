"""Processor instructions that numba has no name for, written for LLVM. Words are unsigned, of 64 bits."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

from app.ml.numerics.jit import Kernel
from app.ml.numerics.kernel_digest import digest_of, parts_of

P = ParamSpec("P")
R = TypeVar("R")


class Instruction(Kernel[P, R]):
    """A function for kernels to call: in plain Python, and as `emit` writes it for LLVM.

    emit: of the module `ir`, the builder, and the arguments; of a text its address.
    """

    def __init__(self, python: Callable[P, R], emit: Any, results: int) -> None:
        super().__init__(python)
        self._emit = emit
        self._results = results

    def digest(self) -> str:
        return digest_of([super().digest(), *parts_of(self._emit.__code__), str(self._results)])

    def _compile(self) -> Any:
        ir, types = import_module("llvmlite.ir"), import_module("numba.core.types")  # with the first call, as numba
        intrinsic = import_module("numba.core.extending").intrinsic
        several = self._results > 1
        result = types.UniTuple(types.uint64, self._results) if several else types.uint64

        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            plain = [
                value
                if isinstance(kind, types.Integer | types.Boolean)
                else context.make_array(kind)(context, builder, value).data
                for kind, value in zip(signature.args, values, strict=True)
            ]
            emitted = self._emit(ir, builder, *plain)
            return context.make_tuple(builder, result, emitted) if several else emitted

        def unary(_: Any, a: Any) -> Any:
            return (a if a == types.boolean else result)(a), emit

        def two(_: Any, a: Any, b: Any) -> Any:
            return result(a, b), emit

        def four(_: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
            return result(a, b, c, d), emit

        function: Any = self.python
        return intrinsic({1: unary, 2: two, 4: four}[function.__code__.co_argcount])


def instruction(emit: Any, results: int = 1) -> Callable[[Callable[P, R]], Instruction[P, R]]:
    """`results`: how many words it gives."""
    return lambda python: Instruction(python, emit, results)


def _load(ir: Any, builder: Any, text: Any, position: Any) -> Any:
    return _loaded(ir, builder, text, position, ir.IntType(64))


def _loaded(ir: Any, builder: Any, text: Any, position: Any, kind: Any) -> Any:  # noqa: ARG001
    return builder.load(builder.bitcast(builder.gep(text, [position]), kind.as_pointer()), align=1)


@instruction(_load)
def eight_bytes(text: bytes | bytearray, position: Any) -> Any:
    """The eight bytes from a place, the first lowest."""
    return int.from_bytes(text[position : position + 8], "little")


def _mark(ir: Any, builder: Any, text: Any, position: Any) -> Any:
    many = ir.VectorType(ir.IntType(8), 32)
    highest = builder.add(
        _loaded(ir, builder, text, position, many), ir.Constant(many, [127 - 57] * 32)
    )  # the digits are
    marks = builder.icmp_signed("<", highest, ir.Constant(many, [127 - 9] * 32))
    return builder.zext(builder.bitcast(marks, ir.IntType(32)), ir.IntType(64))


@instruction(_mark)
def not_digits(text: bytes, position: Any) -> Any:
    """A bit for each of 32 bytes from a place, the first lowest: whether it is no digit."""
    return sum(1 << k for k, byte in enumerate(text[position : position + 32]) if not 48 <= byte <= 57)


def _digits(ir: Any, builder: Any, *arguments: Any) -> Any:
    text, end, behind, total = arguments
    word, many = ir.IntType(64), ir.VectorType(ir.IntType(8), 32)

    def lasts(count: Any) -> Any:
        """Which of 32 are the last so many of them."""
        small = builder.trunc(count, ir.IntType(8))
        vector = builder.insert_element(ir.Constant(many, ir.Undefined), small, ir.Constant(word, 0))
        every = builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(ir.IntType(32), 32), [0] * 32))
        return builder.icmp_signed("<", ir.Constant(many, list(range(31, -1, -1))), every)

    def paired(values: Any, bits: int, base: int) -> Any:
        """Neighbours, the first of them base times, together."""
        kind = ir.VectorType(ir.IntType(2 * bits), 128 // bits)
        product = builder.mul(builder.bitcast(values, kind), ir.Constant(kind, [(base << bits) + 1] * (128 // bits)))
        return builder.lshr(product, ir.Constant(kind, [bits] * (128 // bits)))

    back = [builder.sub(end, ir.Constant(word, k)) for k in (32, 33)]
    here, beyond_the_point = (_loaded(ir, builder, text, place, many) for place in back)
    joined = builder.select(lasts(behind), here, beyond_the_point)
    digits = builder.sub(joined, ir.Constant(many, [48] * 32))
    digits = builder.select(lasts(total), digits, ir.Constant(many, [0] * 32))
    fours = builder.bitcast(paired(paired(digits, 8, 10), 16, 100), ir.VectorType(word, 4))
    sums = [builder.extract_element(fours, ir.Constant(word, k)) for k in (1, 2, 3)]
    scale, half = ir.Constant(word, (10_000 << 32) + 1), ir.Constant(word, 32)
    return [builder.lshr(builder.mul(each, scale), half) for each in sums]


@instruction(_digits, results=3)
def digits_before(text: bytes, end: Any, behind: Any, total: Any) -> Any:
    """Up to 24 digits that end at a place, eight by eight, when the last of them, so many, are behind a point."""
    whole = text[end - total - 1 : end - behind - 1] if total > behind else b""
    digits = int(whole + text[end - behind : end])
    return digits // 10**16, digits // 10**8 % 10**8, digits % 10**8


def _multiply(ir: Any, builder: Any, a: Any, b: Any) -> Any:
    word, wide = ir.IntType(64), ir.IntType(128)
    product = builder.mul(builder.zext(a, wide), builder.zext(b, wide))
    return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word), builder.trunc(product, word)


@instruction(_multiply, results=2)
def product(a: Any, b: Any) -> Any:
    """The upper and the lower 64 of the 128 bits of a·b."""
    return a * b >> 64, a * b % 2**64


def _count_leading(ir: Any, builder: Any, word: Any) -> Any:
    return builder.ctlz(word, ir.Constant(ir.IntType(1), 0))


@instruction(_count_leading)
def leading_zeros(word: Any) -> Any:
    """Bits before the highest that is set; 64 of 0."""
    return 64 - int(word).bit_length()


def _count_trailing(ir: Any, builder: Any, word: Any) -> Any:
    return builder.cttz(word, ir.Constant(ir.IntType(1), 0))


@instruction(_count_trailing)
def trailing_zeros(word: Any) -> Any:
    """Bits below the lowest that is set; 64 of 0."""
    return (int(word) & -int(word)).bit_length() - 1 if word else 64


def _expect(ir: Any, builder: Any, truth: Any) -> Any:
    bit = ir.IntType(1)
    expect = builder.module.declare_intrinsic("llvm.expect", [bit], ir.FunctionType(bit, [bit, bit]))
    return builder.call(expect, [truth, ir.Constant(bit, 0)])


@instruction(_expect)
def unlikely(truth: Any) -> Any:
    """The same; the compiler keeps what follows from it out of the way."""
    return truth
