"""Sizes that meet are equal: where the loaded tiles of an application meet, and what a call's numbers say of it.

`walk` lists the places, with `values` for expressions and `rounds` for loops that ask for their round;
`limits` says up to where a tile's elements exist. `agreement` compares with a call's numbers, `flattened` and
`apart` where positions are no sums or not the same ones; `requirements` has it as expressions, for C; `uneven` tells
what all this leaves alone.
"""
