//===- Signature.h - what a kernel takes ------------------------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_PYTHON_SIGNATURE_H
#define MLAFIX_PYTHON_SIGNATURE_H

#include "mlafix/runtime.h"
#include <array>
#include <climits>
#include <nanobind/nanobind.h>
#include <string>
#include <vector>

namespace mlafix::python {

/// A dim of a tensor argument, in the kernel's order.
struct DimSource {
  int32_t arg = -1, dim = -1;
};

/// A dim that is a product of two, of which a call may know one alone.
struct Product {
  uint32_t dim = 0;                     ///< its number
  std::array<int32_t, 2> keys{-1, -1};  ///< of the factors that are names
  std::array<int64_t, 2> numbers{0, 0}; ///< the others
};

/// One argument.
struct ArgSpec {
  std::string name;
  int32_t kind;         ///< a mlafix_arg_kind
  bool written = false; ///< tensors
  bool optional = false;
  int32_t dtype = 0;     ///< tensors: a mlafix_dtype, or 0 where a name stands
  int32_t dtypeKey = -1; ///< tensors: the key that the dtype binds, or -1
  std::vector<std::string> dims;
  std::vector<int32_t> dimKeys; ///< a dim's key, or -1
  std::vector<Product> products;
  /// Tensors: which dim of what is passed becomes dim i; empty: as passed.
  std::vector<uint8_t> view;
  std::string expected; ///< "a tensor of dtype T", "an integer", ...
  std::string dtypes;   ///< what T may be, in parentheses; or ""
  /// Outputs: for each dim an input that has it, so that the output can be made
  /// for a call. Empty where there is none for some dim.
  std::vector<DimSource> sources;
  /// Outputs: the index of an input with the same dims and, unless that is
  /// bound separately, the same dtype; or -1.
  int32_t twin = -1;

  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR; }
  /// True if a call passes several tensors, of the ranks or a list; `dims`
  /// begins with the one that counts them.
  bool isMany() const {
    return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
  }
};

/// A name that is bound by the arguments: an upper-case dim, or a dtype.
struct KeyName {
  std::string name;
  bool isDType;
};

enum { maxKeys = 16 };

struct Signature {
  std::string name; ///< the kernel's
  std::vector<ArgSpec> args;
  std::vector<KeyName> keys;
  size_t numRequired = 0; ///< arguments past these may be left off a call
  size_t numOutputs = 0;  ///< leading tensors that are written

  /// From the JSON text of a signature. `views` is {argument: permutation} or
  /// None, `specialize` lists lower-case dims to bind as well. Throws
  /// ArgumentError.
  static Signature parse(const std::string &name, nanobind::str json,
                         nanobind::object views, nanobind::object specialize);
};

/// The value of a key that no argument has bound.
constexpr int64_t unbound = INT64_MIN;

/// The values of a signature's keys in one call, the device, and a bit for each
/// argument that was given.
struct Key {
  std::array<int64_t, maxKeys + 2> values;
  uint32_t count;

  bool operator==(const Key &other) const;
};

struct KeyHash {
  size_t operator()(const Key &key) const;
};

} // namespace mlafix::python

#endif // MLAFIX_PYTHON_SIGNATURE_H
