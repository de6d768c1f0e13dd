"""Elements of tiles, loaded, stored and changed atomically, turned into plain Triton."""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.backends.triton.ir.nodes import PointedType
from ninetoothed.backends.triton.ir.trees import all_of, language
from ninetoothed.backends.triton.printers.addresses import Addresses
from ninetoothed.backends.triton.printers.elements import rearranged
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.backends.triton.specialization.size_arithmetic import computed_of
from ninetoothed.language import dtypes
from ninetoothed.program import nodes
from ninetoothed.program.effects import called_name, place_changed
from ninetoothed.program.types import type_of

_Place = nodes.ElementPlace | nodes.SourcePlace


class ElementLowering(ast.NodeTransformer):
    """The part of the lowering that knows elements of tiles; `Lowering` is on top of it."""

    _emission: Emission
    _addresses: Addresses

    def visit(self, node: ast.AST) -> Any:
        """What a node becomes, which stands at its place."""
        outsized, symbol = self._emission.facts.outsized, None
        if outsized and isinstance(node, ast.expr):
            symbol = computed_of(self._emission.lowered.program, node)
        result = super().visit(node) if symbol not in outsized else self._emission.computed(symbol)
        if isinstance(result, ast.expr | ast.stmt) and "lineno" not in result.__dict__:
            nodes.at(result, node)
        return result

    def visit_ElementLoad(self, node: nodes.ElementLoad) -> ast.expr:
        pointer, mask = self._elements(node)
        keywords = {}
        if mask is not None:
            mask = self._emission.named(f"{node.parameter}_mask", mask)
            keywords = {"mask": mask, "other": self._addresses.filler(node.parameter)}
        loaded = language("load", pointer, **keywords)
        return self._emission.named(f"{node.parameter}_elements", loaded)

    def visit_ElementStore(self, node: nodes.ElementStore) -> ast.stmt:
        masks: list[ast.expr] = []
        value = self.visit(self._real(node.value, masks))
        pointer, mask = self._elements(node)
        masks[:0] = [] if mask is None else [mask]
        keywords = {"mask": all_of(masks)} if masks else {}
        return ast.Expr(language("store", pointer, value, **keywords))

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        if isinstance(node.value, ast.Call) and (place := place_changed(node.value)):
            node.value, _ = self._atomic(node.value, place)
            return node
        node.value = self.visit(node.value)
        return node

    def _old(self, node: ast.Call, place: _Place) -> ast.expr:
        """What an atomic operation on an access gives: what takes no part is as beyond the tensor."""
        changed, mask = self._atomic(node, place)
        if mask is None:
            return changed
        return language("where", mask, changed, self._addresses.filler(place.parameter))

    def _atomic(self, node: ast.Call, place: _Place) -> tuple[ast.expr, ast.expr | None]:
        """An atomic operation on an access, and which elements take part: those that exist, of the value too."""
        function = called_name(node)
        names = ["cmp", "val"] if function == "atomic_cas" else ["val", "mask"]
        given = dict(zip((*names, "sem", "scope"), node.args[1:]))
        given |= {keyword.arg or "": keyword.value for keyword in node.keywords}
        conditions: list[ast.expr] = []
        tiles = {"mask", *(key for key, value in given.items() if type_of(value).shape)}
        numbers = {*names} - tiles
        for key, value in given.items():
            given[key] = self.visit(self._real(value, conditions))
        if isinstance(place, nodes.ElementPlace):
            pointer, mask = self._elements(place)
        else:
            pointer, mask = self._element(place.parameter, place.indices)
        conditions += [each for each in (mask, given.pop("mask", None)) if each is not None]
        taking_part = None
        if conditions:
            taking_part = self._emission.named(f"{place.parameter}_mask", all_of(conditions))
            given["mask"] = taking_part
        if function == "atomic_cas" and not conditions:
            # Triton's own asks for values of the tensor's type.
            pointer_name = self._emission.pointer(place.parameter)
            dtype = PointedType(parameter=place.parameter, pointer=pointer_name)
            given |= {key: language("cast", given[key], dtype) for key in names}
        shape = type_of(place).shape
        # Triton's own asks for them in the shape of the pointers: for tiles, and for what an exchange is given.
        spreads = set() if shape is not None and len(shape) < 2 else tiles
        if function == "atomic_cas" and not conditions and shape != ():
            spreads = spreads | numbers
        if spreads:
            pointer = self._emission.named(f"{place.parameter}_pointers", pointer)
            for key in sorted(spreads & given.keys()):
                given[key] = self._emission.call("spread", pointer, given[key])
        if function == "atomic_cas" and conditions:
            keywords = [ast.keyword(key, value) for key, value in given.items()]
            first = self._emission.pointer(place.parameter)
            exchange = self._emission.function("masked_cas")
            return ast.Call(exchange, [pointer, first], keywords), taking_part
        return language(function, pointer, **given), taking_part

    def _real(self, node: ast.expr, conditions: list[ast.expr]) -> ast.expr:
        """A value; where it exists is one more of the conditions, if it is marked to be nowhere else."""
        if not (isinstance(node, nodes.Masked) and node.identity == "nowhere"):
            return node
        real = self._conjunction(node.masks)
        conditions += [] if real is None else [real]
        return node.value

    def _elements(
        self,
        node: nodes.ElementLoad | nodes.ElementStore | nodes.ElementRef | nodes.ElementPlace,
        layout: tuple[int | None, ...] | None = None,
    ) -> tuple[ast.expr, ast.expr | None]:
        """The addresses of elements of a tile, and where there are such."""
        indices: list[ast.expr] = []
        conditions: list[ast.expr] = []
        after = len(node.view.shape) - node.view.before
        for place, index in enumerate(node.indices):
            real: list[ast.expr] = []
            index = self._position(self._real(index, real), f"{node.parameter}_at_{place}")
            # Where a position exists, it does so all along the slices that come after it.
            conditions += [
                self._before(condition, after) if after else condition for condition in real
            ]
            indices.append(index)
        pointer, mask = self._addresses.elements(node.parameter, node.view, indices, layout)
        conditions += [] if mask is None else [mask]
        return pointer, all_of(conditions) if conditions else None

    def _position(self, node: ast.expr, wanted: str) -> ast.expr:
        """An index as a name or a number, of a type in which addresses are computed."""
        known = type_of(node)
        # What is of no tensor is signed: sizes and the variables of loops, which are integers of a kind
        # alone, and what options count, which has no type.
        is_counted = "type" not in node.__dict__ or (known.kind, known.dtype) == ("int", None)
        is_signed = is_counted or known.dtype in (dtypes.int32, dtypes.int64)
        index = self.visit(node)
        if not is_signed and not isinstance(index, ast.Constant):
            index = self._emission.call("as_position", index)
        if isinstance(index, (ast.Name, ast.Constant)):
            return index
        return self._emission.named(wanted, index)

    def _before(self, condition: ast.expr, after: int) -> ast.expr:
        """A condition on what is chosen, before so many slices."""
        moved = self._emission.call("after_others", condition, ast.Constant(after))
        return ast.Compare(moved, [ast.NotEq()], [ast.Constant(0)])

    def _mask(self, mask: nodes.Mask) -> ast.expr | None:
        if not isinstance(mask.tile, nodes.ElementRef):
            return self._addresses.mask(self._tile(mask.tile), mask.layout)
        _, condition = self._elements(mask.tile, mask.layout)
        return condition and rearranged(condition, mask.tile.rank, mask.layout)

    def _tile(self, tile: nodes.TileRef) -> nodes.TileRef:
        """A tile whose indices are names or numbers."""
        raise NotImplementedError

    def _conjunction(self, masks: list[nodes.Mask]) -> ast.expr | None:
        """Where all masks hold, by name; None for everywhere."""
        raise NotImplementedError

    def _element(self, parameter: str, indices: list[ast.expr]) -> tuple[ast.expr, ast.expr]:
        """The address of any element of a source, and whether it is one."""
        raise NotImplementedError
