"""A Llama whose every operator is a kernel of ours: `python -m examples.llama` generates with it.

`config` and `weights` read what `transformers` writes; `products`, `attention` and `sampling` are the kernels,
`cache` and `model` put them together, `parallel` shares a model among processes, and `replace` puts the same
kernels into a model of `transformers`. `in_pytorch` is the same decoder in PyTorch's modules, to compare with.
"""
