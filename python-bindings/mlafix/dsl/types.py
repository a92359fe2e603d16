"""The types that declare a kernel's arguments: dtypes, dtype variables, tensors, scalars, and bases of the lse."""

from __future__ import annotations

import dataclasses
import numbers
import re
from typing import Any

from .._launcher.frames import without_frames
from ..errors import ArgumentError

__all__ = [
    "Base", "DType", "In", "InOut", "List", "Out", "Peers", "bf16", "bool_", "f16", "f32", "f4e2m1", "f8e4m3fn",
    "f8e5m2", "f8e8m0", "i32", "i64", "i8", "index", "u8",
]  # fmt: skip

WORDS = frozenset(__all__)
"""The names in this module that are words of the language."""

# INTEGER_BITS maps the integer dtypes of tensors to their bits, FLOATS lists the float dtypes, and DTYPES all dtypes of
# tensors (include/mlafix/DTypes.def).
INTEGER_BITS = {"i32": 32, "i64": 64, "i8": 8, "u8": 8}
FLOATS = ("bf16", "f16", "f32", "f8e4m3fn", "f8e5m2", "f8e8m0", "f4e2m1")
DTYPES = (*FLOATS, *INTEGER_BITS, "bool")
# Maps the names of dtypes in numpy and torch to their names in DTYPES.
OTHER_NAMES = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2", "int64": "i64",
               "int32": "i32", "int8": "i8", "uint8": "u8"}
_SCALARS = ("index", "i64", "i32", "f32", "bool")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Matches one word in the text that declares a tensor's dims: a dim such as n, n=2 or n<=8, or a product in parentheses.
_DIM = re.compile(r"\([^()]*\)|[^\s()]+|[()]")
_FACTOR = re.compile(r"[A-Z][A-Za-z0-9_]*|[1-9][0-9]*")


@dataclasses.dataclass(frozen=True)
class ScalarType:
    """A dtype. As an annotation, it declares a scalar argument (index, i64, i32, f32, bool_). A call of it in a kernel
    is a conversion.

    Args:
        name: the dtype's name in units.
        bound: the dim whose size a scalar argument of this type may not exceed; "" for none.
        from_tensor: true if a call may pass a scalar argument of this type in a tensor.
    """

    name: str
    bound: str = ""
    from_tensor: bool = False

    @without_frames
    def at_most(self, dim: str) -> ScalarType:
        """Returns this type for an argument between 0 and the size of a dim: ``rows: index.at_most("n")``. A launch
        with any other value raises ArgumentError."""
        if self.name not in ("index", "i64", "i32") or not _is_name(dim):
            raise ArgumentError(f'at_most: expected index, i64 or i32 and the name of a dim, got {self.name} and "{dim}"')
        return dataclasses.replace(self, bound=dim)

    @property
    def or_tensor(self) -> ScalarType:
        """This type for an argument that a call passes as a number or in a tensor: ``rows: index.or_tensor``. The
        tensor has one i32 element and lies on the kernel's device. A captured graph reads the tensor at each replay."""
        if self.name not in ("index", "i64", "i32"):
            raise ArgumentError(f"or_tensor: expected an integer type (index, i64, i32), got {self.name}")
        return dataclasses.replace(self, from_tensor=True)

    def __call__(self, value: Any) -> Any:
        raise ArgumentError(f"{self.name}(): expected to be called inside a kernel, got a call outside")

    def __repr__(self) -> str:
        bound = f'.at_most("{self.bound}")' if self.bound else ""
        return {"bool": "bool_"}.get(self.name, self.name) + bound + (".or_tensor" if self.from_tensor else "")


# The dtypes, and In, Out and the like below, are typed as Any, so that type checkers accept them as argument types.
bf16: Any = ScalarType("bf16")
f16: Any = ScalarType("f16")
f32: Any = ScalarType("f32")
f8e4m3fn: Any = ScalarType("f8e4m3fn")
f8e5m2: Any = ScalarType("f8e5m2")
f8e8m0: Any = ScalarType("f8e8m0")
f4e2m1: Any = ScalarType("f4e2m1")
i8: Any = ScalarType("i8")
i32: Any = ScalarType("i32")
i64: Any = ScalarType("i64")
u8: Any = ScalarType("u8")
index: Any = ScalarType("index")
bool_: Any = ScalarType("bool")


@dataclasses.dataclass(frozen=True)
class DType:
    """A dtype variable. Its dtype is chosen when the kernel is compiled. A call chooses it by the dtypes of its
    tensors.

    Args:
        name: a name that begins with an upper-case letter. Equal names stand for the same dtype.
        default: the dtype if neither a call nor a binding chooses one ("f32", or f32). With an integer default, the
            variable stands for integer dtypes. A body loads their elements as i64, and stores i32 or i64 values
            sign-extended or truncated. A variable whose elements a body only moves stands for every dtype. Any other
            variable stands for float dtypes, whose elements a body loads as f32.
    """

    name: str
    default: Any = None

    def __post_init__(self) -> None:
        if not _is_name(self.name) or not self.name[0].isupper():
            raise ArgumentError(f'DType: expected a name that begins with an upper-case letter, got "{self.name}"')
        if isinstance(self.default, ScalarType):
            object.__setattr__(self, "default", self.default.name)
        if self.default is not None and self.default not in DTYPES:
            raise ArgumentError(f"DType {self.name}: expected a default of {', '.join(DTYPES)}, got {self.default!r}")

    def __repr__(self) -> str:
        return self.name

    @property
    def example(self) -> str:
        """A dtype for which the variable may stand."""
        return self.default or "bf16"

    @property
    def is_integer(self) -> bool:
        return self.example in INTEGER_BITS


@dataclasses.dataclass(frozen=True)
class Base:
    """A base variable: the base of a log-sum-exp, which is chosen when the kernel is compiled.

    Args:
        name: a name that begins with an upper-case letter.
        default: the base if a call chooses none: "e", 2 or another Base. With `Base("PrefixBase", default=Base("B"))`,
            a kernel has a base of its own for one lse. If a call chooses only B, PrefixBase equals B.
    """

    name: str = "B"
    default: Any = "e"

    def __post_init__(self) -> None:
        if not _is_name(self.name) or not self.name[0].isupper():
            raise ArgumentError(f'Base: expected a name that begins with an upper-case letter, got "{self.name}"')
        if isinstance(self.default, Base):
            if self.name in self.default._names:
                raise ArgumentError(f"Base {self.name}: expected a default other than the base itself, got {self.default!r}")
        elif self.default not in ("e", 2, "2", None):
            raise ArgumentError(f'Base {self.name}: expected a default of "e", 2 or another Base, got {self.default!r}')

    @property
    def _names(self) -> list[str]:
        """The names of this base and of the bases that it defaults to."""
        return [self.name, *(self.default._names if isinstance(self.default, Base) else ())]

    def __repr__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class Dim:
    """One dim of a tensor: its name, and its constant size or its bound `most`, if it has one. Dims named "" are
    independent of all others. A name such as "(G 128)" is a product of two factors."""

    name: str
    size: int | None = None
    most: int | None = None

    @classmethod
    def of(cls, spelled: str) -> Dim:
        """Returns the dim for the spelling of a row's dim: a name, a product, or a size."""
        return cls(spelled, int(spelled) if spelled.isdigit() else None)

    @property
    def factors(self) -> tuple[str, ...]:
        """The two factors of a product; empty for other dims."""
        return tuple(self.name[1:-1].split()) if self.name.startswith("(") else ()

    @property
    def spelled(self) -> str:
        """The spelling of this dim in the type of a row: the product, else the size if it is constant, else the
        name."""
        return self.name if self.factors else str(self.size or self.name)

    def __str__(self) -> str:
        return (self.name or "_") + (f"={self.size}" if self.size else f"<={self.most}" if self.most else "")


@dataclasses.dataclass(frozen=True)
class TensorType:
    """The type of a tensor argument. In, Out and InOut create it."""

    access: str
    dtype: ScalarType | DType
    dims: tuple[Dim, ...]
    optional: bool = False
    fill_value: str = ""
    peers: bool = False
    most: int = 0
    tiles: str = ""

    @property
    def many(self) -> bool:
        """True if a call passes several tensors for the argument: those of all ranks, or a list. The first dim counts
        them."""
        return self.peers or self.most > 0

    def __repr__(self) -> str:
        dims = self.dims[1:] if self.many else self.dims
        text = f'{_WORDS[self.access]}[{self.dtype}, "{" ".join(map(str, dims))}"]'
        name = f', "{self.dims[0]}"' if self.most and self.dims[0].name else ""
        text = f"Peers[{text}]" if self.peers else f"List[{text}, {self.most}{name}]" if self.most else text
        text += f".fill({self.fill_value})" if self.fill_value else ""
        return text + (f'.swizzle("{self.tiles}")' if self.tiles else "") + (" | None" if self.optional else "")

    @without_frames
    def fill(self, value: Any) -> TensorType:
        """``Out[f32, "n"].fill(0.0)``: returns this type with a value for elements that no store writes. The value is a
        number, or ``identity``: -inf for the lse of a state, 0 for anything else. Filling an element costs as much as
        any other store to it."""
        dtype = self.dtype.example if isinstance(self.dtype, DType) else self.dtype.name
        is_identity = getattr(value, "name", None) == "identity"
        is_float = dtype in FLOATS
        fits = is_identity or isinstance(value, numbers.Real if is_float else numbers.Integral)
        if self.access != "write":
            raise ArgumentError(f"fill: expected a tensor declared with Out, got {self!r}")
        if not fits:
            raise ArgumentError(f"fill: expected {'a number' if is_float else 'an integer'} or identity, got {value!r}")
        text = "identity" if is_identity else repr(float(value) if is_float else int(value))
        return dataclasses.replace(self, fill_value=text)

    @without_frames
    def swizzle(self, tiles: str) -> TensorType:
        """``InOut[f8e4m3fn, "m G"].swizzle("128x4")``: returns this type for a tensor that is stored in tiles of 128
        rows and 4 columns, or of 8 rows and 4 columns for "8x4". Scales of block-scaled matrix products are stored like
        this. Rows are the first dim; columns are the other dims, flattened. A call passes a tensor whose number of
        rows, padding included, is a multiple of 128 or 8, and whose rows are a multiple of 4 elements apart."""
        if tiles not in ("128x4", "8x4") or self.many or len(self.dims) < 2:
            raise ArgumentError(f'swizzle: expected "128x4" or "8x4", for one tensor of two dims or more, got {tiles!r} for {self!r}')
        return dataclasses.replace(self, tiles=tiles)

    def __or__(self, other: None) -> TensorType:
        """``Out[f32, "H n"] | None``: returns this type for a tensor that a call may omit or pass as None. Loads of an
        omitted tensor give zeros, or the identity for a state. Stores to it do nothing."""
        if other is not None:
            raise ArgumentError(f"expected None beside |, which makes a tensor optional, got {other!r}")
        if self.many:
            what = "tensors of all ranks (Peers)" if self.peers else "a list of tensors (List)"
            raise ArgumentError(f"expected {what}, which cannot be omitted, got | None")
        return dataclasses.replace(self, optional=True)


def _is_name(text: object) -> bool:
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def _parse_dims(text: object) -> tuple[Dim, ...]:
    if not isinstance(text, str):
        raise ArgumentError(f'expected the names of the dims in one string, as "n H D", got {text!r}')
    dims = []
    for word in _DIM.findall(text):
        if word[0] in "()":
            dims.append(_parse_product(word))
            continue
        if "<" in word:
            dims.append(_parse_bounded(word))
            continue
        name, equals, size = word.partition("=")
        if name != "_" and not _is_name(name):
            raise ArgumentError(f'expected dims as "n H D", with sizes where they are fixed ("two=2"), got "{word}"')
        if equals and (not size.isdigit() or int(size) < 1):
            raise ArgumentError(f'expected a size of at least 1 after "{name}=", got "{size}"')
        dims.append(Dim("" if name == "_" else name, int(size) if equals else None))
    return tuple(dims)


def _parse_bounded(text: str) -> Dim:
    name, sign, most = text.partition("<=")
    if not sign or not _is_name(name) or name == "_" or name[0].isupper():
        raise ArgumentError(f'expected a bound of a dim with a lower-case name, as "b<=1024", got "{text}"')
    if not most.isdigit() or not 1 <= int(most) < 2**31:
        raise ArgumentError(f'expected a bound from 1 to 2147483647 after "{name}<=", got "{most}"')
    return Dim(name, most=int(most))


def _parse_product(text: str) -> Dim:
    factors = text[1:-1].split()
    if len(factors) != 2 or not all(_FACTOR.fullmatch(factor) for factor in factors):
        raise ArgumentError(f'expected two factors in parentheses, upper-case names or numbers, as "n (G 128)", got "{text}"')
    if all(factor.isdigit() for factor in factors):
        return Dim(f"({' '.join(factors)})", int(factors[0]) * int(factors[1]))
    return Dim(f"({' '.join(factors)})")


class _Access:
    """Declares a tensor argument by its dtype and the names of its dims.

    ``In[T, "n H D"]``: T is a dtype or a DType. In a call, dims of the same name must have the same size. A dim whose
    name begins with an upper-case letter is a compile-time constant; other dims are dynamic. ``two=2`` fixes a size,
    and ``_`` is a dim without a name. ``b<=1024`` bounds a dynamic dim, so that rows may lie along it; a launch with a
    larger size is refused. ``(G K)`` is a product: one dim of G groups of K elements. Each factor is an upper-case name
    or a number.
    """

    def __init__(self, access: str, meaning: str) -> None:
        self.access = access
        self.__doc__ = f"{meaning}\n\n{type(self).__doc__}"

    @without_frames
    def __getitem__(self, key: tuple[Any, Any]) -> TensorType:
        if not isinstance(key, tuple) or len(key) != 2:
            raise ArgumentError(f'expected a dtype and the dims, as In[f32, "n H D"], got {key!r}{self._hint(key)}')
        dtype, dims = key
        if not isinstance(dtype, DType) and not (isinstance(dtype, ScalarType) and dtype.name in DTYPES):
            name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", "") or str(dtype).rpartition(".")[2]
            name = OTHER_NAMES.get(name, name)
            quotes = ", without quotes" if isinstance(dtype, str) else ""
            hint = f"; write {name}, of mlafix.dsl{quotes}" if name in DTYPES else ""
            raise ArgumentError(f"expected one of {', '.join(DTYPES)} or a DType for the dtype, got {dtype!r}{hint}")
        return TensorType(self.access, dtype, _parse_dims(dims))

    def _hint(self, key: Any) -> str:
        """Returns the hint for dim names that are quoted separately; "" for other mistakes."""
        words = key[1:] if isinstance(key, tuple) else ()
        if not words or not all(isinstance(word, str) for word in words):
            return ""
        return f'; write {_WORDS[self.access]}[{key[0]!r}, "{" ".join(words)}"]'


# The name in Python of each kind of access.
_WORDS = {"read": "In", "write": "Out", "update": "InOut"}

In: Any = _Access("read", "A tensor that a kernel reads.")
Out: Any = _Access("write", "A tensor of which a kernel writes every element.")
InOut: Any = _Access("update", "A tensor that a kernel may read, and of which it writes some elements.")


class _Peers:
    """Declares an argument with one tensor for each rank of a group: ``Peers[In[T, "n H D"]]``. All of its tensors have
    the same dtype, sizes and strides.

    ``parts[r][t, h]`` is a row of rank r's tensor. ``ranks(parts)`` is the number of ranks, and the size of the dim
    "ranks". A kernel with such an argument is collective: all ranks launch it, and wait for each other on the device.

    With ``Peers[InOut[…]]``, ranks send rows to each other. A kernel stores to the ranks' tensors before
    ``exchange()``, and loads from the tensor of its own rank after ``exchange()``.
    """

    @without_frames
    def __getitem__(self, tensor: TensorType) -> TensorType:
        if not isinstance(tensor, TensorType) or tensor.access == "write" or tensor.optional or tensor.many:
            raise ArgumentError(f'Peers: expected tensors declared with In or InOut, as Peers[In[f32, "n D"]], got {tensor!r}')
        if not tensor.dims or any(dim.name == RANKS for dim in tensor.dims):
            raise ArgumentError(f'Peers: expected one dim or more, none named "{RANKS}", got {tensor!r}')
        return dataclasses.replace(tensor, dims=(Dim(RANKS), *tensor.dims), peers=True)


class _List:
    """Declares an argument with a list of tensors: ``List[In[T, "n H D"], 8]``. A call passes from 1 to 8 tensors of
    the same dtype, sizes and strides.

    ``parts[i][t, h]`` is a row of tensor i. ``len(parts)`` is the number of tensors, an index. Lists with the same
    third argument, as in ``List[In[f32, "n H"], 8, "k"]``, have the same number of tensors: the size of the dim "k".
    """

    @without_frames
    def __getitem__(self, key: Any) -> TensorType:
        usage = 'List: expected tensors of one dim or more that are only read and never None, and how many there are at most, as List[In[f32, "n D"], 8]'
        if not isinstance(key, tuple) or len(key) not in (2, 3):
            raise ArgumentError(f"{usage}, got {key!r}")
        tensor, most, name = (*key, "_")[:3]
        if not isinstance(tensor, TensorType) or tensor.access != "read" or tensor.optional or tensor.many or not tensor.dims:
            raise ArgumentError(f"{usage}, got {tensor!r}")
        if not isinstance(most, int) or isinstance(most, bool) or not 1 <= most <= MOST:
            raise ArgumentError(f"List: expected a bound from 1 to {MOST}, got {most!r}")
        (dim,) = _parse_dims(name) if _is_name(name) else (None,)
        if dim is None or any(name == other.name for other in tensor.dims):
            raise ArgumentError(f"List: expected the third item to name a dim that the tensors do not have, got {name!r}")
        return dataclasses.replace(tensor, dims=(dim, *tensor.dims), most=most)


# The name of the dim that counts the tensors of a Peers argument.
RANKS = "ranks"
# The most tensors in a list. It equals the most ranks in a group (MLAFIX_MAX_RANKS).
MOST = 72

Peers: Any = _Peers()
List: Any = _List()


def is_argument(annotation: object) -> bool:
    """True if an annotation declares one argument of a kernel."""
    return isinstance(annotation, TensorType) or (isinstance(annotation, ScalarType) and annotation.name in _SCALARS)


TENSOR_SUFFIX = "_at"
"""The suffix of the name of a tensor in which a call may pass a number: the tensor for the number `rows` is
`rows_at`."""
