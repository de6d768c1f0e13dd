"""Operators in CUDA graphs: a first call that is captured, and forward and backward as graphs."""

from __future__ import annotations

import itertools

import pytest
import torch

import ninetoothed
from examples import layer_norm, mm, softmax
from ninetoothed import like

NUMBERS = itertools.count()


def made(kernel, outputs):
    name = f"graphs::{kernel.name}_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, outputs, backward="derive")


def operators():
    first, other = (tensor.shape for tensor in mm.tensors[:2])
    return {
        "softmax": made(softmax.kernel, {"output": like("input")}),
        "mm": made(mm.kernel, {"output": ((first[0], other[1]), "input")}),
    }


@pytest.mark.parametrize("name, shapes", [("softmax", [(40, 132)]), ("mm", [(68, 133), (133, 73)])])
def test_a_first_call_is_captured(name, shapes):
    """Nothing was compiled, loaded or tuned for these sizes before."""
    operator = operators()[name]
    given = [torch.randn(shape, device="cuda") for shape in shapes]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = operator(*given)
    for each in given:
        each.normal_()
    graph.replay()

    wanted = given[0].softmax(-1) if name == "softmax" else given[0] @ given[1]
    torch.testing.assert_close(output, wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name, shapes", [("softmax", [(37, 129)]), ("mm", [(65, 130), (130, 70)])])
def test_graphed_callables(name, shapes):
    operator = operators()[name]
    given = tuple(torch.randn(shape, device="cuda", requires_grad=True) for shape in shapes)
    graphed = torch.cuda.make_graphed_callables(operator, given)
    inputs = tuple(torch.randn_like(each).requires_grad_() for each in given)

    found = torch.autograd.grad(graphed(*inputs).square().sum(), inputs)

    wanted = torch.autograd.grad(operator(*inputs).square().sum(), inputs)
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)


def test_a_graphed_module_trains():
    operator = made(layer_norm.kernel, {"output": like("input")})

    class Normal(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(129))
            self.bias = torch.nn.Parameter(torch.zeros(129))

        def forward(self, x):
            return operator(x, self.weight, self.bias, 1e-5)

    module = Normal().cuda()
    given = torch.randn(37, 129, device="cuda", requires_grad=True)
    graphed = torch.cuda.make_graphed_callables(module, (given,))
    optimizer = torch.optim.SGD(module.parameters(), 0.1)
    losses = []
    for _ in range(5):
        optimizer.zero_grad()
        loss = (graphed(given.detach()) - 1).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())

    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]
