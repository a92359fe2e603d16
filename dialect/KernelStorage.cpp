//===- KernelStorage.cpp - how elements of an argument lie in memory ------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "dialect/KernelVerifier.h"

using namespace mlir;
using namespace mlafix;

static InFlightDiagnostic failAt(KernelOp kernel, unsigned index) {
  return kernel.emitOpError()
         << "argument '" << kernel.getArgName(index) << "': ";
}

/// Elements of which two share a byte are moved as rows, which begin at one.
static LogicalResult verifyPairs(KernelOp kernel, unsigned index,
                                 MemRefType type) {
  Type element = type.getElementType();
  if (!sharesByte(element))
    return success();
  if (kernel.getArgAttr(index, kDTypeAttr))
    return failAt(kernel, index)
           << "expected a dtype variable to stand for elements of "
              "whole bytes, got "
           << getDTypeName(element);
  if (kernel.getArgAttr(index, kFillAttr))
    return failAt(kernel, index) << "expected no '" << kFillAttr << "' of "
                                 << getDTypeName(element) << ", got one";
  int64_t rank = type.getRank();
  if (rank == 0 || type.getStridesAndOffset().first.back() != 1)
    return failAt(kernel, index)
           << "expected a last dim with stride 1 for elements of "
           << getDTypeName(element) << ", got " << type;
  int64_t size = type.getDimSize(rank - 1);
  if (ShapedType::isDynamic(size) || size % 2 == 0)
    return success();
  return failAt(kernel, index)
         << "expected an even size of the last dim for elements of "
         << getDTypeName(element) << ", of which two share a byte, got "
         << size;
}

/// Strides that are known, of rows and columns in tiles: as the launch asks for
/// them. Code versions have the strides of the calls that they are for, which
/// may be none.
static LogicalResult verifyPitch(KernelOp kernel, unsigned index,
                                 MemRefType type) {
  if (kernel.getLayoutAttr())
    return success();
  SmallVector<int64_t> strides = type.getStridesAndOffset().first;
  int64_t columns = 1; // of the dims from `i` on, as far as they are known
  for (int64_t i = type.getRank() - 1; i > 0; --i) {
    int64_t size = type.getDimSize(i);
    if (ShapedType::isDynamic(size))
      break;
    if (size > 1 && !ShapedType::isDynamic(strides[i]) && strides[i] != columns)
      return failAt(kernel, index)
             << "expected stride " << columns << " in dim " << i
             << ", since the columns of a tensor with '" << kSwizzleAttr
             << "' follow each other, got " << strides[i];
    columns *= size;
  }
  int64_t pitch = strides.front();
  if (ShapedType::isDynamic(pitch) || (pitch >= columns && pitch % 4 == 0))
    return success();
  return failAt(kernel, index)
         << "expected rows that are a multiple of 4 elements apart, and "
         << columns << " or more, of a tensor with '" << kSwizzleAttr
         << "', got stride " << pitch;
}

/// Rows and columns in tiles: the first dim is the rows, the columns are the
/// others.
static LogicalResult verifyTiles(KernelOp kernel, unsigned index,
                                 MemRefType type) {
  Attribute given = kernel.getArgAttr(index, kSwizzleAttr);
  if (!given)
    return success();
  auto layout = dyn_cast<StringAttr>(given);
  if (!layout || layout.getValue() != kSwizzle128x4)
    return failAt(kernel, index) << "expected '" << kSwizzleAttr << "' to be \""
                                 << kSwizzle128x4 << "\", got " << given;
  if (type.getRank() < 2 || kernel.isArgMany(index) ||
      sharesByte(type.getElementType()))
    return failAt(kernel, index)
           << "expected '" << kSwizzleAttr
           << "' of one tensor with rows and columns of whole "
              "bytes, got "
           << type << (kernel.isArgMany(index) ? " of several" : "");
  if (type.getStridesAndOffset().first.back() != 1)
    return failAt(kernel, index) << "expected a last dim with stride 1 beside '"
                                 << kSwizzleAttr << "', got " << type;
  int64_t rows = type.getDimSize(0);
  if (ShapedType::isDynamic(rows) || rows % 128 == 0)
    return verifyPitch(kernel, index, type);
  return failAt(kernel, index)
         << "expected a multiple of 128 rows, padding included, of "
            "a tensor with '"
         << kSwizzleAttr << "', got " << rows;
}

LogicalResult mlafix::verifyStorage(KernelOp kernel, unsigned index,
                                    MemRefType type) {
  return failure(failed(verifyPairs(kernel, index, type)) ||
                 failed(verifyTiles(kernel, index, type)));
}
