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

/// A dim that is a product of two factors. A call may know only one of them.
struct Product {
  uint32_t dim = 0; ///< the number of the dim
  /// of the factors that are names; else -1
  std::array<int32_t, 2> keys{-1, -1};
  std::array<int64_t, 2> numbers{0, 0}; ///< the values of the other factors
};

/// One argument.
struct ArgSpec {
  std::string name;
  int32_t kind;         ///< a mlafix_arg_kind
  bool written = false; ///< for tensors only
  bool optional = false;
  int32_t dtype = 0;     ///< for tensors: a mlafix_dtype; 0 if it is a variable
  int32_t dtypeKey = -1; ///< for tensors: the key that the dtype binds, or -1
  std::vector<std::string> dims;
  std::vector<int32_t> dimKeys; ///< the key of each dim, or -1
  std::vector<Product> products;
  /// For tensors: the dim of the passed array that becomes dim i. Empty: the
  /// dims are unchanged.
  std::vector<uint8_t> view;
  std::string expected; ///< "a tensor of dtype T", "an integer", ...
  std::string dtypes;   ///< the dtypes allowed for T, in parentheses; or ""
  /// For outputs: an input that has the same size for each dim, so that a call
  /// can allocate the output. Empty if some dim has none.
  std::vector<DimSource> sources;
  /// For outputs: the index of an input with the same dims and, unless the
  /// dtype is bound separately, the same dtype. -1 if there is none.
  int32_t twin = -1;

  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR; }
  /// True if a call passes several tensors: those of the ranks, or a list. The
  /// first of `dims` counts them.
  bool isMany() const {
    return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
  }
};

/// A name that arguments bind: an upper-case dim, or a dtype.
struct KeyName {
  std::string name;
  bool isDType;
};

enum { maxKeys = 16 };

struct Signature {
  std::string name; ///< the kernel's name
  std::vector<ArgSpec> args;
  std::vector<KeyName> keys;
  size_t numRequired = 0; ///< arguments past these may be omitted
  size_t numOutputs = 0;  ///< the leading tensors, which are written

  /// Parses the JSON text of a signature. `views` is {argument: permutation} or
  /// None, `specialize` lists further lower-case dims to bind. Throws
  /// ArgumentError.
  static Signature parse(const std::string &name, nanobind::str json,
                         nanobind::object views, nanobind::object specialize);
};

/// The value of a key that no argument has bound yet.
constexpr int64_t unbound = INT64_MIN;

/// The values of a signature's keys in one call, with the device and a bit for
/// each argument that was given.
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
