//===- Case.h - What is measured --------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A case has buffers, the implementations that are timed on them (the library's
// and baselines), the number of bytes to move, and a check of the result. Cases
// are data, independent of a device.
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_BENCH_CASE_H
#define MLAFIX_BENCH_CASE_H

#include "mlafix/runtime.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mlafix::bench {

/// The contents of a buffer before anything runs.
enum class Content {
  Payload, ///< random, magnitude 0.25 to 4, any sign
  Lse,     ///< random, -3 to 3
  Values,  ///< the listed values, converted
  Poison   ///< 0xff bytes: NaN in every float type
};

/// A contiguous row-major tensor. Each set of a case has its own copy.
struct Buffer {
  mlafix_dtype type;
  std::vector<int64_t> sizes;
  Content content;
  std::vector<double> values; ///< Content::Values

  int64_t elements() const;
  int64_t bytes() const;
};

/// A tensor argument: part of a buffer. Offset and strides in elements.
struct View {
  int buffer = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  View transposed() const;
  /// The view at `index` of dimension `dim`, without that dimension.
  View at(unsigned dim, int64_t index) const;
  int64_t index(const std::vector<int64_t> &position) const;
};

struct Argument {
  enum Kind { Tensor, None, Integer, Real } kind = None;
  View view;
  int64_t integer = 0;
  float real = 0;

  Argument() = default;
  Argument(View view) : kind(Tensor), view(std::move(view)) {}
  Argument(int64_t value) : kind(Integer), integer(value) {}
  Argument(int value) : kind(Integer), integer(value) {}
  Argument(float value) : kind(Real), real(value) {}
};

/// A launch of a kernel: for mlafix one of a unit, for a baseline a function in
/// the file given by --rivals (benchmarks/README.md).
struct Launch {
  std::string function;
  std::string bindings; ///< "H=128,D=128,T=bf16"; ours only
  std::vector<Argument> args;
  /// For baselines: the total number of threads (the fastest block size is
  /// measured), or if `gridX` is not 0, the exact grid, with blocks of
  /// `threads`.
  int64_t items = 0;
  uint32_t gridX = 0, gridY = 1, threads = 0;
};

/// Reads elements of buffers before and after a run as numbers, for the checks.
class Outcome {
public:
  virtual ~Outcome() = default;
  virtual double before(int buffer, int64_t index) const = 0;
  virtual double after(int buffer, int64_t index) const = 0;
  /// The number of roundings between launches: see Implementation.
  int roundings = 0;
};

/// Returns an empty string if the outcome is right, else a sentence about the
/// error.
using Check = std::function<std::string(const Outcome &)>;

/// A kernel or a library that runs the case, timed against the others.
struct Implementation {
  std::string name; ///< "mlafix", "mlafix, dependent", "cuda", ...
  bool isBaseline = false;
  bool isDependent = false; ///< with programmatic dependent launch
  /// For baselines: the mlafix implementation to compare with.
  std::string against;
  std::vector<Launch> launches;
  int roundings = 0; ///< roundings of intermediate results to the rows' type
  Check check = {};  ///< replaces the case's check, unless it is empty
};

/// Bytes that every implementation must move.
struct Traffic {
  int64_t read = 0, written = 0;
  int64_t total() const { return read + written; }
};

struct Case {
  std::string name; ///< "merge/bf16_h128_d128/n1024"
  std::vector<Buffer> buffers;
  std::vector<Implementation> implementations; ///< mlafix's own first
  Traffic traffic;
  /// True if the case is compared with the stream roof; false if it moves
  /// almost nothing.
  bool hasRoof = true;
  Check check;

  /// Adds a buffer and returns a view of all of it.
  View add(mlafix_dtype type, std::vector<int64_t> sizes, Content content,
           std::vector<double> values = {});
  int64_t bytesPerSet() const;
};

/// All cases, in the order of the table: group by group, by their names.
std::vector<Case> allCases();

/// Groups of cases: addMergeCases of CasesMerge.cpp, and so on.
#define MLAFIX_CASES(name) void add##name##Cases(std::vector<Case> &cases);
#include "Cases.inc"
#undef MLAFIX_CASES

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_CASE_H
