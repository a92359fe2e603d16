//===- Signature.cpp - a kernel's signature for hosts ---------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Signature.h"
#include "dialect/LaunchChecks.h"
#include "lib/Analysis/Aliasing.h"
#include "lib/Analysis/Proofs.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlafix;

static DictionaryAttr describeTensor(KernelOp kernel, unsigned index,
                                     MemRefType type) {
  Builder b(kernel.getContext());
  auto numbers = [&](ArrayRef<int64_t> values) {
    return b.getArrayAttr(
        llvm::map_to_vector(values, [&](int64_t value) -> Attribute {
          return b.getI64IntegerAttr(ShapedType::isDynamic(value) ? -1 : value);
        }));
  };
  StringRef kind = kernel.isArgPeers(index)  ? "peers"
                   : kernel.isArgMany(index) ? "list"
                                             : "tensor";
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("name", b.getStringAttr(kernel.getArgName(index))),
      b.getNamedAttr("kind", b.getStringAttr(kind)),
      b.getNamedAttr("dtype",
                     b.getStringAttr(getDTypeName(type.getElementType()))),
      b.getNamedAttr("dims", kernel.getArgDims(index)),
      b.getNamedAttr("shape", numbers(type.getShape())),
      b.getNamedAttr("strides", numbers(type.getStridesAndOffset().first)),
      b.getNamedAttr("access", b.getStringAttr(kernel.getArgAccess(index))),
      b.getNamedAttr("optional", b.getBoolAttr(kernel.isArgOptional(index))),
  };
  if (Attribute most = kernel.getArgAttr(index, kListAttr))
    fields.push_back(b.getNamedAttr("most", most));
  if (Attribute swizzle = kernel.getArgAttr(index, kSwizzleAttr))
    fields.push_back(b.getNamedAttr("swizzle", swizzle));
  return b.getDictionaryAttr(fields);
}

static DictionaryAttr describeScalar(KernelOp kernel, unsigned index,
                                     Type type) {
  Builder b(kernel.getContext());
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("name", b.getStringAttr(kernel.getArgName(index))),
      b.getNamedAttr("kind", b.getStringAttr("scalar")),
      b.getNamedAttr("dtype", b.getStringAttr(getDTypeName(type))),
  };
  if (Attribute bound = kernel.getArgAttr(index, kAtMostAttr))
    fields.push_back(b.getNamedAttr("at_most", bound));
  return b.getDictionaryAttr(fields);
}

DictionaryAttr mlafix::getSignature(KernelOp kernel) {
  Builder b(kernel.getContext());
  SmallVector<Attribute> args, aliases;
  for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    auto memref = dyn_cast<MemRefType>(type);
    args.push_back(memref ? describeTensor(kernel, index, memref)
                          : describeScalar(kernel, index, type));
  }

  for (unsigned i = 0, n = kernel.getNumArguments(); i < n; ++i) {
    for (unsigned j = 0; j < n; ++j) {
      if (!mayBeOneTensor(kernel, i, j))
        continue;
      aliases.push_back(
          b.getArrayAttr({b.getI64IntegerAttr(i), b.getI64IntegerAttr(j)}));
    }
  }
  DictionaryAttr bindings =
      kernel.getBindings().value_or(b.getDictionaryAttr({}));
  SmallVector<NamedAttribute> fields = {
      b.getNamedAttr("name", kernel.getSymNameAttr()),
      b.getNamedAttr("bindings", bindings),
      b.getNamedAttr("args", b.getArrayAttr(args)),
      b.getNamedAttr("aliases", b.getArrayAttr(aliases)),
  };
  SmallVector<Attribute> checks;
  for (AssumeOp check : kernel.getBody().getOps<AssumeOp>())
    if (DictionaryAttr built = buildLaunchCheck(check))
      checks.push_back(built);
  for (NamedAttribute bound :
       kernel.getMost().value_or(b.getDictionaryAttr({})))
    if (DictionaryAttr built = buildLaunchCheck(kernel, bound.getName()))
      checks.push_back(built);
  if (!checks.empty())
    fields.push_back(b.getNamedAttr("checks", b.getArrayAttr(checks)));
  if (DictionaryAttr defaults = kernel.getDefaultsAttr())
    fields.push_back(b.getNamedAttr("defaults", defaults));
  if (auto proofs = kernel->getAttrOfType<ArrayAttr>(kProofsAttr))
    fields.push_back(b.getNamedAttr("proofs", proofs));
  return b.getDictionaryAttr(fields);
}
