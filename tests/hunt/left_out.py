"""The rows of the table of operations that the hunt does not draw, and why.

The device's library is left out as a whole: `tests/numpy/language` compares it, and no function
of it knows of padding.
"""

from __future__ import annotations

_REASONS = {
    "has no value of its own: a type, or what a type is made of": """
        block_type condition const constexpr constexpr_type dtype float8e4b15 float8e4b8 float8e5b16
        pi32_t pointer_type slice str_to_ty tensor tensor_descriptor tensor_descriptor_type tuple
        tuple_type void""",
    "addresses memory by pointer or descriptor: the user's own masks": """
        advance load load_tensor_descriptor make_block_ptr make_tensor_descriptor scatter store
        store_tensor_descriptor""",
    "is random: its bits are tested beside Triton's": """
        pair_uniform_to_normal philox philox_impl rand rand4x randint randint4x randn randn4x
        uint_to_uniform_float""",
    "gives what depends on the device or on how programs are numbered": """
        num_programs program_id swizzle2d target_info.cuda_capability_geq
        target_info.current_target target_info.is_cuda target_info.is_hip target_info.is_hip_cdna3
        target_info.is_hip_cdna4""",
    "checks or prints": """
        assume debug_barrier device_assert device_print static_assert static_print""",
    "is a compiler's alone, or takes what only a device has": """
        dot_scaled inline_asm_elementwise""",
    "has cases of its own: tests/contract/application/test_atomics.py": """
        atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor""",
    "is not drawn yet": """
        bitonic_merge map_elementwise static_range""",
}

LEFT_OUT: dict[str, str] = {
    name: reason for reason, names in _REASONS.items() for name in names.split()
}
