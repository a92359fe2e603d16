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
 * Each rank has a workspace of MLAFIX_GROUP_BYTES, and 8 * slots * ranks behind
 * them, in the memory of its device, which all ranks can write (CUDA IPC, cuMem
 * handles), at a multiple of 128 bytes. It holds zeros before the first launch,
 * and afterwards what launches leave in it. The launches with one set of
 * workspaces are in one order on all ranks, each complete before the next one
 * begins, as in one stream.
 *
 * Of different sets, a launch on a device begins once the one that the process
 * made there before it is complete, in whatever stream (of a captured launch:
 * the one captured before it for the same graph). So ranks that share two sets
 * launch with them in the same order. Launches that the caller makes of what
 * mlafix_bound_launch_info tells are not ordered. */
typedef struct mlafix_group {
  uint32_t struct_size;
  uint32_t ranks;          /**< at most MLAFIX_MAX_RANKS */
  uint32_t rank;           /**< this one, below `ranks` */
  void *const *workspaces; /**< of each rank, as this one addresses it */
  /** How long a launch waits for a rank, in ns on the device. */
  uint64_t timeout_ns;
  /** Host memory that the device can write (cuMemHostAlloc), or NULL: set to 1
   * + a rank that did not come. Zero before the first launch. */
  uint64_t *failure;
  /** The most blocks of a launch that stores to the peers (mlafix.exchange), on
   * all ranks alike: one with more is an error. */
  uint64_t slots;
} mlafix_group;

#define MLAFIX_GROUP_INIT                                                      \
  { sizeof(mlafix_group), 0, 0, NULL, UINT64_C(10000000000), NULL, 0 }

/** The tensors that the ranks have of one argument: of one dtype, the same
 * sizes and strides. Only read during the call it is passed to. */
typedef struct mlafix_peers {
  uint32_t struct_size;
  uint32_t ranks;
  void *const *data; /**< of each rank, as this one addresses it */
  /** The view that all tensors share, on the device of the launch; its `data`
   * is ignored. */
  const mlafix_tensor *each;
  /** CUDA: the same of all arguments of a call. CPU, where all tensors are one
   * process's own: not looked at. */
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

/** A list of `ranks` tensors, of one dtype, the same sizes and strides; its
 * `group` is not looked at. `list` is not copied. */
static inline mlafix_arg mlafix_list_arg(const mlafix_peers *list) {
  mlafix_arg arg = {sizeof(mlafix_arg), MLAFIX_ARG_LIST, {NULL}};
  arg.value.peers = list;
  return arg;
}

/** Checks that all ranks have come to the launches that are complete:
 * RANK_ERROR, which names one that has not, or OK. Reads `failure` and waits
 * for nothing; every launch and bound launch begins with it. After a RANK_ERROR
 * the workspaces cannot be used any more. */
MLAFIX_API mlafix_status mlafix_group_check(const mlafix_group *group)
    MLAFIX_NOEXCEPT;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLAFIX_INCLUDE_RUNTIME_GROUP_H */
