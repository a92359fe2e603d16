/*===- group.h - kernels that several ranks launch ----------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* A collective kernel has an argument with one tensor per rank. All ranks    *|
|* launch it, each on its own device, and wait for each other there.          *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_GROUP_H
#define MLAFIX_INCLUDE_RUNTIME_GROUP_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A group: the ranks that launch a collective kernel together. Each rank
 * describes the group from its own point of view.
 *
 * Each rank has a workspace of MLAFIX_GROUP_BYTES + 8 * slots * ranks bytes in
 * its device's memory, aligned to 128 bytes. All ranks must be able to write to
 * it (CUDA IPC, cuMem handles). It must be zero before the first launch, and
 * afterwards only launches may change it. Launches with the same workspaces
 * must have the same order on all ranks. Each must be complete before the next
 * one begins, as in one stream.
 *
 * The library also orders launches with different workspaces. On a device, a
 * launch begins after the process's previous collective launch there is
 * complete, on any stream. A captured launch begins after the previous one of
 * the same graph. So ranks that share two sets of workspaces must use them in
 * the same order. Launches that the caller builds from mlafix_bound_launch_info
 * are not ordered. */
typedef struct mlafix_group {
  uint32_t struct_size;
  uint32_t ranks;          /**< number of ranks, at most MLAFIX_MAX_RANKS */
  uint32_t rank;           /**< this rank, less than `ranks` */
  void *const *workspaces; /**< address of each rank's workspace here */
  /** The time in ns for which a launch waits for another rank. */
  uint64_t timeout_ns;
  /** Host memory that the device can write (cuMemHostAlloc), or NULL. It must
   * be zero before the first launch. If a rank does not arrive, it becomes 1 +
   * that rank. */
  uint64_t *failure;
  /** The maximum number of blocks of a launch that stores to peers
   * (mlafix.exchange). A larger launch is an error. All ranks must have the
   * same value. */
  uint64_t slots;
} mlafix_group;

#define MLAFIX_GROUP_INIT                                                      \
  { sizeof(mlafix_group), 0, 0, NULL, UINT64_C(10000000000), NULL, 0 }

/** An argument with one tensor per rank, or a list of tensors. All tensors have
 * the same dtype, sizes and strides. The struct is read only during the
 * call. */
typedef struct mlafix_peers {
  uint32_t struct_size;
  uint32_t ranks;
  void *const *data; /**< address of each rank's tensor here */
  /** The dtype, sizes and strides of all tensors, on the device of the launch.
   * Its `data` is ignored. */
  const mlafix_tensor *each;
  /** On CUDA, the group of the launch, which must be the same for all arguments
   * of a call. It is ignored on the CPU, where all tensors belong to this
   * process. */
  const mlafix_group *group;
} mlafix_peers;

#define MLAFIX_PEERS_INIT                                                      \
  { sizeof(mlafix_peers), 0, NULL, NULL, NULL }

/** Returns an argument with one tensor per rank. `peers` is not copied. */
static inline mlafix_arg mlafix_peers_arg(const mlafix_peers *peers) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_PEERS, {NULL}};
  arg.value.peers = peers;
  return arg;
}

/** Returns an argument that is a list of `ranks` tensors. `group` is ignored.
 * `list` is not copied. */
static inline mlafix_arg mlafix_list_arg(const mlafix_peers *list) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_LIST, {NULL}};
  arg.value.peers = list;
  return arg;
}

/** Checks that all ranks took part in the completed launches. Returns OK, or
 * RANK_ERROR with the rank that did not arrive. It reads `failure` without
 * waiting. Every launch begins with this check. After a RANK_ERROR, the
 * workspaces must not be used any more. */
MLAFIX_API mlafix_status mlafix_group_check(const mlafix_group *group)
    MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_GROUP_H */
