//===- Arguments.cpp - the arguments of a kernel that is built ------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Frontend/BuilderImpl.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"

using namespace mlir;
using namespace mlafix;

static bool isName(llvm::StringRef text) {
  return !text.empty() && !llvm::isDigit(text.front()) &&
         llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// As `mlafix.fill` has it; null where it is no number.
static Attribute parseFill(Builder &b, Type element, llvm::StringRef text) {
  if (text == kIdentity)
    return b.getStringAttr(text);
  if (!isa<FloatType>(element)) {
    int64_t integer;
    return text.getAsInteger(10, integer) ? Attribute()
                                          : b.getI64IntegerAttr(integer);
  }
  APFloat number(APFloat::IEEEsingle());
  llvm::Expected<APFloat::opStatus> status =
      number.convertFromString(text, APFloat::rmNearestTiesToEven);
  if (!status) {
    llvm::consumeError(status.takeError());
    return {};
  }
  return b.getFloatAttr(b.getF32Type(), number);
}

/// The product of two numbers, "(4 128)", is a size.
static void bindNumbers(MLIRContext *context,
                        const std::vector<std::string> &dims,
                        SmallVector<int64_t> &shape) {
  for (auto [dim, size] : llvm::zip(dims, shape))
    if (std::optional<Factors> factors = Factors::of(dim);
        factors && factors->isValid())
      size = factors->getDim(context).getSize();
}

/// The attributes of a tensor argument, but for its fill.
static NamedAttrList getAttributes(Builder &b, const TensorArgument &argument) {
  NamedAttrList attributes;
  attributes.set(
      kDimsAttr,
      b.getStrArrayAttr(llvm::to_vector_of<llvm::StringRef>(argument.dims)));
  if (!argument.dtypeName.empty())
    attributes.set(kDTypeAttr, b.getStringAttr(argument.dtypeName));
  attributes.set(kAccessAttr, b.getStringAttr(argument.access));
  if (argument.optional)
    attributes.set(kOptionalAttr, b.getUnitAttr());
  if (argument.peers)
    attributes.set(kPeersAttr, b.getUnitAttr());
  if (argument.most)
    attributes.set(kListAttr, b.getI64IntegerAttr(argument.most));
  if (!argument.swizzle.empty())
    attributes.set(kSwizzleAttr, b.getStringAttr(argument.swizzle));
  return attributes;
}

bool KernelBuilder::Impl::checkName(const std::string &name,
                                    const SourceLocation &location) {
  if (isName(name))
    return true;
  fail(location) << "expected a name of letters, digits and _ for an argument, "
                    "got '"
                 << name << "'";
  return false;
}

KernelBuilder::Value
KernelBuilder::Impl::addArgument(Type type, const std::string &name,
                                 const NamedAttrList &attributes,
                                 const SourceLocation &location) {
  mlir::Value value = kernel.getBody().front().addArgument(type, at(location));
  argNames.push_back(StringAttr::get(context.get(), name));
  argAttrs.push_back(attributes.getDictionary(context.get()));
  refreshSignature();
  return wrap(value);
}

KernelBuilder::Value KernelBuilder::addTensor(const TensorArgument &argument,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return {};
  if (!impl->checkName(argument.name, location))
    return {};
  Type element = getDTypeByName(impl->context.get(), argument.dtype);
  if (!element || element.isIndex()) {
    impl->fail(location) << "expected one of " << listDTypes()
                         << " for the dtype of '" << argument.name << "', got '"
                         << argument.dtype << "'";
    return {};
  }
  Builder b(impl->context.get());
  size_t rank = argument.dims.size();
  SmallVector<int64_t> shape(rank, ShapedType::kDynamic), strides(shape);
  for (size_t i = 0; i < std::min(rank, argument.sizes.size()); ++i)
    if (argument.sizes[i] > 0)
      shape[i] = argument.sizes[i];
  bindNumbers(b.getContext(), argument.dims, shape);
  // The stride of one element does not matter; some elements lie side by side.
  bool hasUnits = sharesByte(element) || !argument.swizzle.empty();
  if (rank && (shape.back() == 1 || hasUnits))
    strides.back() = 1;
  auto layout =
      StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, strides);
  auto type = MemRefType::get(shape, element, layout);
  NamedAttrList attributes = getAttributes(b, argument);
  if (!argument.fill.empty()) {
    Attribute fill = parseFill(b, element, argument.fill);
    if (!fill) {
      impl->fail(location) << "expected a number or identity as the fill of '"
                           << argument.name << "', got '" << argument.fill
                           << "'";
      return {};
    }
    attributes.set(kFillAttr, fill);
  }
  return impl->addArgument(type, argument.name, attributes, location);
}

KernelBuilder::Value KernelBuilder::addScalar(const ScalarArgument &argument,
                                              const SourceLocation &location) {
  if (!impl->checkOpen(location, /*inGrid=*/false))
    return {};
  if (!impl->checkName(argument.name, location))
    return {};
  Builder b(impl->context.get());
  Type type = llvm::StringSwitch<Type>(argument.dtype)
                  .Case("index", b.getIndexType())
                  .Case("i64", b.getI64Type())
                  .Case("i32", b.getI32Type())
                  .Case("f32", b.getF32Type())
                  .Case("bool", b.getI1Type())
                  .Default({});
  if (!type) {
    impl->fail(location) << "expected index, i64, i32, f32 or bool for the "
                            "scalar '"
                         << argument.name << "', got '" << argument.dtype
                         << "'";
    return {};
  }
  NamedAttrList attributes;
  if (!argument.atMost.empty())
    attributes.set(kAtMostAttr, b.getStringAttr(argument.atMost));
  return impl->addArgument(type, argument.name, attributes, location);
}
