"""Clusters in an order in which they can run, kept up while they grow and merge.

Whether one cluster needs another, directly or not, is asked for every node.  Each cluster has a bit, and keeps the bits
of all that it needs: clusters only come to need more, mostly the last one, which none needs yet.  Among very many these
would be long, and a search answers: a cluster only needs earlier ones, so it stops at the position of what is looked
for.  When a cluster comes to need a later one, the stretch between the two is sorted again (as by Pearce and Kelly, A
Dynamic Topological Sort Algorithm, 2007).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hybridflow.compiler.loops.kernel import Cluster
from hybridflow.errors import CompileError


class Order:
    MOST_BITS = 1 << 13

    def __init__(self) -> None:
        self._slots: list[Cluster | None] = []  # None where a cluster has been merged into another
        self._place: dict[Cluster, int] = {}
        self._needs: dict[Cluster, set[Cluster]] = {}
        self._needed_by: dict[Cluster, set[Cluster]] = {}
        self._has_bits = self.MOST_BITS > 0
        self._bit: dict[Cluster, int] = {}
        self._closure: dict[Cluster, int] = {}  # its own bit, and those of all that it needs, directly or not

    def __iter__(self) -> Iterator[Cluster]:
        return (c for c in self._slots if c is not None)

    def __reversed__(self) -> Iterator[Cluster]:
        return (c for c in reversed(self._slots) if c is not None)

    def check(self) -> None:
        """Raise CompileError unless every cluster stands after those that it needs: no order has that of a cycle."""
        for cluster, needs in self._needs.items():
            if any(self._place[c] >= self._place[cluster] for c in needs):
                name, where = cluster.anchor.op.name, cluster.anchor.where or ""
                message = f"the kernel of {name} waits for itself. This is a defect of hybridflow; please report it."
                raise CompileError("fusion", message, where)

    def append(self, cluster: Cluster, needs: Iterable[Cluster]) -> None:
        self._place[cluster] = len(self._slots)
        self._slots.append(cluster)
        self._needs[cluster], self._needed_by[cluster] = set(), set()
        if self._has_bits:
            self._bit[cluster] = self._closure[cluster] = 1 << len(self._bit)
            self._has_bits = len(self._bit) < self.MOST_BITS
        self._link(cluster, needs)

    def need(self, cluster: Cluster, needs: Iterable[Cluster]) -> None:
        """``cluster`` comes to need others, of which none needs it."""
        needs = [c for c in needs if c is not cluster]
        self._link(cluster, needs)
        first, last = self._place[cluster], max([self._place[c] for c in needs], default=0)
        if last > first:
            self._sort(first, last)

    def merge(self, other: Cluster, cluster: Cluster) -> None:
        """``other``, which ``cluster`` needs but not through a third one, becomes part of it."""
        first = self._place.pop(other)
        self._slots[first] = None
        needs, needed_by = self._needs.pop(other), self._needed_by.pop(other)
        for c in needs:
            self._needed_by[c].discard(other)
        for c in needed_by:
            self._needs[c].discard(other)
            if c is not cluster:
                self._link(c, [cluster])
        self._link(cluster, needs)
        self._sort(first, self._place[cluster])

    def depends(self, clusters: Iterable[Cluster], on: Cluster) -> bool:
        """Whether one of the clusters is ``on`` or needs it, directly or not."""
        if self._has_bits:
            bit, closure = self._bit[on], self._closure
            return any(closure[c] & bit for c in clusters)
        place, limit = self._place, self._place[on]
        stack = [c for c in clusters if place[c] >= limit]
        seen = set(stack)
        while stack:
            current = stack.pop()
            if current is on:
                return True
            for c in self._needs[current]:
                if place[c] >= limit and c not in seen:
                    seen.add(c)
                    stack.append(c)
        return False

    def depends_through_another(self, cluster: Cluster, on: Cluster) -> bool:
        return self.depends(self._needs[cluster] - {on}, on)

    def _link(self, cluster: Cluster, needs: Iterable[Cluster]) -> None:
        for c in needs:
            self._needs[cluster].add(c)
            self._needed_by[c].add(cluster)
            if self._has_bits:
                self._add_to_closure(cluster, self._closure[c])

    def _add_to_closure(self, cluster: Cluster, bits: int) -> None:
        """``cluster``, and so all that need it, need what has these bits."""
        closure, stack = self._closure, [cluster]
        while stack:
            current = stack.pop()
            if bits & ~closure[current]:
                closure[current] |= bits
                stack += self._needed_by[current]

    def _sort(self, first: int, last: int) -> None:
        """Put the clusters in these places into order among themselves; the others stand right."""
        places = [p for p in range(first, last + 1) if self._slots[p] is not None]
        if len(places) < 2:
            return
        inside = [c for c in self._slots[first : last + 1] if c is not None]
        members, done, sorted_ = set(inside), set(), []
        for start in inside:
            stack = [(start, False)]
            while stack:
                cluster, ready = stack.pop()
                if ready:
                    sorted_.append(cluster)
                elif cluster not in done:
                    done.add(cluster)
                    stack.append((cluster, True))
                    # Later ones first onto the stack, so that clusters keep their order where they may.
                    needs = [c for c in self._needs[cluster] if c in members and c not in done]
                    stack += [(c, False) for c in sorted(needs, key=self._place.__getitem__, reverse=True)]
        for place, cluster in zip(places, sorted_):
            self._slots[place], self._place[cluster] = cluster, place
