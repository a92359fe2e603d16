//===- Case.h - What is measured --------------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// A case describes one measurement. It has buffers, the implementations to time
// on them (mlafix's and baselines), the number of bytes to move, and a check of
// the result. A Case object is only a description and needs no device.
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
  Payload, ///< random, magnitude 0.25 to 4, with either sign
  Lse,     ///< random, -3 to 3
  Values,  ///< Buffer::values, converted to the dtype
  Poison   ///< bytes 0xff, which are NaN in every float type
};

/// A contiguous row-major tensor. A case is measured on several sets of
/// buffers, and each set has a copy of this tensor.
struct Buffer {
  mlafix_dtype type;
  std::vector<int64_t> sizes;
  Content content;
  std::vector<double> values; ///< the contents for Content::Values

  int64_t elements() const;
  int64_t bytes() const;
};

/// A tensor argument that is part of a buffer. The offset and the strides are
/// in elements.
struct View {
  int buffer = 0;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;

  View transposed() const;
  /// Returns the view at `index` of dim `dim`. The result does not have that
  /// dim.
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

/// A launch. For mlafix, `function` is a kernel of a unit. For a baseline, it
/// is a function in the file that --rivals gives (benchmarks/README.md).
struct Launch {
  std::string function;
  std::string bindings; ///< such as "H=128,D=128,T=bf16"; mlafix only
  std::vector<Argument> args;
  /// For a baseline with `gridX` of 0: the total number of threads. Several
  /// block sizes are then measured, and the fastest is used.
  int64_t items = 0;
  /// For a baseline with a fixed launch: the grid, and the threads of a block.
  uint32_t gridX = 0, gridY = 1, threads = 0;
};

/// The elements of buffers as numbers, before and after a run. A Check reads
/// them.
class Outcome {
public:
  virtual ~Outcome() = default;
  virtual double before(int buffer, int64_t index) const = 0;
  virtual double after(int buffer, int64_t index) const = 0;
  /// The `roundings` of the Implementation that ran.
  int roundings = 0;
};

/// A function that returns "" if the outcome is right, else a sentence about
/// the error.
using Check = std::function<std::string(const Outcome &)>;

/// A way to run the case, by mlafix or by a baseline. Its time is compared with
/// the times of the other implementations.
struct Implementation {
  std::string name; ///< such as "mlafix", "mlafix, dependent" or "cuda"
  bool isBaseline = false;
  bool isDependent = false; ///< uses programmatic dependent launch
  /// The name of the mlafix implementation whose time is compared with the time
  /// of this one. "" if there is none.
  std::string against;
  std::vector<Launch> launches;
  /// The number of times that intermediate results are rounded to the rows'
  /// dtype.
  int roundings = 0;
  /// If set, replaces the check of the case.
  Check check = {};
};

/// The number of bytes that every implementation must move.
struct Traffic {
  int64_t read = 0, written = 0;
  int64_t total() const { return read + written; }
};

struct Case {
  std::string name; ///< such as "merge/bf16_h128_d128/n1024"
  std::vector<Buffer> buffers;
  std::vector<Implementation>
      implementations; ///< mlafix's implementation comes first
  Traffic traffic;
  /// True if the time is compared with the roof, a stream kernel. It is false
  /// for a case that moves almost no bytes.
  bool hasRoof = true;
  Check check;

  /// Adds a buffer and returns a view of the whole buffer.
  View add(mlafix_dtype type, std::vector<int64_t> sizes, Content content,
           std::vector<double> values = {});
  /// Adds a baseline whose time is compared with that of `against`.
  void addBaseline(const std::string &name, const Launch &launch,
                   const std::string &against = "mlafix");
  /// Adds a baseline, and its variant for dependent launch.
  void addBaselines(const std::string &name, Launch launch);
  int64_t bytesPerSet() const;
};

/// Returns the two implementations that launch mlafix's kernels: without and
/// with dependent launch.
std::vector<Implementation> ours(const std::vector<Launch> &launches);

/// Returns bindings such as "H=128,D=128,T=bf16".
std::string bindingsOf(int64_t heads, int64_t dim,
                       const std::string &others = "T=bf16");

/// Returns a part of a case's name, such as "h128_d128".
std::string shaped(int64_t heads, int64_t dim);

/// Returns all cases in the order of the table. The groups are sorted by name.
std::vector<Case> allCases();

/// Functions that add a group of cases, such as addMergeCases() in
/// CasesMerge.cpp.
#define MLAFIX_CASES(name) void add##name##Cases(std::vector<Case> &cases);
#include "Cases.inc"
#undef MLAFIX_CASES

} // namespace mlafix::bench

#endif // MLAFIX_BENCH_CASE_H
