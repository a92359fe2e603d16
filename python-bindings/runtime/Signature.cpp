//===- Signature.cpp - A kernel's arguments and keys ----------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Signature.h"
#include "Errors.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <nanobind/stl/string.h>

namespace nb = nanobind;
using namespace mlafix::python;

namespace {

std::string text(nb::handle dict, const char *key) {
  nb::object value = nb::borrow<nb::dict>(dict).attr("get")(key, nb::none());
  return value.is_none() ? "" : textOf(value);
}

int32_t dtypeOf(const std::string &name) {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR)                            \
  if (name == NAME)                                                            \
    return VALUE;
#include "mlafix/DTypes.def"
  return 0;
}

int32_t scalarKind(const std::string &dtype) {
  if (dtype == "index" || dtype == "i64")
    return MLAFIX_ARG_I64;
  if (dtype == "i32")
    return MLAFIX_ARG_I32;
  if (dtype == "f32")
    return MLAFIX_ARG_F32;
  if (dtype == "bool")
    return MLAFIX_ARG_BOOL;
  throwArgumentError("argument \"signature\": expected a scalar of dtype "
                     "index, i64, i32, f32 or bool, got %s",
                     dtype.c_str());
}

/// Returns the dtypes that a dtype variable may have, as " (bf16, f16, …)": the
/// integers if `example` is an integer, and the floats if it is a float. If the
/// kernel only moves the elements (`isMoved`), returns all dtypes. f4e2m1 is
/// never among them. Returns "" if `example` is "bool".
std::string dtypesLike(const std::string &example, bool isMoved) {
  if (example == "bool")
    return "";
  auto isInteger = [](std::string_view name) {
    return name.front() == 'i' || name.front() == 'u';
  };
  std::string names;
  for (const char *name : {
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR) NAME,
#include "mlafix/DTypes.def"
       })
    if (name != std::string_view("f4e2m1") &&
        (isMoved || (name != std::string_view("bool") &&
                     isInteger(name) == isInteger(example))))
      names += (names.empty() ? "" : ", ") + std::string(name);
  return " (" + names + "; there are no other" +
         (isMoved              ? "s)"
          : isInteger(example) ? " integers)"
                               : " floats)");
}

/// Converts the arguments of a signature from JSON, and adds their keys.
class Parser {
public:
  Parser(Signature &signature, nb::object specialize)
      : signature(signature), specialize(std::move(specialize)) {}

  void addArg(nb::handle json) {
    ArgSpec arg;
    arg.name = text(json, "name");
    std::string dtype = text(json, "dtype");
    if (text(json, "kind") == "scalar") {
      arg.kind = scalarKind(dtype);
      arg.expected = arg.kind == MLAFIX_ARG_F32    ? "a number"
                     : arg.kind == MLAFIX_ARG_BOOL ? "a bool"
                                                   : "an integer";
    } else {
      addTensor(json, dtype, arg);
    }
    signature.args.push_back(std::move(arg));
  }

private:
  void addTensor(nb::handle json, const std::string &dtype, ArgSpec &arg) {
    std::string kind = text(json, "kind");
    arg.kind = kind == "peers"  ? MLAFIX_ARG_PEERS
               : kind == "list" ? MLAFIX_ARG_LIST
                                : MLAFIX_ARG_TENSOR;
    std::string variable = text(json, "dtype_name");
    if (!variable.empty())
      arg.dtypeKey = key(variable, true);
    else if ((arg.dtype = dtypeOf(dtype)) == 0)
      throwArgumentError("argument \"signature\": expected a dtype of "
                         "docs/UnitFormat.md for \"%s\", got \"%s\"",
                         arg.name.c_str(), dtype.c_str());
    arg.expected = (kind == "peers"  ? "a list of each rank's tensor of dtype "
                    : kind == "list" ? "a list of tensors of dtype "
                                     : "a tensor of dtype ") +
                   (variable.empty() ? dtype : variable);
    if (!variable.empty())
      arg.dtypes = dtypesLike(dtype, text(json, "dtype_moved") == "True");
    arg.written = text(json, "access") != "read";
    arg.optional = text(json, "optional") == "True";
    nb::object shape = nb::borrow<nb::dict>(json)["shape"];
    for (nb::handle dim : nb::borrow<nb::dict>(json)["dims"]) {
      std::string name = textOf(dim);
      // A dim whose size the kernel fixes binds no key.
      bool isFree = nb::cast<int64_t>(shape[arg.dims.size()]) < 0;
      bool bound =
          !name.empty() &&
          ((isFree && std::isupper(static_cast<unsigned char>(name.front()))) ||
           isListed(dim));
      if (!name.empty() && name.front() == '(')
        addProduct(name, arg);
      arg.dimKeys.push_back(bound ? key(name, false) : -1);
      arg.dims.push_back(std::move(name));
    }
    if (arg.dims.size() > MLAFIX_MAX_DIMS)
      throwArgumentError("argument \"signature\": expected at most %d dims for "
                         "\"%s\", got %zu",
                         MLAFIX_MAX_DIMS, arg.name.c_str(), arg.dims.size());
  }

  /// Adds a dim that is a product to `arg`. Its `name` has the form "(G 128)".
  void addProduct(const std::string &name, ArgSpec &arg) {
    size_t space = name.find(' ');
    if (space == std::string::npos || name.back() != ')')
      throwArgumentError("argument \"signature\": expected a product of two "
                         "dims for \"%s\", got \"%s\"",
                         arg.name.c_str(), name.c_str());
    const std::string factors[2] = {
        name.substr(1, space - 1),
        name.substr(space + 1, name.size() - space - 2)};
    Product product;
    product.dim = static_cast<uint32_t>(arg.dims.size());
    for (size_t i = 0; i < 2; ++i) {
      bool isName =
          std::isupper(static_cast<unsigned char>(factors[i].front()));
      if (isName)
        product.keys[i] = key(factors[i], false);
      else
        product.numbers[i] = std::strtoll(factors[i].c_str(), nullptr, 10);
    }
    arg.products.push_back(product);
  }

  bool isListed(nb::handle dim) {
    return !specialize.is_none() &&
           PySequence_Contains(specialize.ptr(), dim.ptr()) == 1;
  }

  int32_t key(const std::string &name, bool isDType) {
    auto &keys = signature.keys;
    auto found = std::find_if(keys.begin(), keys.end(), [&](const KeyName &k) {
      return k.name == name && k.isDType == isDType;
    });
    if (found != keys.end())
      return static_cast<int32_t>(found - keys.begin());
    if (keys.size() == maxKeys)
      throwArgumentError("argument \"signature\": expected at most %d names to "
                         "bind, got more",
                         maxKeys);
    keys.push_back({name, isDType});
    return static_cast<int32_t>(keys.size() - 1);
  }

  Signature &signature;
  nb::object specialize;
};

void applyView(Signature &signature, const std::string &name,
               nb::handle permutation) {
  for (ArgSpec &arg : signature.args) {
    if (arg.name != name)
      continue;
    std::vector<bool> seen(arg.dims.size());
    for (nb::handle dim : permutation) {
      long index = PyLong_AsLong(dim.ptr());
      if (index == -1 && PyErr_Occurred())
        nb::raise_python_error();
      if (index < 0 || index >= static_cast<long>(seen.size()) || seen[index])
        break;
      seen[index] = true;
      arg.view.push_back(static_cast<uint8_t>(index));
    }
    if (arg.view.size() != arg.dims.size() ||
        nb::len(permutation) != arg.dims.size())
      throwArgumentError("argument \"views\": expected a permutation of %zu "
                         "dims for \"%s\", got %s",
                         arg.dims.size(), name.c_str(),
                         reprOf(permutation).c_str());
    return;
  }
  throwArgumentError("argument \"views\": expected the names of arguments, got "
                     "\"%s\"",
                     name.c_str());
}

/// Counts the outputs, and finds the inputs from which a call takes the sizes
/// of the outputs that it allocates.
void findSources(Signature &signature) {
  auto &args = signature.args;
  while (signature.numOutputs < args.size() &&
         args[signature.numOutputs].isTensor() &&
         args[signature.numOutputs].written)
    ++signature.numOutputs;
  auto isInput = [&](size_t index) {
    return index >= signature.numOutputs &&
           (args[index].isTensor() || args[index].isMany()) &&
           !args[index].optional;
  };
  for (size_t output = 0; output < signature.numOutputs; ++output) {
    ArgSpec &made = args[output];
    for (const std::string &dim : made.dims) {
      DimSource place;
      for (size_t i = 0; i < args.size() && place.arg < 0; ++i) {
        auto found = std::find(args[i].dims.begin(), args[i].dims.end(), dim);
        if (isInput(i) && found != args[i].dims.end())
          place = {static_cast<int32_t>(i),
                   static_cast<int32_t>(found - args[i].dims.begin())};
      }
      if (place.arg < 0)
        break;
      made.sources.push_back(place);
    }
    if (made.sources.size() != made.dims.size())
      made.sources.clear();
    for (size_t i = 0; i < args.size() && made.twin < 0; ++i)
      if (isInput(i) && args[i].dims == made.dims && args[i].view == made.view)
        made.twin = static_cast<int32_t>(i);
  }
}

} // namespace

Signature Signature::parse(const std::string &name, nb::str json,
                           nb::object views, nb::object specialize) {
  nb::object parsed = nb::module_::import_("json").attr("loads")(json);
  if (!nb::isinstance<nb::dict>(parsed) ||
      !nb::borrow<nb::dict>(parsed).contains("args"))
    throwArgumentError("argument \"signature\": expected a JSON object with "
                       "\"args\", got another text");
  Signature signature;
  signature.name = name;
  Parser parser(signature, std::move(specialize));
  for (nb::handle arg : parsed["args"])
    parser.addArg(arg);
  if (signature.args.size() > MLAFIX_MAX_ARGS)
    throwArgumentError("argument \"signature\": expected at most %d arguments, "
                       "got %zu",
                       MLAFIX_MAX_ARGS, signature.args.size());
  for (size_t i = 0; i < signature.args.size(); ++i)
    if (!signature.args[i].optional)
      signature.numRequired = i + 1;
  if (!views.is_none())
    for (auto [arg, permutation] : nb::cast<nb::dict>(views))
      applyView(signature, textOf(arg), permutation);
  findSources(signature);
  return signature;
}

bool Key::operator==(const Key &other) const {
  return count == other.count && std::memcmp(values.data(), other.values.data(),
                                             count * sizeof(int64_t)) == 0;
}

size_t KeyHash::operator()(const Key &key) const {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint32_t i = 0; i < key.count; ++i) {
    hash ^= static_cast<uint64_t>(key.values[i]);
    hash *= 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  }
  return hash;
}
