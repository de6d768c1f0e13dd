"""Cross entropy of logits and the indices of classes."""

import ninetoothed
import ninetoothed.language as ntl
from examples.training.common import matrix, operator, precise, row, statistic, vector
from ninetoothed import like


def forward_arrangement(logits, target, loss, log_sum):
    return row(logits), statistic(target), statistic(loss), statistic(log_sum)


def forward(logits, target, loss, log_sum):
    x = precise(logits)
    highest = ntl.max(x)
    total = ntl.log(ntl.sum(ntl.exp(x - highest))) + highest

    log_sum = total
    loss = total - ntl.sum(ntl.where(logits.offsets(-1) == target, x, 0))


def backward_arrangement(gradient, logits, target, log_sum, logits_gradient):
    vectors = statistic(target), statistic(log_sum)

    return statistic(gradient), row(logits), *vectors, row(logits_gradient)


def backward(gradient, logits, target, log_sum, logits_gradient):
    probability = ntl.exp(precise(logits) - log_sum)
    hit = ntl.where(logits.offsets(-1) == target, 1.0, 0.0)

    logits_gradient = (probability - hit) * gradient


backward_operator = operator(
    "cross_entropy_backward",
    backward_arrangement,
    backward,
    (vector(), matrix(), vector(), vector(), matrix()),
    {"logits_gradient": like("logits")},
)

logits = matrix()
rows = (logits.shape[0],), ninetoothed.float32

forward_operator = operator(
    "cross_entropy",
    forward_arrangement,
    forward,
    (logits, vector(), vector(), vector()),
    {"loss": rows, "log_sum": rows},
    backward=lambda gradient, logits, target, log_sum: (
        backward_operator(gradient, logits, target, log_sum),
        None,
    ),
    saved=("logits", "target", "log_sum"),
    hidden=("log_sum",),
)


def cross_entropy(logits, target):
    """The mean over rows of logits (m, n) of the cross entropy with classes (m,), float32."""
    return forward_operator(logits, target).mean()
