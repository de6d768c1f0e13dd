"""The next token of each request: the likeliest, or a random one of the nucleus.

Holtzman et al., "The Curious Case of Neural Text Degeneration", section 3.1: the nucleus is the smallest set
of tokens, the likeliest first, whose probability is at least `top_p`. How likely its last one is, is found by
halving; from the nucleus a token is drawn as the largest of logits with Gumbel noise. Everything stays on the
device, so that a step can be recorded as a graph.
"""

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

BLOCK_SIZE = 4096

#: A least logit of the nucleus is found to so many bits of where logits lie.
ROUNDS = 26


def arrange_blocks(logits):
    """All blocks of a request's logits."""
    arranged = logits.tile((1, BLOCK_SIZE)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    arranged.dtype.dtype = arranged.dtype.dtype.squeeze(0)

    return arranged.squeeze(1)


def nucleus_arrangement(logits, temperature, top_p, least):
    return arrange_blocks(logits), temperature, top_p, least.tile((1,))


def nucleus(logits, temperature, top_p, least):
    highest = ntl.max(logits[0])
    low = ntl.min(logits[0])

    for i in range(1, logits.shape[0]):
        highest = ntl.maximum(highest, ntl.max(logits[i]))
        low = ntl.minimum(low, ntl.min(logits[i]))

    total = highest * 0.0

    for i in range(logits.shape[0]):
        total += ntl.sum(ntl.exp((logits[i] - highest) / temperature))

    # What is at least `low` has enough probability, what is above `high` has not.
    high = highest

    for _ in range(ROUNDS):
        middle = low + (high - low) * 0.5
        above = highest * 0.0

        for i in range(logits.shape[0]):
            weights = ntl.exp((logits[i] - highest) / temperature)
            above += ntl.sum(ntl.where(logits[i] >= middle, weights, 0.0))

        is_enough = above >= top_p * total
        low = ntl.where(is_enough, middle, low)
        high = ntl.where(is_enough, high, middle)

    # Where the likeliest token alone is enough, halving comes close from below.
    least = low


nucleus_kernel = ninetoothed.make(
    nucleus_arrangement,
    nucleus,
    (Tensor(2), Tensor(0), Tensor(0), Tensor(1)),
    kernel_name="nucleus",
)


def best_arrangement(logits, least, temperature, seed, position, is_random, value, index):
    logits_arranged = logits.tile((1, BLOCK_SIZE))
    logits_arranged.dtype = logits_arranged.dtype.squeeze(0)

    def arrange_request(vector):
        return vector.tile((1,)).unsqueeze(1).expand((-1, logits_arranged.shape[1]))

    def arrange_best(matrix):
        arranged = matrix.tile((1, 1))
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return (
        logits_arranged,
        arrange_request(least),
        temperature,
        arrange_request(seed),
        arrange_request(position),
        is_random,
        arrange_best(value),
        arrange_best(index),
    )


def best(logits, least, temperature, seed, position, is_random, value, index):
    """The largest of a block, and where it is."""
    if is_random:
        uniform = ntl.rand(seed + position, logits.offsets(1))
        noise = -ntl.log(-ntl.log(ntl.maximum(uniform, 1e-10)))
        scores = ntl.where(logits >= least, logits / temperature + noise, float("-inf"))
    else:
        scores = logits

    value = ntl.max(scores)
    index = ntl.argmax(scores, axis=0) + ntl.min(logits.offsets(1))


best_kernel = ninetoothed.make(
    best_arrangement,
    best,
    (
        Tensor(2),
        Tensor(1),
        Tensor(0),
        Tensor(1),
        Tensor(1),
        Tensor(0, constexpr=True),
        Tensor(2),
        Tensor(2),
    ),
    kernel_name="best_of_blocks",
)


def choose_arrangement(value, index, token, position, history):
    def arrange_row(matrix):
        arranged = matrix.tile((1, -1)).squeeze(1)
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return (
        arrange_row(value),
        arrange_row(index),
        token.tile((1,)),
        position.tile((1,)),
        arrange_row(history),
    )


def choose(value, index, token, position, history):
    """The best of all blocks becomes the token at the next position."""
    found = index[ntl.argmax(value, axis=0)]
    history[position + 1] = found
    position += 1
    token = found


choose_kernel = ninetoothed.make(
    choose_arrangement,
    choose,
    (Tensor(2), Tensor(2), Tensor(1), Tensor(1), Tensor(2)),
    kernel_name="choose_token",
)
