"""Free ranges of one memory, found by size and by where they begin and end."""

from __future__ import annotations

from bisect import bisect_left, insort


class FreeList:
    """Ranges that were given back; neighbours are one range.  All is in bytes."""

    def __init__(self) -> None:
        self._by_size: list[tuple[int, int]] = []  # (size, offset), sorted
        self._size_at: dict[int, int] = {}  # by offset
        self._start_of: dict[int, int] = {}  # by end

    def allocate(self, size: int) -> int | None:
        """Where ``size`` bytes begin, of the tightest range that is large enough, which are free no more."""
        place = bisect_left(self._by_size, (size, 0))
        if place == len(self._by_size):
            return None
        room, offset = self._by_size[place]
        self._remove(offset)
        if room > size:
            self._add(offset + size, room - size)
        return offset

    def free(self, offset: int, size: int) -> None:
        if size == 0:
            return
        before = self._start_of.get(offset)
        if before is not None:
            size += self._remove(before)
            offset = before
        if offset + size in self._size_at:
            size += self._remove(offset + size)
        self._add(offset, size)

    def _add(self, offset: int, size: int) -> None:
        self._size_at[offset], self._start_of[offset + size] = size, offset
        insort(self._by_size, (size, offset))

    def _remove(self, offset: int) -> int:
        size = self._size_at.pop(offset)
        del self._start_of[offset + size]
        self._by_size.pop(bisect_left(self._by_size, (size, offset)))
        return size
