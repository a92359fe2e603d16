"""Moves data between the ranks of a group: torch's process groups and engines' own groups."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist

from .._launcher.arguments import wrong
from ..errors import ArgumentError, RankError


class Ranks(Protocol):
    """Moves blocks of equal sizes between the ranks of a group. The blocks are ordered by rank."""

    name: str
    """The name of the backend, as messages call it."""

    rank: int
    size: int

    def all_to_all(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        """Sets received[r] to block sent[this rank] of rank r. Both arrays are `[ranks, bytes] u8`."""

    def all_gather(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        """Sets received[r] to sent[0] of rank r. `received` is `[ranks, bytes] u8`, `sent` is `[1, bytes] u8`."""


class CollectiveRanks:
    """A process group with collectives on the device (NCCL). They are enqueued without waiting on the host."""

    def __init__(self, group: dist.ProcessGroup, name: str) -> None:
        self.group, self.name = group, name
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def all_to_all(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        dist.all_to_all_single(received, sent, group=self.group)

    def all_gather(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        dist.all_gather_into_tensor(received, sent, group=self.group)


# The tag of all gloo messages of mlafix, "mlaf" in ASCII. It distinguishes them from messages of the group's other
# users, whose default tag is 0. A separate group would keep the messages apart, too, but all processes of the job, even
# those of other groups, would have to create that group.
TAG = 0x6D6C6166


class GlooRanks:
    """A gloo group on the CPU. Ranks send to each other directly, so that an error can name the rank that did not
    arrive.

    Messages have the tag `TAG`, which other users of the group do not use.

    Args:
        group: the process group.
        timeout: how long to wait for each rank, in seconds; None uses the group's timeout.
    """

    name = "gloo"

    def __init__(self, group: dist.ProcessGroup, timeout: float | None) -> None:
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.timeout = timeout
        self._global = [dist.get_global_rank(group, rank) for rank in range(self.size)]

    def all_to_all(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        self._exchange(received, sent, list(range(self.size)))

    def all_gather(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        self._exchange(received, sent, [0] * self.size)

    def _exchange(self, received: torch.Tensor, sent: torch.Tensor, block_for: list[int]) -> None:
        failed: dict[int, RuntimeError] = {}
        works = []
        peers = [rank for rank in range(self.size) if rank != self.rank]
        # If one peer fails, the other peers still get their rows, since they must also find out which rank did not
        # arrive.
        for move, data in ((dist.irecv, received), (dist.isend, sent)):
            for peer in peers:
                block = data[peer if move is dist.irecv else block_for[peer]]
                try:
                    works.append((peer, move(block, self._global[peer], self.group, TAG)))
                except RuntimeError as error:
                    failed.setdefault(peer, error)
        received[self.rank].copy_(sent[block_for[self.rank]])
        for peer, work in works:
            try:
                if self.timeout is None:
                    work.wait()
                else:
                    work.wait(timedelta(seconds=self.timeout))
            except RuntimeError as error:
                failed.setdefault(peer, error)
        for peer, error in failed.items():  # the first failure is the cause of the others
            raise self._missing(peer, error) from error

    def _missing(self, peer: int, error: RuntimeError) -> RankError:
        alias = "" if self._global[peer] == peer else f" (global rank {self._global[peer]})"
        rows = f"expected rows from rank {peer} of {self.size}{alias}"
        text = str(error).lower()
        if "timed out" in text or "timeout" in text:
            return RankError(f"{rows} within {'the timeout of the group' if self.timeout is None else f'{self.timeout:g} s'}, got none")
        closed = "connection" in text or "broken pipe" in text
        return RankError(f"{rows}, got none: {'the connection closed' if closed else f'the exchange failed: {error}'}")



class EngineRanks:
    """An engine's group object that has no torch process group: `world_size`, `rank_in_group` and its own collectives.

    It has `all_to_all_single(output, input)`, or at least `all_gather(tensor, dim)`, which moves N times the bytes for N
    ranks.
    """

    name = "engine"

    def __init__(self, group: Any) -> None:
        self.group = group
        self.rank, self.size = group.rank_in_group, group.world_size

    def all_to_all(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        if hasattr(self.group, "all_to_all_single"):
            self.group.all_to_all_single(received.view(-1), sent.view(-1))
        else:
            everything = self.group.all_gather(sent, dim=0).view(self.size, *sent.shape)
            received.copy_(everything[:, self.rank])

    def all_gather(self, received: torch.Tensor, sent: torch.Tensor) -> None:
        received.copy_(self.group.all_gather(sent, dim=0).view_as(received))


def ranks_of(group: Any, device: torch.device, backend: str = "auto", timeout: float | None = None) -> Ranks:
    """Returns the ranks of a group, for tensors on `device`.

    Args:
        group: a process group of torch's, None for the default one, or an engine's group: an object whose `device_group` is a
            process group, or one that `EngineRanks` describes.
        device: the device of the tensors.
        backend: "auto" and "symmetric" accept any backend of the group. "nccl" and "gloo" are backends that the group
            must have.
        timeout: see `GlooRanks`.

    Raises:
        ArgumentError: there is no such backend, or `group` is not a group.
    """
    if backend not in ("auto", "symmetric", "nccl", "gloo"):
        raise wrong("backend", '"auto", "symmetric", "nccl" or "gloo"', repr(backend))
    process_group = group_of(group)
    if process_group is None:
        return EngineRanks(group)
    found = backend_for(process_group, device.type)
    if not found:
        raise wrong("group", f"a group with a backend for {device.type}, where the tensors are", f"one for {_devices_of(process_group)}")
    if backend not in ("auto", "symmetric", found):
        raise wrong("backend", f'"auto" or "{found}", what the group has for {device.type}', repr(backend))
    return GlooRanks(process_group, timeout) if found == "gloo" and device.type == "cpu" else CollectiveRanks(process_group, found)


def group_of(group: Any) -> dist.ProcessGroup | None:
    """Returns the torch process group behind a group. Returns None for an engine's own group.

    Raises:
        ArgumentError: `group` is not a process group, or this process is not in it.
    """
    if group is None:
        if not dist.is_initialized():
            raise wrong("group", "a process group, or a call of torch.distributed.init_process_group before this one", "None")
        return dist.group.WORLD
    inner = getattr(group, "device_group", group)
    if isinstance(inner, dist.ProcessGroup):
        if dist.get_rank(inner) < 0:
            raise _not_a_rank()
        return inner
    if inner is dist.GroupMember.NON_GROUP_MEMBER:
        raise _not_a_rank()
    if not hasattr(group, "world_size") or not hasattr(group, "rank_in_group"):
        raise wrong("group", "a process group, or an object with world_size and rank_in_group", type(group).__qualname__)
    return None


def _not_a_rank() -> ArgumentError:
    return wrong("group", f"a group that has this process (rank {dist.get_rank()} of the default group)", "one without it")


def backend_for(group: dist.ProcessGroup, device_type: str) -> str:
    """Returns the backend of a process group for a type of device, or "" if it has none."""
    return _backends_of(group).get(device_type, "")


def _backends_of(group: dist.ProcessGroup) -> dict[str, str]:
    return dict(entry.split(":") for entry in dist.get_backend_config(group).split(","))


def _devices_of(group: dist.ProcessGroup) -> str:
    return " and ".join(device for device in _backends_of(group) if device in ("cpu", "cuda")) or "neither cpu nor cuda"


def default_device(group: Any) -> torch.device:
    """Returns the current CUDA device if a group has a backend other than gloo for it, or is an engine's own group.
    Otherwise returns the CPU."""
    process_group = group_of(group)
    on_gpu = torch.cuda.is_available() and (process_group is None or backend_for(process_group, "cuda") not in ("", "gloo"))
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")


def meeting_of(group: Any, device: torch.device | None = None, timeout: float | None = None) -> tuple[Ranks, torch.device]:
    """Returns the group over which ranks compare their arguments, and the device for its tensors.

    For a process group the choice depends on the group alone, so that ranks with different arguments choose the same.
    If the group has gloo, the ranks compare over gloo on the host, without waiting for a device. An engine's own group
    does not reveal its backends, so `device` decides.
    """
    process_group = group_of(group)
    if process_group is None:
        where = default_device(group) if device is None else device
    else:
        where = torch.device("cpu") if backend_for(process_group, "cpu") == "gloo" else default_device(group)
    return ranks_of(group, where, timeout=timeout), where
