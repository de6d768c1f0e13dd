"""Backward kernels, derived from forward ones: reverse mode over the Program.

The adjoint of a load is a store that accumulates, of a store a load, with the same accesses; so the
forward arrangement is used again, and the masks come with it. What comes out is an application in the
language and its arrangement, a kernel like any other.

- ``tape``: the steps of a program that depend on the inputs to be derived by, in order
- ``arguments``: the arguments of calls, as far as a derivative needs them
- ``values``, ``record``: from a Program to a tape; expressions, then statements
- ``rounds``: which tiles the rounds of loops have
- ``positions``: which elements of a tile a position chooses
- ``rules``: what an operation's gradient gives its operands
- ``reverse``: from a tape to the statements that compute gradients
- ``accesses``: which programs share an input's elements
- ``exchange``: dimensions of the grid that an input's elements do not differ in, as loops
- ``parts``: sums over programs that are left in parts, added up
- ``absent``: inputs of which a store takes what is computed where they have no element
- ``arranging``: the gradients' tensors, arranged as those that they are gradients of
- ``text``, ``redefined``: statements as an application's source, and the kernel of it
- ``derive``: all of it

A kernel over a batch is made of the same parts: ``batched``.
"""
