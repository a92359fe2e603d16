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
/// The largest manifests that the compiler writes have a value for each eight
/// bytes or more.
constexpr size_t jsonValues = manifestBytes / 8;
constexpr size_t kernels = 4096;
constexpr size_t bindings = 64;
constexpr size_t peers = 4; ///< arguments with a tensor of each rank, and lists
constexpr size_t aliases = 256;
constexpr size_t proofs = 16 * MLAFIX_MAX_ARGS;
constexpr size_t targets = 64;
constexpr size_t images = 8;
constexpr size_t variants = 64;
constexpr size_t guards = 3 * MLAFIX_MAX_ARGS;
constexpr size_t checks = 64;      ///< of a kernel's launches
constexpr size_t checkSteps = 256; ///< of a check
constexpr size_t extents = MLAFIX_MAX_DIMS;
constexpr size_t nameBytes = 1024;
/// Of a kernel's name in a source: code versions append to it.
constexpr size_t kernelNameBytes = nameBytes - 64;
constexpr int64_t threads = 1024;
constexpr int64_t clusterBlocks = 8; ///< of a cluster, on any chip
constexpr int64_t rowsPerBlock = 1 << 20;
constexpr int64_t blocksPerSm = 32;
constexpr int64_t groups = 32;             ///< of lanes that share a row
constexpr int64_t leastGroupedBlock = 128; ///< threads of a block of groups
constexpr int64_t warpThreads = 32;        ///< of every GPU that CUDA has had
/// A parameter of kind `lines`: bytes of a line, and of a tensor that has some.
constexpr int64_t tableLineBytes = 128;
constexpr int64_t tableBytes = 128 << 10;
constexpr int64_t threadsPerSm = 1 << 20;

/// 8-byte slots that a kernel's parameters take: those for ranks take several.
constexpr size_t slots = MLAFIX_MAX_PARAMS + (peers + 1) * MLAFIX_MAX_RANKS;

/// True if a text may be a string of a manifest: names end up in messages and C
/// strings. It is UTF-8, too, which is left to those who read and write JSON.
inline bool isText(std::string_view text) {
  return text.size() <= nameBytes &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
         });
}

/// True if a text may be a part of a list of bindings, "D=128,T=bf16".
inline bool isBindable(std::string_view text) {
  return !text.empty() && text.find_first_of("=,") == text.npos;
}

} // namespace mlafix::limits

#endif // MLAFIX_UNITLIMITS_H
