"""What a kernel without a device says of itself."""

import ninetoothed
from ninetoothed import Tensor


def test_a_tensor_is_touched_where_its_strides_are_read():
    def application(x, z, y):
        step = x.source.stride(0)
        y = y + step * z.source.shape[0]

    def arrangement(*tensors):
        return tuple(tensor.tile((4,)) for tensor in tensors)

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    assert kernel.definition.program.touched() == {"x", "y"}
