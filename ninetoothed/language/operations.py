"""The operations of the language: one table, which printers, passes, counts and backends read.

A new operation is a row, and a test. A row says what the operation is, not how it is done: a backend
that prints finds its own function under the same name, and the NumPy backend has its functions by the
same names. An operation from elsewhere brings both along (`register`). No backend is known here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Literal

from ninetoothed.language import dtypes
from ninetoothed.language.derivatives import RULES, Rule
from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass

Kind = Literal[
    "element-wise",  # each element of the result is of those at its place
    "reduction",  # along a dimension, or all
    "scan",  # each element of the result is of those before it
    "sort",
    "rearrangement",  # the elements of one value, in another shape
    "movement",  # elements to other places, or of several values
    "creation",
    "product",
    "memory",  # through a pointer or a descriptor
    "atomic",
    "check",  # assertions and prints
    "hint",  # a value as it is, with a promise on it
    "program",  # of the grid
    "target",  # of the device
    "type",  # an annotation, or called to make a value
    "other",
]

Effect = Literal[
    "none",
    "reads",  # memory
    "keeps",  # stays where it is, and writes no memory
    "writes",  # memory, or whatever is not known
]

#: What is known of the result's shape, and which elements of it exist.
Shape = Literal[
    "unknown",
    "mapped",  # that of all operands of a function of the user's together
    "broadcast",  # that of all operands together
    "first",  # that of the first argument
    "like",  # that of the first argument, and of no other value
    "reduced",
    "scanned",  # that of the first argument, whose padding takes part as the identity
    "sorted",
    "counted",  # of a histogram: padding is left out
    "product",
    "transposed",
    "expanded",
    "broadcast to",
    "reshaped",
    "created",  # the first argument
    "vector",
    "number",
    "nothing",
    "broadcast both",  # of both operands together, twice
    "flipped",
    "joined",
    "interleaved",
    "concatenated",
    "halved",
    "gathered",
    "raveled",
    "atomic",
    "pointed",  # that of the pointers, which are the first argument
]

#: Which zero operands make an element-wise result zero; see `ninetoothed.passes.padding.validity.joined`.
Zero = Literal["none", "all", "product", "first", "choice"]


@dataclass(frozen=True, eq=False)
class Operation:
    """What is known of an operation, wherever it is used.

    Attributes:
        kind: what it is.
        name: as in Triton's language, with its namespace where that is no other name of the top:
            ``"exp"``, ``"libdevice.tanh"``.
        home: the module of Triton's language that has it: ``"core"``, ``"math"``, ``"random"``,
            ``"standard"``, ``"libdevice"``, ``"target_info"``; ``""`` for a member of values alone.
        shape: the rule for the result's shape and padding.
        effect: what evaluating it does besides giving a value.
        identity: what leaves the result as it is: in the padding of its operands, and as one of the
            two of an element-wise operation. ``"zero"``, ``"one"``, ``"lowest"``, ``"highest"``.
        zero: which zero operands make an element-wise result zero.
        results: how many values it gives.
        result: the element type of what it gives, where that is one whatever it is given.
        places: where its arguments stand.
        operands: what the values among its first arguments are called, by which a call may name them.
        gives_positions: whether a reduction gives places instead of values.
        is_transcendental: whether a special unit of the hardware computes it.
        member_of: ``"tile"`` or ``"pointer"`` where it is a member of such values too.
        is_in_gluon: whether the printer of Gluon knows it. That is a closed list: of what is tried.
        is_compiled_only: whether only a compiler can give it a meaning.
        triton: what it is in Triton where not its own name: another name of Triton's language, or a
            function under ``triton.jit``.
        numpy: what it is in NumPy where the backend has nothing by its name: of arrays in their
            common type where it is element-wise, else of the backend's values.
        derivative: its derivative rule (`ninetoothed.language.derivatives`), where it is element-wise
            and has one.
    """

    kind: Kind
    name: str = ""
    home: str = "core"
    shape: Shape = "unknown"
    effect: Effect = "none"
    identity: str | None = None
    zero: Zero = "none"
    results: int = 1
    result: DType | None = None
    places: Mapping[str, int] = field(default_factory=dict)
    operands: tuple[str, ...] = ()
    gives_positions: bool = False
    is_transcendental: bool = False
    member_of: str = ""
    is_in_gluon: bool = False
    is_compiled_only: bool = False
    triton: Any = None
    numpy: Callable[..., Any] | None = None
    derivative: Rule | None = None

    @property
    def is_elementwise(self) -> bool:
        """Whether it gives one value, each element of which is of those at its place."""
        return self.kind == "element-wise" and self.results == 1

    @property
    def takes_function(self) -> bool:
        """Whether a function of the user's combines elements."""
        return "combine_fn" in self.places

    @property
    def takes_constants(self) -> bool:
        """Whether its arguments but values must be known when it is compiled: they make a shape."""
        return "shape" in self.places or self.shape == "vector" or self.name == "static_range"

    @property
    def is_free(self) -> bool:
        """Whether it computes nothing: the elements of its first argument are the result's."""
        return self.kind in ("rearrangement", "hint") or self.shape == "first"


_INPUT, _X = ("input",), ("x",)


def _elementwise(home: str = "core", **properties: Any) -> Operation:
    operands = ("arg0", "arg1", "arg2") if home == "libdevice" else ("x",)
    properties = {"operands": operands, **properties}
    return Operation("element-wise", home=home, shape="broadcast", **properties)


def _reduction(identity: str, places: Mapping[str, int], **properties: Any) -> Operation:
    return Operation(
        "reduction",
        home="standard",
        shape="reduced",
        identity=identity,
        places=places,
        operands=_INPUT,
        member_of="tile",
        **properties,
    )


def _scan(identity: str, operand: str = "input", **properties: Any) -> Operation:
    properties |= {"operands": (operand,), "member_of": "tile"}
    return Operation("scan", home="standard", shape="scanned", identity=identity, **properties)


def _order(identity: str, **properties: Any) -> Operation:
    properties |= {"identity": identity, "operands": _X}
    return Operation("sort", home="standard", shape="sorted", **properties)


def _rearrangement(shape: Shape, **properties: Any) -> Operation:
    properties = {"operands": _INPUT, **properties}
    return Operation("rearrangement", shape=shape, member_of="tile", **properties)


def _movement(shape: Shape, operands: tuple[str, ...], **properties: Any) -> Operation:
    return Operation("movement", shape=shape, operands=operands, **properties)


_OF_INPUT: dict[str, Any] = {"operands": _INPUT, "member_of": "tile"}
_BOTH, _INPUTS = ("x", "y"), ("input", "other")
_SUM = {"axis": 1, "keep_dims": 2}
_EXTREMUM = {"axis": 1, "return_indices": 2, "keep_dims": 4}
_POSITION = {"axis": 1, "keep_dims": 3}
_IN_GLUON: dict[str, Any] = {"is_in_gluon": True}
_IN_GLUON_AND_TILE: dict[str, Any] = {**_IN_GLUON, "member_of": "tile"}
_SPECIAL: dict[str, Any] = {**_IN_GLUON_AND_TILE, "is_transcendental": True}
_OF_DESCRIPTOR: dict[str, Any] = {"home": "", "member_of": "descriptor"}

#: Names that have the same properties, and these.
_ROWS: tuple[tuple[str, Operation], ...] = (
    # Element by element.
    ("abs ceil floor", _elementwise("math", zero="all", **_IN_GLUON_AND_TILE)),
    ("erf sin sqrt", _elementwise("math", zero="all", **_SPECIAL)),
    ("cos exp exp2 log log2 rsqrt", _elementwise("math", **_SPECIAL)),
    ("sqrt_rn", _elementwise("math", zero="all", is_transcendental=True, member_of="tile")),
    ("sigmoid", _elementwise("standard", is_transcendental=True, member_of="tile")),
    ("fma", _elementwise("math", operands=("x", "y", "z"), **_IN_GLUON)),
    ("umulhi", _elementwise("math", operands=_BOTH)),
    ("div_rn fdiv", _elementwise("math", zero="first", operands=_BOTH)),
    ("add", _elementwise(zero="all", identity="zero", operands=_BOTH)),
    ("sub", _elementwise(zero="all", operands=_BOTH)),
    ("mul", _elementwise(zero="product", identity="one", operands=_BOTH)),
    ("maximum", _elementwise(zero="all", identity="lowest", operands=_BOTH, **_IN_GLUON)),
    ("minimum", _elementwise(zero="all", identity="highest", operands=_BOTH, **_IN_GLUON)),
    ("where", _elementwise(zero="choice", operands=("condition", "x", "y"), **_IN_GLUON)),
    ("clamp", _elementwise(operands=("x", "min", "max"))),
    ("cdiv", _elementwise("standard", member_of="tile", operands=("x", "div"))),
    ("logical_and logical_or", _elementwise("", member_of="tile")),
    (
        "cast",
        Operation("element-wise", shape="first", zero="all", operands=_INPUT, is_in_gluon=True),
    ),
    ("to", Operation("element-wise", home="", shape="first", zero="all", member_of="tile")),
    ("rand randint randn", _elementwise("random", operands=("seed", "offset"))),
    ("uint_to_uniform_float", _elementwise("random")),
    ("philox philox_impl rand4x randint4x randn4x", _elementwise("random", results=4)),
    ("pair_uniform_to_normal", _elementwise("random", results=2)),
    ("swizzle2d", _elementwise("standard", results=2)),
    ("map_elementwise", Operation("other", shape="mapped")),
    # Along dimensions.
    ("sum", _reduction("zero", _SUM, **_IN_GLUON)),
    ("reduce_or xor_sum", _reduction("zero", _SUM)),
    ("max", _reduction("lowest", _EXTREMUM, **_IN_GLUON)),
    ("min", _reduction("highest", _EXTREMUM, **_IN_GLUON)),
    ("argmax", _reduction("lowest", _POSITION, gives_positions=True)),
    ("argmin", _reduction("highest", _POSITION, gives_positions=True)),
    (
        "reduce",
        Operation(
            "reduction",
            shape="reduced",
            places={"axis": 1, "combine_fn": 2, "keep_dims": 3},
            operands=_INPUT,
            member_of="tile",
        ),
    ),
    ("cumsum", _scan("zero")),
    ("cumprod", _scan("one")),
    ("softmax", _scan("lowest", operand="x", is_transcendental=True)),
    (
        "associative_scan",
        Operation("scan", shape="scanned", places={"axis": 1, "combine_fn": 2}, **_OF_INPUT),
    ),
    ("sort", _order("last", places={"descending": 2}, member_of="tile")),
    ("bitonic_merge", _order("last", places={"descending": 2})),
    ("topk", _order("lowest")),
    ("histogram", Operation("other", shape="counted", places={"mask": 2}, **_OF_INPUT)),
    ("dot", Operation("product", shape="product", identity="zero", operands=_INPUTS)),
    ("dot_scaled", Operation("product")),
    # Shapes.
    ("permute trans", _rearrangement("transposed")),
    ("expand_dims", _rearrangement("expanded")),
    ("broadcast_to", _rearrangement("broadcast to", places={"shape": 1})),
    ("reshape", _rearrangement("reshaped", places={"shape": 1})),
    # Triton's own may put the elements in another order.
    ("view", _rearrangement("reshaped", places={"shape": 1}, triton="reshape")),
    ("ravel", _rearrangement("raveled", home="standard", operands=_X)),
    ("item", _rearrangement("unknown", home="", operands=())),
    ("broadcast", _movement("broadcast both", _INPUTS, results=2)),
    ("cat", _movement("concatenated", _INPUTS)),
    ("join", _movement("joined", ("a", "b"))),
    ("interleave", _movement("interleaved", ("a", "b"), home="standard")),
    ("flip", _movement("flipped", _X, home="standard", member_of="tile")),
    ("split", _movement("halved", ("a",), member_of="tile")),
    # As a method of a descriptor it reads memory.
    ("gather", _movement("gathered", ("src", "index"), effect="reads", member_of="tile")),
    # From nothing.
    ("full", Operation("creation", shape="created", places={"shape": 0})),
    ("zeros", Operation("creation", home="standard", shape="created", places={"shape": 0})),
    ("zeros_like", Operation("creation", home="standard", shape="like")),
    ("arange", Operation("creation", shape="vector")),
    ("program_id num_programs", Operation("program", shape="number")),
    # Memory.
    ("load", Operation("memory", effect="reads", shape="pointed")),
    ("load_tensor_descriptor", Operation("memory", effect="reads")),
    ("store", Operation("memory", effect="writes", shape="pointed", member_of="pointer")),
    ("store_tensor_descriptor", Operation("memory", effect="writes")),
    ("scatter", Operation("memory", effect="writes", **_OF_DESCRIPTOR)),
    ("advance make_block_ptr make_tensor_descriptor", Operation("memory")),
    (
        "atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor",
        Operation("atomic", effect="writes", shape="atomic", member_of="pointer"),
    ),
    # For the compiler and for people.
    (
        "max_constancy max_contiguous multiple_of",
        Operation("hint", shape="first", zero="all", operands=_INPUT),
    ),
    ("assume device_assert", Operation("check", shape="nothing", effect="keeps", identity="one")),
    (
        "device_print static_assert static_print",
        Operation("check", shape="nothing", effect="keeps"),
    ),
    ("debug_barrier", Operation("check", effect="writes")),
    ("inline_asm_elementwise", Operation("other", effect="writes", is_compiled_only=True)),
    ("str_to_ty", Operation("other")),
    ("condition constexpr dtype range slice static_range tuple", Operation("type")),
    (
        "block_type const constexpr_type float8e4b15 float8e4b8 float8e5b16 pi32_t pointer_type "
        "tensor tensor_descriptor tensor_descriptor_type tuple_type void",
        Operation("type", is_compiled_only=True),
    ),
    (
        "cuda_capability_geq current_target is_cuda is_hip is_hip_cdna3 is_hip_cdna4",
        Operation("target", home="target_info"),
    ),
    # The library of the device: all of it is element-wise.
    ("abs ceil floor nearbyint rint round trunc", _elementwise("libdevice", zero="all")),
    (
        "asin asinh atan atanh cbrt erf expm1 log1p sin sinh sqrt sqrt_rn tan tanh",
        _elementwise("libdevice", zero="all", is_transcendental=True),
    ),
    (
        """acos acosh atan2 cos cosh cospi erfc erfcinv erfcx erfinv exp exp10 exp2 fast_cosf
        fast_exp10f fast_expf fast_log10f fast_log2f fast_logf fast_powf fast_sinf fast_tanf
        fast_tanhf hypot lgamma log log10 log2 norm3d norm4d normcdf normcdfinv pow rcbrt rhypot
        rnorm3d rnorm4d rsqrt rsqrt_rn sinpi sqrt_rd sqrt_ru sqrt_rz tgamma""",
        _elementwise("libdevice", is_transcendental=True),
    ),
    (
        "cyl_bessel_i0 cyl_bessel_i1 j0 j1 jn y0 y1 yn",
        _elementwise("libdevice", is_transcendental=True, is_compiled_only=True),
    ),
    ("div_rn", _elementwise("libdevice", zero="first")),
    (
        """add_rd add_rn add_ru add_rz brev copysign div_rd div_ru div_rz double2float_rd
        double2float_rn double2float_ru double2float_rz fast_dividef fdim fma fma_rd fma_rn fma_ru
        fma_rz fmod hadd hiloint2double int2double_rn int2float_rd int2float_rn int2float_ru
        int2float_rz int_as_float ldexp ll2double_rd ll2double_rn ll2double_ru ll2double_rz
        ll2float_rd ll2float_rn ll2float_ru ll2float_rz logb longlong_as_double mul24 mul_rd mul_rn
        mul_ru mul_rz mulhi nextafter rcp64h rcp_rd rcp_rn rcp_ru rcp_rz remainder rhadd sad
        saturatef scalbn sub_rd sub_rn sub_ru sub_rz uint2double_rn uint2float_rd uint2float_rn
        uint2float_ru uint2float_rz uint_as_float ull2double_rd ull2double_rn ull2double_ru
        ull2double_rz ull2float_rd ull2float_rn ull2float_ru ull2float_rz""",
        _elementwise("libdevice"),
    ),
    ("finitef isfinited isinf isnan", _elementwise("libdevice", result=dtypes.bool)),
    (
        """byte_perm clz double2hiint double2int_rd double2int_rn double2int_ru double2int_rz
        double2loint double2uint_rd double2uint_rn double2uint_ru double2uint_rz ffs float2int_rd
        float2int_rn float2int_ru float2int_rz float2uint_rd float2uint_rn float2uint_ru
        float2uint_rz float_as_int float_as_uint ilogb popc signbit""",
        _elementwise("libdevice", result=dtypes.int32),
    ),
    (
        """double2ll_rd double2ll_rn double2ll_ru double2ll_rz double2ull_rd double2ull_rn
        double2ull_ru double2ull_rz double_as_longlong float2ll_rd float2ll_rn float2ll_ru
        float2ll_rz float2ull_rd float2ull_rn float2ull_ru float2ull_rz llrint llround""",
        _elementwise("libdevice", result=dtypes.int64),
    ),
)

#: The modules of Triton's language whose names are no names of its top.
_APART = frozenset({"libdevice", "target_info"})

#: Those whose names are also, and mean the same, at the top.
_ALIASES = frozenset({"core", "math", "random", "standard"})

#: What tiles have besides the operations that are members of them.
OF_TILES = frozenset({"T", "dtype", "ndim", "numel", "shape", "type"})

_OF_LIBDEVICE = _elementwise("libdevice")


def _full_name(name: str, home: str) -> str:
    return f"{home}.{name}" if home in _APART else name


#: The operations by name. A row is made with its name when it is asked for.
TABLE: dict[str, Operation] = {
    _full_name(name, row.home): row for names, row in _ROWS for name in names.split()
}


def find(name: str) -> Operation | None:
    """The operation of a name such as ``"exp"``, ``"math.exp"`` or ``"libdevice.tanh"``, or None.

    All of ``libdevice`` is element-wise, what only the installed Triton has in it too.
    """
    row = TABLE.get(name)
    if row is not None:
        if row.name != name:
            row = TABLE[name] = replace(row, name=name, derivative=RULES.get(name))
        return row
    plain = without_alias(name)
    if plain != name:
        return find(plain)
    return replace(_OF_LIBDEVICE, name=name) if name.startswith("libdevice.") else None


def without_alias(name: str) -> str:
    """A name as it is at the top of the language, where it is there: ``"math.exp"`` is ``"exp"``."""
    namespace, _, rest = name.rpartition(".")
    return rest if namespace in _ALIASES else name


def register(operation: Operation) -> None:
    """Adds an operation to the language: from here on ``ntl`` has it, on every backend.

    Args:
        operation: with its name. ``triton`` and ``numpy`` say what it is on the backends; without
            one of them it is refused, by name, where it is met there.

    Raises:
        ValueError: it has no name, or one that there is already.
    """
    name = operation.name
    if not name.isidentifier():
        raise ValueError(f"An operation needs an identifier as its name, but got {name!r}.")
    if name in TABLE:
        raise ValueError(f"There is an operation {name!r} already.")
    TABLE[name] = operation


def names(holds: Callable[[Operation], bool]) -> Iterator[str]:
    """The names of the operations of which something holds; ``name`` is not to be asked for."""
    return (name for name, row in TABLE.items() if holds(row))


def identity_of(name: str) -> str:
    """What leaves the result of an operation as it is; `KeyError` where nothing is known to."""
    found = find(name)
    if found is None or found.identity is None:
        raise KeyError(name)
    return found.identity
