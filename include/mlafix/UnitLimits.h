//===- UnitLimits.h - Most of everything that a unit may hold ---*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// For the compiler, which writes no unit beyond these, and for the runtime,
// which loads none. MLAFIX_MAX_ARGS, _DIMS and _PARAMS of runtime.h belong to
// them.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_UNITLIMITS_H
#define MLAFIX_UNITLIMITS_H

#include "mlafix/runtime.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mlafix::limits {

constexpr uint64_t manifestBytes = uint64_t(16) << 20;
constexpr uint64_t fileBytes = uint64_t(1) << 30;
constexpr int jsonDepth = 16;
/// The largest manifests of the compiler have at most one value per eight
/// bytes.
constexpr size_t jsonValues = manifestBytes / 8;
constexpr size_t kernels = 4096;
constexpr size_t bindings = 64;
constexpr size_t peers = 4; ///< arguments with one tensor per rank, or lists
constexpr size_t aliases = 256;
constexpr size_t proofs = 16 * MLAFIX_MAX_ARGS;
constexpr size_t targets = 64;
constexpr size_t images = 8;
constexpr size_t variants = 64;
constexpr size_t guards = 3 * MLAFIX_MAX_ARGS;
constexpr size_t checks = 64;      ///< per kernel
constexpr size_t checkSteps = 256; ///< per check
constexpr size_t extents = MLAFIX_MAX_DIMS;
constexpr size_t nameBytes = 1024;
/// Limit of a kernel's name in its source: code versions append to it.
constexpr size_t kernelNameBytes = nameBytes - 64;
constexpr int64_t threads = 1024;
constexpr int64_t clusterBlocks = 8; ///< per cluster, on any chip
constexpr int64_t rowsPerBlock = 1 << 20;
constexpr int64_t blocksPerSm = 32;
constexpr int64_t groups = 32;             ///< lane groups per row
constexpr int64_t leastGroupedBlock = 128; ///< threads per block with lane
                                           ///< groups
constexpr int64_t warpThreads = 32;        ///< on every CUDA GPU so far
/// Parameters of kind `lines`: bytes per line, and limit of a prefetched
/// tensor.
constexpr int64_t tableLineBytes = 128;
constexpr int64_t tableBytes = 128 << 10;
constexpr int64_t threadsPerSm = 1 << 20;

/// 8-byte slots of all parameters; those with a value per rank take several.
constexpr size_t slots = MLAFIX_MAX_PARAMS + (peers + 1) * MLAFIX_MAX_RANKS;

/// True if the text may occur in a manifest: names appear in messages and C
/// strings. Whoever reads or writes JSON checks that it is UTF-8.
inline bool isText(std::string_view text) {
  return text.size() <= nameBytes &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

/// True if the text may occur in a list of bindings, "D=128,T=bf16".
inline bool isBindable(std::string_view text) {
  return !text.empty() && text.find_first_of("=,") == text.npos;
}

} // namespace mlafix::limits

#endif // MLAFIX_UNITLIMITS_H
