//===- UnitLimits.h - Limits of what a unit may hold ------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The limits of a unit. The compiler writes no unit that exceeds them, and the
// runtime loads none. MLAFIX_MAX_ARGS, MLAFIX_MAX_DIMS and MLAFIX_MAX_PARAMS of
// runtime.h are limits of a unit too.
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
/// The maximum number of JSON values in a manifest. The compiler writes at most
/// one value per eight bytes.
constexpr size_t jsonValues = manifestBytes / 8;
constexpr size_t kernels = 4096;
constexpr size_t bindings = 64;
/// The maximum number of arguments that are lists or have a tensor per rank.
constexpr size_t peers = 4;
constexpr size_t aliases = 256;
constexpr size_t proofs = 16 * MLAFIX_MAX_ARGS;
constexpr size_t targets = 64;
constexpr size_t images = 8;
constexpr size_t variants = 64;
constexpr size_t guards = 3 * MLAFIX_MAX_ARGS;
constexpr size_t checks = 64;      ///< conditions per kernel
constexpr size_t checkSteps = 256; ///< steps per condition
constexpr size_t extents = MLAFIX_MAX_DIMS;
constexpr size_t nameBytes = 1024;
/// The maximum length in bytes of a kernel's name in its source. It is less
/// than nameBytes, because the entries of code versions have a suffix after
/// this name.
constexpr size_t kernelNameBytes = nameBytes - 64;
constexpr int64_t threads = 1024;
constexpr int64_t clusterBlocks = 8; ///< blocks per cluster, on any chip
constexpr int64_t rowsPerBlock = 1 << 20;
constexpr int64_t blocksPerSm = 32;
constexpr int64_t groups = 32; ///< lane groups per row
/// The least number of threads per block with lane groups.
constexpr int64_t leastGroupedBlock = 128;
constexpr int64_t warpThreads =
    32; ///< threads of a warp, on every CUDA GPU so far
/// For parameters of kind `lines`: the bytes per cache line, and the maximum
/// size in bytes of a tensor to prefetch.
constexpr int64_t tableLineBytes = 128;
constexpr int64_t tableBytes = 128 << 10;
constexpr int64_t threadsPerSm = 1 << 20;

/// The maximum number of 8-byte slots of all parameters. A parameter with a
/// value per rank takes several slots.
constexpr size_t slots = MLAFIX_MAX_PARAMS + (peers + 1) * MLAFIX_MAX_RANKS;

/// Returns true if a manifest may contain the text. Names occur in messages and
/// C strings, so control characters are not allowed. The reader or writer of
/// the JSON checks that the text is UTF-8.
inline bool isText(std::string_view text) {
  return text.size() <= nameBytes &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

/// Returns true if the text may occur in a list of bindings, such as
/// "D=128,T=bf16".
inline bool isBindable(std::string_view text) {
  return !text.empty() && text.find_first_of("=,") == text.npos;
}

} // namespace mlafix::limits

#endif // MLAFIX_UNITLIMITS_H
