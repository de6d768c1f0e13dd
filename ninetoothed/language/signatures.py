"""What the functions of the language are called with: one table, beside that of the operations.

Parameters are Triton's, in their order. ``axis=`` may be left out; after ``*shape``, which takes any
number, all are given by name. No backend is known here.
"""

from __future__ import annotations

import functools
from collections.abc import Collection

from ninetoothed.errors import near
from ninetoothed.language import operations
from ninetoothed.records import dataclass

_EXTREMUM = "input axis= return_indices= return_indices_tie_break_left= keep_dims="
_HINTS = "num_stages= loop_unroll_factor= disallow_acc_multi_buffer= flatten= warp_specialize="
_ATOMIC = "atomic_add atomic_and atomic_max atomic_min atomic_or atomic_xchg atomic_xor"

#: Names of the language by what they take.
_TAKEN = {
    "x": "abs ceil floor erf sin sqrt cos exp exp2 log log2 rsqrt sqrt_rn sigmoid "
    "uint_to_uniform_float",
    "x y": "umulhi div_rn",
    "x y z": "fma",
    "x y ieee_rounding=": "fdiv",
    "x y sanitize_overflow=": "add sub mul",
    "x y propagate_nan=": "maximum minimum",
    "x min max propagate_nan=": "clamp",
    "condition x y": "where",
    "x div": "cdiv",
    "input other": "logical_and logical_or broadcast",
    "input dtype fp_downcast_rounding= bitcast=": "cast to",
    "seed offset n_rounds=": "rand randint randn randint4x randn4x",
    "seed offsets n_rounds=": "rand4x",
    "seed c0 c1 c2 c3 n_rounds=": "philox",
    "c0 c1 c2 c3 k0 k1 n_rounds=": "philox_impl",
    "u1 u2": "pair_uniform_to_normal",
    "i j size_i size_j size_g": "swizzle2d",
    "scalar_fn *args pack=": "map_elementwise",
    "input axis= keep_dims= dtype=": "sum",
    "input axis keep_dims=": "reduce_or",
    "input axis= keep_dims=": "xor_sum",
    _EXTREMUM: "max min",
    "input axis tie_break_left= keep_dims=": "argmax argmin",
    "input axis combine_fn keep_dims=": "reduce",
    "input axis= reverse= dtype=": "cumsum",
    "input axis= reverse=": "cumprod",
    "input axis combine_fn reverse=": "associative_scan",
    "x dim= keep_dims= ieee_rounding=": "softmax",
    "x dim= descending=": "sort bitonic_merge",
    "x k dim=": "topk",
    "input num_bins mask=": "histogram",
    "input other acc= input_precision= allow_tf32= max_num_imprecise_acc= out_dtype=": "dot",
    "lhs lhs_scale lhs_format rhs rhs_scale rhs_format acc= fast_math= lhs_k_pack= rhs_k_pack= "
    "out_dtype=": "dot_scaled",
    "input *dims": "permute trans",
    "input axis": "expand_dims",
    "input *shape": "broadcast_to view",
    "input *shape can_reorder=": "reshape",
    "x can_reorder=": "ravel",
    "input": "item zeros_like",
    "input other can_reorder=": "cat",
    "a b": "join interleave",
    "x dim=": "flip",
    "a": "split",
    "src index axis": "gather",
    "shape value dtype": "full",
    "shape dtype": "zeros",
    "start end": "arange",
    "axis": "program_id num_programs",
    "pointer mask= other= boundary_check= padding_option= cache_modifier= eviction_policy= "
    "volatile=": "load",
    "pointer value mask= boundary_check= cache_modifier= eviction_policy=": "store",
    "desc offsets": "load_tensor_descriptor",
    "desc offsets value": "store_tensor_descriptor",
    "base offsets": "advance",
    "base shape strides offsets block_shape order": "make_block_ptr",
    "base shape strides block_shape padding_option=": "make_tensor_descriptor",
    "pointer val mask= sem= scope=": _ATOMIC,
    "pointer cmp val sem= scope=": "atomic_cas",
    "input values": "max_constancy max_contiguous multiple_of",
    "cond": "assume",
    "cond msg= mask=": "device_assert",
    "cond msg=": "static_assert",
    "prefix *args hex=": "device_print",
    "*values sep= end= file= flush=": "static_print",
    "": "debug_barrier target_info.current_target target_info.is_cuda target_info.is_hip "
    "target_info.is_hip_cdna3 target_info.is_hip_cdna4",
    "asm constraints args dtype is_pure pack": "inline_asm_elementwise",
    "name c": "str_to_ty",
    "value": "constexpr",
    "arg1 disable_licm=": "condition",
    f"arg1 arg2= step= {_HINTS} disable_licm=": "range",
    "arg1 arg2= step=": "static_range",
    "major minor=": "target_info.cuda_capability_geq",
    "name": "dtype",
    "args type=": "tuple",
    "start stop step": "slice",
    "element_ty shape": "block_type",
    "element_ty address_space= const=": "pointer_type",
    "types fields=": "tuple_type",
    "handle type": "tensor",
}

#: The words that a parameter may be, "" and None aside.
_WORDS = {
    "sem": "relaxed acquire release acq_rel",
    "scope": "gpu cta sys",
    "eviction_policy": "evict_first evict_last",
    "padding_option": "zero nan",
    "input_precision": "tf32 tf32x3 ieee bf16x3 bf16x6",
    "fp_downcast_rounding": "rtne rtz",
}
_CACHED = {"load": ".ca .cg .cv", "store": ".wb .cg .cs .wt"}

#: Functions of the device's library by how many operands they take, if not one.
_OPERANDS = {
    2: """add_rd add_rn add_ru add_rz atan2 copysign div_rd div_rn div_ru div_rz fast_dividef
    fast_powf fdim fmod hadd hiloint2double hypot jn ldexp mul24 mul_rd mul_rn mul_ru mul_rz mulhi
    nextafter pow remainder rhadd rhypot scalbn sub_rd sub_rn sub_ru sub_rz yn""",
    3: "byte_perm fma fma_rd fma_rn fma_ru fma_rz norm3d rnorm3d sad",
    4: "norm4d rnorm4d",
}


@dataclass(frozen=True)
class Signature:
    """What a function is called with.

    Attributes:
        names: its parameters, in order; `*` for any number of them.
        needed: those that have to be given.
        rest: how many stand before ``*``; None where there is no such parameter.
    """

    names: tuple[str, ...]
    needed: tuple[str, ...]
    rest: int | None = None

    def bound(self) -> Signature:
        """That of the method, whose first argument is the value that it is called on."""
        first, *names = self.names
        needed = tuple(name for name in self.needed if name != first)
        return Signature(tuple(names), needed, None if self.rest is None else self.rest - 1)

    def problem(self, count: int, keywords: Collection[str]) -> str | None:
        """What is wrong with a call of so many arguments and these keywords; None where nothing is."""
        takes = ", ".join(f"`{name}`" for name in self.names) or "no arguments"
        places = self.names if self.rest is None else self.names[: self.rest]
        if self.rest is None and count > len(places):
            return f"takes {takes}, but got {count} argument{'s' * (count > 1)}."
        given = places[:count]
        known = [name for name in self.names if not name.startswith("*")]
        for name in keywords:
            if name not in known:
                return f"takes {takes}, but got `{name}`.{near(name, known)}"
            if name in given:
                return f"got `{name}` twice, at its place and by name."
        for name in self.needed:
            if name not in given and name not in keywords:
                needed = ", ".join(f"`{each}`" for each in self.needed)
                return f"needs {needed}, but got no `{name}`."
        return None


def words_of(name: str, parameter: str) -> tuple[str, ...]:
    """What a parameter of a function may say, where there are a few words to choose from."""
    words = _CACHED.get(name) if parameter == "cache_modifier" else _WORDS.get(parameter)
    return tuple((words or "").split())


def _signature(text: str) -> Signature:
    parts = text.split()
    names = tuple(part.rstrip("=") for part in parts)
    needed = tuple(part for part in parts if not part.endswith("=") and not part.startswith("*"))
    stars = [place for place, part in enumerate(parts) if part.startswith("*")]
    return Signature(names, needed, stars[0] if stars else None)


@functools.cache
def _table() -> dict[str, str]:
    return {name: taken for taken, names in _TAKEN.items() for name in names.split()}


@functools.cache
def _table_of_libdevice() -> dict[str, str]:
    return {
        f"libdevice.{name}": " ".join(f"arg{place}" for place in range(count))
        for count, names in _OPERANDS.items()
        for name in names.split()
    }


@functools.cache
def signature_of(name: str) -> Signature | None:
    """What a function of the language is called with; None of what is not known here."""
    plain = operations.without_alias(name)
    table = _table_of_libdevice() if plain.startswith("libdevice.") else _table()
    taken = table.get(name) or table.get(plain)
    if taken is None and plain.startswith("libdevice.") and plain in operations.TABLE:
        taken = "arg0"
    return None if taken is None and plain not in table else _signature(taken or "")
