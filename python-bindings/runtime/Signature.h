//===- Signature.h - A kernel's arguments and keys --------------*- C++ -*-===//
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

/// Refers to a dim of a tensor argument: `arg` is the index of the argument,
/// and `dim` the index of the dim in the kernel's order. Both are -1 if there
/// is no such dim.
struct DimSource {
  int32_t arg = -1, dim = -1;
};

/// A dim that is a product of two factors. A factor is a name that arguments
/// bind, or a number. If the other arguments of a call bind only one factor,
/// the size of the dim gives the other factor.
struct Product {
  uint32_t dim = 0; ///< the position of the dim in its tensor
  /// The key of each factor that is a name; -1 for a number.
  std::array<int32_t, 2> keys{-1, -1};
  /// The value of each factor that is a number.
  std::array<int64_t, 2> numbers{0, 0};
};

/// One argument of a kernel.
struct ArgSpec {
  std::string name;
  int32_t kind;         ///< a mlafix_arg_kind
  bool written = false; ///< true for a tensor that the kernel writes
  bool optional = false;
  int32_t dtype = 0;     ///< for tensors: a mlafix_dtype; 0 if it is a variable
  int32_t dtypeKey = -1; ///< for tensors: the key that the dtype binds, or -1
  std::vector<std::string> dims;
  std::vector<int32_t> dimKeys; ///< the key of each dim, or -1
  std::vector<Product> products;
  /// For tensors: dim i of the kernel is dim view[i] of the passed array. An
  /// empty vector stands for the same order of dims.
  std::vector<uint8_t> view;
  std::string expected; ///< "a tensor of dtype T", "an integer", ...
  std::string dtypes;   ///< the dtypes allowed for T, in parentheses; or ""
  /// For outputs: for each dim, a dim of an input with the same size, so that a
  /// call can allocate the output. Empty if a dim of the output is in no input.
  std::vector<DimSource> sources;
  /// For outputs: the index of the first input with the same dims in the same
  /// order, or -1 if there is none.
  int32_t twin = -1;

  bool isTensor() const { return kind == MLAFIX_ARG_TENSOR; }
  /// True if a call passes several tensors for the argument: those of all
  /// ranks, or a list. The size of the first of `dims` is their number.
  bool isMany() const {
    return kind == MLAFIX_ARG_PEERS || kind == MLAFIX_ARG_LIST;
  }
};

/// A name that the arguments of a call bind: a dim or a dtype variable.
struct KeyName {
  std::string name;
  bool isDType;
};

enum { maxKeys = 16 };

struct Signature {
  std::string name; ///< the kernel's name
  std::vector<ArgSpec> args;
  std::vector<KeyName> keys;
  size_t numRequired = 0; ///< the arguments from this index on may be omitted
  size_t numOutputs = 0;  ///< the number of leading arguments that are outputs

  /// Parses the JSON text of a signature. `views` maps names of arguments to
  /// the permutations in ArgSpec::view, or is None. `specialize` lists
  /// lower-case dims that calls bind as well, or is None. Throws ArgumentError.
  static Signature parse(const std::string &name, nanobind::str json,
                         nanobind::object views, nanobind::object specialize);
};

/// The value of a key that no argument of the call has bound.
constexpr int64_t unbound = INT64_MIN;

/// Identifies the specialisation for a call: the values of the signature's
/// keys, then the device, then a bit for each tensor that was given.
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
