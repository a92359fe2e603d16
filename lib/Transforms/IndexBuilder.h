//===- IndexBuilder.h - index arithmetic at one location --------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_TRANSFORMS_INDEXBUILDER_H
#define MLAFIX_TRANSFORMS_INDEXBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

namespace mlafix {

/// Builds index arithmetic at one location.
class IndexBuilder {
public:
  IndexBuilder(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value constant(int64_t value) {
    return mlir::arith::ConstantIndexOp::create(b, loc, value);
  }
  mlir::Value i32(int64_t value) {
    return mlir::arith::ConstantIntOp::create(b, loc, value, 32);
  }
  mlir::Value add(mlir::Value x, mlir::Value y) {
    return mlir::arith::AddIOp::create(b, loc, x, y);
  }
  mlir::Value sub(mlir::Value x, mlir::Value y) {
    return mlir::arith::SubIOp::create(b, loc, x, y);
  }
  mlir::Value mul(mlir::Value x, mlir::Value y) {
    return mlir::arith::MulIOp::create(b, loc, x, y);
  }
  mlir::Value div(mlir::Value x, mlir::Value y) {
    return mlir::arith::DivUIOp::create(b, loc, x, y);
  }
  mlir::Value rem(mlir::Value x, mlir::Value y) {
    return mlir::arith::RemUIOp::create(b, loc, x, y);
  }
  mlir::Value band(mlir::Value x, mlir::Value y) {
    return mlir::arith::AndIOp::create(b, loc, x, y);
  }
  mlir::Value bor(mlir::Value x, mlir::Value y) {
    return mlir::arith::OrIOp::create(b, loc, x, y);
  }
  mlir::Value shl(mlir::Value x, mlir::Value bits) {
    return mlir::arith::ShLIOp::create(b, loc, x, bits);
  }
  /// Shifts right and fills with zeros.
  mlir::Value shr(mlir::Value x, mlir::Value bits) {
    return mlir::arith::ShRUIOp::create(b, loc, x, bits);
  }
  mlir::Value select(mlir::Value p, mlir::Value x, mlir::Value y) {
    return mlir::arith::SelectOp::create(b, loc, p, x, y);
  }
  mlir::Value ult(mlir::Value x, mlir::Value y) {
    return compare(mlir::arith::CmpIPredicate::ult, x, y);
  }
  mlir::Value compare(mlir::arith::CmpIPredicate predicate, mlir::Value x,
                      mlir::Value y) {
    return mlir::arith::CmpIOp::create(b, loc, predicate, x, y);
  }
  /// Converts an i32 to index, or an index to i32, as unsigned numbers.
  mlir::Value toIndex(mlir::Value x) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getIndexType(), x);
  }
  mlir::Value toI32(mlir::Value x) {
    return mlir::arith::IndexCastUIOp::create(b, loc, b.getI32Type(), x);
  }

  /// Builds the indices of the element at position `linear` of a row-major
  /// array with the extents `extents`. All values have the same integer type.
  llvm::SmallVector<mlir::Value>
  delinearize(mlir::Value linear, llvm::ArrayRef<mlir::Value> extents) {
    llvm::SmallVector<mlir::Value> indices(extents.size());
    for (size_t i = extents.size(); i-- > 1;) {
      indices[i] = rem(linear, extents[i]);
      linear = div(linear, extents[i]);
    }
    if (!extents.empty())
      indices[0] = linear;
    return indices;
  }

private:
  mlir::OpBuilder &b;
  mlir::Location loc;
};

} // namespace mlafix

#endif // MLAFIX_TRANSFORMS_INDEXBUILDER_H
