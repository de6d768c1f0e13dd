"""The tables of a unit's C source: its binaries, the targets, and what was declared of its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ninetoothed.aot import c_expressions
from ninetoothed.aot.c_text import byte_array, quoted, tensor_map
from ninetoothed.aot.unit import Binaries, Unit
from ninetoothed.kernels.ahead import Condition, Variant
from ninetoothed.symbols.expr import as_symbol

_FORMATS = {"sm": ("NT_CUBIN", "cubin"), "pt": ("NT_PTX", "ptx"), "gf": ("NT_HSACO", "hsaco")}


def format_of(target: str) -> tuple[str, str]:
    """What the runtime calls a target's binaries, and their file's ending."""
    return _FORMATS[target[:2]]


def suffix_of(binaries: Binaries, variant: Variant) -> str:
    """What a binary's file is called beyond the name of the C source."""
    target = binaries.target
    return f".{target}.{_called(binaries, variant)}.{format_of(target)[1]}"


def _called(binaries: Binaries, variant: Variant) -> str:
    """A variant's name among all of a target."""
    return f"{variant.name}_{binaries.number}" if binaries.number else variant.name


#: For each edition of a target what sizes it is for, and its place.
Plan = tuple[tuple[tuple[Condition, ...], int], ...]


def _plan(several: Sequence[Binaries]) -> Plan:
    return tuple((binaries.sizes, binaries.edition) for binaries in several)


class Tables:
    """A unit's.

    Args:
        unit: it.
        is_portable: whether the binaries are arrays of the text instead of files beside it.
    """

    def __init__(self, unit: Unit, is_portable: bool) -> None:
        self._unit, self._is_portable = unit, is_portable
        self._tensors = [p for p in unit.parameters if p.kind == "tensor"]

    def binaries(self) -> Iterator[str]:
        for binaries in self._unit.binaries:
            for variant, image in zip(self._variants(binaries), binaries.images, strict=True):
                name = self._image_name(binaries, variant)
                if self._is_portable:
                    yield f"static const unsigned char {name}[] ="
                    yield from byte_array(image.data)
                else:
                    yield f"NT_EMBED({name}, {quoted(suffix_of(binaries, variant))});"
        yield ""
        for target, several in self._unit.targets.items():
            images = [
                (self._image_name(binaries, variant), image)
                for binaries in several
                for variant, image in zip(self._variants(binaries), binaries.images, strict=True)
            ]
            for name, image in images:
                if image.tensor_maps:
                    yield f"static const nt_tensor_map {name}_maps[] = {{"
                    yield from map(tensor_map, image.tensor_maps)
                    yield "};"
            yield f"static const nt_image {target}_images[] = {{"
            for name, image in images:
                maps = f"{name}_maps" if image.tensor_maps else "NULL"
                numbers = f"{image.threads}, {image.shared_memory}"
                flags = f"{int(image.is_persistent)}, {int(image.is_dependent)}"
                yield f"    {{{name}, {numbers}, {maps}, {flags}}},"
            yield "};"
        yield ""
        yield "static const nt_target targets[] = {"
        for target, several in self._unit.targets.items():
            digits = target.partition("_")[2]
            capability = digits if digits.isdigit() else "0"
            is_specific = int(several[0].images[0].is_specific)
            count = sum(len(binaries.images) for binaries in several)
            yield (
                f"    {{{format_of(target)[0]}, {capability}, {is_specific}, "
                f"{self.plans().index(_plan(several))}, {count}, {target}_images}},"
            )
        yield "};"
        yield ""

    def _variants(self, binaries: Binaries) -> Sequence[Variant]:
        return self._unit.editions[binaries.edition].variants

    def _image_name(self, binaries: Binaries, variant: Variant) -> str:
        return f"{self._unit.name}_{binaries.target}_{_called(binaries, variant)}"

    def declared(self) -> Iterator[str]:
        constants = self._unit.fixed.constants
        names = self._unit.kernel.names
        for place, parameter in enumerate(self._tensors):
            if not parameter.source.ndim:
                continue
            entries = []
            for size in parameter.source.shape:
                symbol = as_symbol(size)
                least, most, is_power = 0, "NT_MOST_SIZE", 0
                if symbol.op == "const":
                    least, most = symbol.operands[0], str(symbol.operands[0])
                elif symbol.op == "leaf" and names.get(symbol) in constants:
                    value = constants[names[symbol]]
                    least, most = value, str(value)
                elif symbol.op == "leaf":
                    least = symbol.leaf.lower_bound or 0
                    high = symbol.leaf.upper_bound
                    most = most if high is None else c_expressions.literal(high)
                    is_power = int(symbol.leaf.power_of_two)
                entries.append(f"{{{least}, {most}, {is_power}}}")
            yield f"static const nt_size sizes_{place}[] = {{{', '.join(entries)}}};"
        yield ""
        yield "static const nt_parameter parameters[] = {"
        for place, parameter in enumerate(self._tensors):
            dtype = self._unit.dtype(parameter)
            called = "NT_ANY" if dtype is None else f"NINETOOTHED_{dtype.name.upper()}"
            rank = parameter.source.ndim
            sizes = f"sizes_{place}" if rank else "NULL"
            yield f"    {{{quoted(parameter.name)}, {rank}, {called}, {sizes}}},"
        yield "};"
        yield ""
        name, count = quoted(self._unit.kernel.name), len(self._tensors)
        function = quoted(self._unit.binaries[0].images[0].function)
        yield (
            f"static nt_kernel the_kernel = {{{name}, {function}, {count}, "
            f"{len(self._unit.targets)}, parameters, targets, NULL}};"
        )
        yield ""

    def plans(self) -> list[Plan]:
        """How targets choose an edition, each once."""
        return list(dict.fromkeys(map(_plan, self._unit.targets.values())))
