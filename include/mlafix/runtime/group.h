/*===- group.h - kernels that several ranks launch ----------------*- C -*-===*\
|*                                                                            *|
|* Part of mlafix, under the Apache License v2.0. See LICENSE.                *|
|* SPDX-License-Identifier: Apache-2.0                                        *|
|*                                                                            *|
|*===----------------------------------------------------------------------===*|
|*                                                                            *|
|* A collective kernel has an argument with a tensor of each rank. All ranks  *|
|* launch it, each on its device, and wait for each other on the device.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef MLAFIX_INCLUDE_RUNTIME_GROUP_H
#define MLAFIX_INCLUDE_RUNTIME_GROUP_H

#include "tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ranks that launch a kernel together, as one of them sees them.
 *
 * Each rank has a workspace of MLAFIX_GROUP_BYTES + 8 * slots * ranks bytes in
 * its device's memory, aligned to 128 bytes, which all ranks can write (CUDA
 * IPC, cuMem handles). It must be zero before the first launch; after that only
 * launches may change it. Launches with the same workspaces must have the same
 * order on all ranks, each complete before the next begins, as in one stream.
 *
 * The library also orders launches with different workspaces: on a device, a
 * launch begins after the process's previous one there is complete, whatever
 * its stream (for captured launches: the previous one in the same graph). So
 * ranks that share two sets of workspaces must use them in the same order.
 * Launches that the caller builds from mlafix_bound_launch_info are not
 * ordered. */
typedef struct mlafix_group {
  uint32_t struct_size;
  uint32_t ranks;          /**< at most MLAFIX_MAX_RANKS */
  uint32_t rank;           /**< this one, below `ranks` */
  void *const *workspaces; /**< of each rank, as this one addresses it */
  /** How long a launch waits for a rank, in ns on the device. */
  uint64_t timeout_ns;
  /** Host memory that the device can write (cuMemHostAlloc), or NULL. Set to 1
   * + the rank that did not arrive; must be zero before the first launch. */
  uint64_t *failure;
  /** Limit of the blocks of a launch that stores to peers (mlafix.exchange); a
   * larger launch is an error. The same on all ranks. */
  uint64_t slots;
} mlafix_group;

#define MLAFIX_GROUP_INIT                                                      \
  { sizeof(mlafix_group), 0, 0, NULL, UINT64_C(10000000000), NULL, 0 }

/** One tensor per rank for an argument, all of the same dtype, sizes and
 * strides. Only read during the call it is passed to. */
typedef struct mlafix_peers {
  uint32_t struct_size;
  uint32_t ranks;
  void *const *data; /**< of each rank, as this one addresses it */
  /** The view that all tensors share, on the device of the launch; its `data`
   * is ignored. */
  const mlafix_tensor *each;
  /** CUDA: must be the same for all arguments of a call. CPU (all tensors
   * belong to this process): ignored. */
  const mlafix_group *group;
} mlafix_peers;

#define MLAFIX_PEERS_INIT                                                      \
  { sizeof(mlafix_peers), 0, NULL, NULL, NULL }

/** `peers` is not copied. */
static inline mlafix_arg mlafix_peers_arg(const mlafix_peers *peers) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_PEERS, {NULL}};
  arg.value.peers = peers;
  return arg;
}

/** A list of `ranks` tensors of the same dtype, sizes and strides; `group` is
 * ignored. `list` is not copied. */
static inline mlafix_arg mlafix_list_arg(const mlafix_peers *list) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_LIST, {NULL}};
  arg.value.peers = list;
  return arg;
}

/** Checks that all ranks took part in the completed launches. Returns OK, or
 * RANK_ERROR naming a rank that did not arrive. Reads `failure` without
 * waiting; every launch begins with this check. After a RANK_ERROR the
 * workspaces cannot be used any more. */
MLAFIX_API mlafix_status mlafix_group_check(const mlafix_group *group)
    MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_GROUP_H */
