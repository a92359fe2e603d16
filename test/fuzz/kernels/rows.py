"""Checks that rows of a kernel's grid access only their own elements of tensors that any row writes."""

from __future__ import annotations

from syntax import PART_INDICES, Case, Distinct, Each, Kernel, Node, Store, StoreState, all_statements


def accesses(kernel: Kernel) -> dict[str, list[list[Node]]]:
    """Returns a dict that maps each tensor to the indices of each of its loads and stores. Leaves out indices of parts
    of a row. In a loop over a tuple, the key is the loop variable."""
    found: dict[str, list[list[Node]]] = {}

    def note(tensor: str, nodes: list[Node], part: str = "") -> None:
        found.setdefault(tensor, []).append(nodes[: len(nodes) - PART_INDICES[part]])

    for node in kernel.nodes():
        if node.op == "load":
            note(node.attrs["tensor"], node.access()[0], node.attrs.get("part", ""))
        elif node.op == "load_state":
            nodes = node.access()[0]
            note(node.attrs["tensor"], nodes[: node.attrs["split"]])
            note(node.attrs["lse"], nodes[node.attrs["split"] :])
    for s in all_statements(kernel.body):
        if isinstance(s, Store):
            note(s.tensor, s.indices, s.part)
        elif isinstance(s, StoreState):
            for tensor, nodes in ((s.out, s.out_indices), (s.lse, s.lse_indices)):
                if tensor:
                    note(tensor, nodes)
    return found


def written(kernel: Kernel) -> set[str]:
    """Returns the tensors that some statement stores to."""
    found: set[str] = set()
    for s in all_statements(kernel.body):
        found |= {s.tensor} if isinstance(s, Store) else {s.out, s.lse} if isinstance(s, StoreState) else set()
    return found - {""}


def may_race(case: Case) -> bool:
    """True if a row may write an element that another row reads or writes. Rows are separate if all accesses of a
    written tensor have each index of the grid at the same position. Tensors that may alias count as one tensor."""
    kernel = case.kernel
    found = accesses(kernel)
    for s in all_statements(kernel.body):
        if isinstance(s, Each):
            for item in s.items:
                for short, node in zip(s.names, item):
                    if node.op == "tensor":
                        found.setdefault(node.attrs["name"], []).extend(found.get(short, []))
    own = kernel.grid.indices[1:] if kernel.grid.segments else kernel.grid.indices  # without the segment's index, since segments have different rows
    tables = {promise.table for promise in kernel.promises if isinstance(promise, Distinct)}
    for tensor in written(kernel):
        same = {tensor} | {call.aliases[tensor] for call in case.calls if tensor in call.aliases}
        lists = [nodes for name in same for nodes in found.get(name, [])]
        if any(not _shared_places(index, lists, tables) for index in own):
            return True
    return False


def _shared_places(index: str, lists: list[list[Node]], tables: set[str]) -> set[int]:
    """Returns the positions at which all lists have the grid index `index`, or all have table[index] with the same
    table of distinct entries."""

    def text(node: Node) -> str:
        if node.op == "load" and node.attrs["tensor"] in tables and [n.attrs.get("name") for n in node.args] == [index]:
            return str(node.attrs["tensor"])
        return "" if node.op != "name" or node.attrs["name"] != index else index

    places = [{(i, text(node)) for i, node in enumerate(nodes) if text(node)} for nodes in lists]
    return {i for i, _ in set.intersection(*places)}
