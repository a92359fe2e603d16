//===- Products.cpp - The factors of dims that are products ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Args.h"

using namespace mlafix::python;

/// Checks a product whose factors are known, or finds the one that is not.
/// Returns whether it has found one.
bool CallArgs::bindProduct(const Signature &signature, uint32_t index,
                           const Product &product) {
  const ArgSpec &spec = signature.args[index];
  ArgContext place = contextOf(signature, spec);
  auto dim = product.dim;
  const char *name = spec.dims[dim].c_str();
  long long size = views[index].sizes[dim];
  int64_t factors[2];
  int missing = -1;
  for (int i = 0; i < 2; ++i) {
    int32_t slot = product.keys[i];
    factors[i] = slot < 0 ? product.numbers[i] : key.values[slot];
    if (factors[i] == unbound && missing >= 0)
      return false;
    if (factors[i] == unbound)
      missing = i;
  }
  int64_t whole;
  if (missing < 0) {
    if (__builtin_mul_overflow(factors[0], factors[1], &whole) || whole != size)
      place.fail("expected size %lld * %lld in dim %u (\"%s\"), got %lld",
                 static_cast<long long>(factors[0]),
                 static_cast<long long>(factors[1]), dim, name, size);
    return false;
  }
  long long known = factors[1 - missing];
  if (size < 1 || size % known != 0)
    place.fail("expected a multiple of %lld in dim %u (\"%s\"), got %lld",
               known, dim, name, size);
  int32_t slot = product.keys[missing];
  key.values[slot] = size / known;
  boundBy[slot] = index;
  return true;
}

/// Each factor that is found may be what another product lacks.
void CallArgs::bindProducts(const Signature &signature) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < count; ++i)
      if (present >> i & 1)
        for (const Product &product : signature.args[i].products)
          again |= bindProduct(signature, i, product);
  }
}
