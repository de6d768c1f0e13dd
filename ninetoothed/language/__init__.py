"""``ntl``: the names of Triton's language, neutral.

Every public function, type and constant of Triton 3.6's language stands here under the same name,
as a marker that a backend gives its meaning to: one prints it, another runs it as Python
(`ninetoothed.evaluation`). Element types are `ninetoothed.language.dtypes`' objects. No backend is known here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ninetoothed.errors import near as _near
from ninetoothed.evaluation import EVALUATOR as _EVALUATOR
from ninetoothed.language import dtypes as _dtypes

_FUNCTIONS = """
    abs add advance arange argmax argmin associative_scan assume atomic_add atomic_and atomic_cas
    atomic_max atomic_min atomic_or atomic_xchg atomic_xor bitonic_merge broadcast broadcast_to
    cast cat cdiv ceil clamp cos cumprod cumsum debug_barrier device_assert device_print div_rn dot
    dot_scaled erf exp exp2 expand_dims fdiv flip floor fma full gather histogram
    inline_asm_elementwise interleave join load load_tensor_descriptor log log2 make_block_ptr
    make_tensor_descriptor map_elementwise max max_constancy max_contiguous maximum min minimum mul
    multiple_of num_programs pair_uniform_to_normal permute philox philox_impl program_id rand
    rand4x randint randint4x randn randn4x ravel reduce reduce_or reshape rsqrt sigmoid sin softmax
    sort split sqrt sqrt_rn static_assert static_print store store_tensor_descriptor str_to_ty sub
    sum swizzle2d topk trans uint_to_uniform_float umulhi view where xor_sum zeros zeros_like
""".split()

_TYPES = """
    block_type condition const constexpr constexpr_type dtype float8e4b15 float8e4b8 float8e5b16
    pi32_t pointer_type range slice static_range tensor tensor_descriptor tensor_descriptor_type
    tuple tuple_type void
""".split()

_ELEMENT_TYPES = """
    bfloat16 float16 float32 float64 float8e4nv float8e5 int1 int16 int32 int64 int8 uint16 uint32
    uint64 uint8
""".split()

_MATH = """
    abs ceil cos div_rn erf exp exp2 fdiv floor fma log log2 rsqrt sin sqrt sqrt_rn umulhi
""".split()

_RANDOM = """
    pair_uniform_to_normal philox philox_impl rand rand4x randint randint4x randn randn4x
    uint_to_uniform_float
""".split()

_STANDARD = """
    argmax argmin bitonic_merge cdiv cumprod cumsum flip interleave max min ravel reduce_or sigmoid
    softmax sort sum swizzle2d topk xor_sum zeros zeros_like
""".split()

_TARGET_INFO = """
    cuda_capability_geq current_target is_cuda is_hip is_hip_cdna3 is_hip_cdna4
""".split()

_LIBDEVICE = """
    abs acos acosh add_rd add_rn add_ru add_rz asin asinh atan atan2 atanh brev byte_perm cbrt ceil
    clz copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 div_rd div_rn div_ru div_rz
    double2float_rd double2float_rn double2float_ru double2float_rz double2hiint double2int_rd
    double2int_rn double2int_ru double2int_rz double2ll_rd double2ll_rn double2ll_ru double2ll_rz
    double2loint double2uint_rd double2uint_rn double2uint_ru double2uint_rz double2ull_rd
    double2ull_rn double2ull_ru double2ull_rz double_as_longlong erf erfc erfcinv erfcx erfinv exp
    exp10 exp2 expm1 fast_cosf fast_dividef fast_exp10f fast_expf fast_log10f fast_log2f fast_logf
    fast_powf fast_sinf fast_tanf fast_tanhf fdim ffs finitef float2int_rd float2int_rn
    float2int_ru float2int_rz float2ll_rd float2ll_rn float2ll_ru float2ll_rz float2uint_rd
    float2uint_rn float2uint_ru float2uint_rz float2ull_rd float2ull_rn float2ull_ru float2ull_rz
    float_as_int float_as_uint floor fma fma_rd fma_rn fma_ru fma_rz fmod hadd hiloint2double hypot
    ilogb int2double_rn int2float_rd int2float_rn int2float_ru int2float_rz int_as_float isfinited
    isinf isnan j0 j1 jn ldexp lgamma ll2double_rd ll2double_rn ll2double_ru ll2double_rz
    ll2float_rd ll2float_rn ll2float_ru ll2float_rz llrint llround log log10 log1p log2 logb
    longlong_as_double mul24 mul_rd mul_rn mul_ru mul_rz mulhi nearbyint nextafter norm3d norm4d
    normcdf normcdfinv popc pow rcbrt rcp64h rcp_rd rcp_rn rcp_ru rcp_rz remainder rhadd rhypot rint
    rnorm3d rnorm4d round rsqrt rsqrt_rn sad saturatef scalbn signbit sin sinh sinpi sqrt sqrt_rd
    sqrt_rn sqrt_ru sqrt_rz sub_rd sub_rn sub_ru sub_rz tan tanh tgamma trunc uint2double_rn
    uint2float_rd uint2float_rn uint2float_ru uint2float_rz uint_as_float ull2double_rd
    ull2double_rn ull2double_ru ull2double_rz ull2float_rd ull2float_rn ull2float_ru ull2float_rz
    y0 y1 yn
""".split()


class LanguageFunction:
    """A name of the language, whose meaning a backend gives. Immutable; one object a name.

    Attributes:
        name: as in Triton's language, dotted where it is in a namespace: ``"exp"``,
            ``"libdevice.tanh"``, ``"PropagateNan.ALL"``.
        kind: ``"function"``, ``"type"`` (an annotation, or called to make a value) or
            ``"constant"``.
    """

    __slots__ = ("kind", "name")

    name: str
    kind: str

    def __init__(self, name: str, kind: str = "function") -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "kind", kind)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self!r} cannot be changed.")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it as Python, on tiles and numbers, by the backend that can.

        Raises:
            NineToothedError: that backend does not have it, or it cannot take the arguments.
        """
        return _EVALUATOR.function(self.name)(*arguments, **keywords)

    def __repr__(self) -> str:
        return f"ntl.{self.name}"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return (_by_dotted_name, (self.name,))


class LanguageNamespace:
    """A part of the language with names of its own, such as ``ntl.libdevice``."""

    def __init__(self, name: str, members: Mapping[str, Any]) -> None:
        self.__dict__.update(members)
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return _unknown(name, self._name, [key for key in self.__dict__ if key != "_name"])

    def __repr__(self) -> str:
        return f"ntl.{self._name}"

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        return (_by_dotted_name, (self._name,))


def _by_dotted_name(name: str) -> Any:
    found: Any = None
    for index, part in enumerate(name.split(".")):
        found = _lookup(part) if index == 0 else getattr(found, part)
    return found


def _lookup(name: str) -> Any:
    return _MEMBERS[name] if name in _MEMBERS else __getattr__(name)


def _markers(names: Iterable[str], kind: str = "function", prefix: str = "") -> dict[str, Any]:
    return {name: LanguageFunction(prefix + name, kind) for name in names}


def _namespace(name: str, functions: Iterable[str], **others: Any) -> LanguageNamespace:
    return LanguageNamespace(name, {**_markers(functions, prefix=f"{name}."), **others})


def _members() -> dict[str, Any]:
    libdevice = _namespace("libdevice", _LIBDEVICE)
    device = LanguageNamespace("extra.cuda", {"libdevice": libdevice})
    return {
        **_markers(_FUNCTIONS),
        **_markers(_TYPES, "type"),
        **{name: _dtypes.by_name(name) for name in _ELEMENT_TYPES},
        "TRITON_MAX_TENSOR_NUMEL": 1048576,
        "PropagateNan": LanguageNamespace(
            "PropagateNan", _markers(("ALL", "NONE"), "constant", "PropagateNan.")
        ),
        "libdevice": libdevice,
        "core": _namespace("core", sorted(set(_FUNCTIONS) - {*_MATH, *_RANDOM, *_STANDARD})),
        "math": _namespace("math", _MATH),
        "random": _namespace("random", _RANDOM),
        "standard": _namespace("standard", _STANDARD),
        "target_info": _namespace("target_info", _TARGET_INFO),
        "extra": LanguageNamespace(
            "extra",
            {
                "libdevice": libdevice,
                "cuda": device,
                "hip": LanguageNamespace("extra.hip", {"libdevice": libdevice}),
            },
        ),
    }


def _unknown(name: str, namespace: str, known: Iterable[str]) -> Any:
    """A marker for a name that only the installed Triton has, else an `AttributeError`."""
    path = f"{namespace}.{name}" if namespace else name
    # A private one was met in a function of Triton's own; nobody else should cause an import.
    is_met = name.startswith("_") and bool(namespace) and "triton.language" in sys.modules
    if is_met or not name.startswith("_"):
        kind = _kind_in_triton(path)
        if kind is not None:
            return LanguageFunction(path, kind)
    raise AttributeError(
        f"Triton's language has no {path!r}.{_near(name, known)}",
        name=name,
    )


def _kind_in_triton(path: str) -> str | None:
    """What the installed Triton has under ``path``; None where it has nothing or is absent."""
    try:
        import triton.language
        from triton.language.extra import libdevice
    except ImportError:
        return None
    parts = path.split(".")
    found: Any = triton.language
    if parts[0] == "libdevice":
        found, parts = libdevice, parts[1:]
    for part in parts:
        found = getattr(found, part, None)
    if found is None or type(found).__name__ == "module":
        return None
    if isinstance(found, type):
        return "type"
    return "function" if callable(found) else "constant"


def __getattr__(name: str) -> Any:
    return _unknown(name, "", _MEMBERS)


_MEMBERS = _members()

__all__ = ["LanguageFunction", "LanguageNamespace", *_MEMBERS]  # noqa: PLE0604

# From here on `max`, `range` and others of Python's names mean the language's in this module.
globals().update(_MEMBERS)
