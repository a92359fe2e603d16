//===- TestTensor.cpp - a strided tensor among guard bytes ----------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestTensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

using namespace conformance;

namespace {

/// The number of guard bytes before the first element, and after the last one.
constexpr size_t GuardBytes = 64;

constexpr unsigned char Poison = 0xff;

std::string firstDifference(const std::vector<unsigned char> &Was,
                            const std::vector<unsigned char> &Is,
                            size_t FirstElement) {
  auto At = std::mismatch(Was.begin(), Was.end(), Is.begin());
  if (At.first == Was.end())
    return "";
  int64_t Byte = (At.first - Was.begin()) - int64_t(FirstElement);
  return "byte " + std::to_string(Byte) + " (from the first element) was " +
         std::to_string(*At.first) + " and is " + std::to_string(*At.second);
}

} // namespace

Layout Layout::contiguous(std::vector<int64_t> Sizes) {
  Layout Result;
  Result.Strides.resize(Sizes.size());
  int64_t Stride = 1;
  for (size_t I = Sizes.size(); I-- > 0;) {
    Result.Strides[I] = Stride;
    Stride *= Sizes[I];
  }
  Result.Sizes = std::move(Sizes);
  return Result;
}

int64_t Layout::span() const {
  int64_t Last = 0;
  for (size_t I = 0; I < Sizes.size(); ++I) {
    if (!Sizes[I])
      return 0;
    Last += (Sizes[I] - 1) * Strides[I];
  }
  return Last + 1;
}

int64_t Layout::numElements() const {
  int64_t Count = 1;
  for (int64_t Size : Sizes)
    Count *= Size;
  return Count;
}

mlafix_dtype conformance::dtypeOf(Float Type) {
  switch (Type) {
  case Float::BF16:
    return MLAFIX_BF16;
  case Float::F16:
    return MLAFIX_F16;
  case Float::F32:
    return MLAFIX_F32;
  }
  return MLAFIX_F32;
}

TestTensor::TestTensor(Device &On, mlafix_dtype Type, Layout Shape)
    : On(&On), Type(Type), Shape(std::move(Shape)),
      Width(mlafix_dtype_size(Type)) {
  size_t Bytes = firstElementByte() + this->Shape.span() * Width + GuardBytes;
  Image.assign(Bytes, Poison);
  Uploaded = Image;
  Buffer = Memory(On, Bytes);
}

size_t TestTensor::firstElementByte() const {
  return GuardBytes + Shape.Offset * Width;
}

int64_t TestTensor::indexOf(std::initializer_list<int64_t> At) const {
  assert(At.size() == Shape.Sizes.size());
  int64_t Index = 0;
  size_t Dim = 0;
  for (int64_t I : At)
    Index += I * Shape.Strides[Dim++];
  return Index;
}

uint32_t TestTensor::get(std::initializer_list<int64_t> At) const {
  const unsigned char *From =
      Image.data() + firstElementByte() + indexOf(At) * Width;
  uint32_t Bits = 0;
  std::memcpy(&Bits, From, Width);
  return Bits;
}

void TestTensor::set(std::initializer_list<int64_t> At, uint32_t Bits) {
  std::memcpy(Image.data() + firstElementByte() + indexOf(At) * Width, &Bits,
              Width);
}

void TestTensor::setFloat(std::initializer_list<int64_t> At, float Value) {
  uint32_t Bits;
  std::memcpy(&Bits, &Value, 4);
  set(At, Bits);
}

void TestTensor::upload() {
  Uploaded = Image;
  On->upload(Buffer.data(), Image.data(), Image.size());
}

void TestTensor::download() {
  On->download(Image.data(), Buffer.data(), Image.size());
}

void TestTensor::poison() { std::fill(Image.begin(), Image.end(), Poison); }

std::string TestTensor::guardsIntact() const {
  std::vector<unsigned char> Masked = Image;
  // Restores every element. Any remaining difference is in a byte outside the
  // elements.
  if (Shape.numElements()) {
    std::vector<int64_t> At(Shape.Sizes.size(), 0);
    while (true) {
      size_t Byte = firstElementByte();
      for (size_t I = 0; I < At.size(); ++I)
        Byte += At[I] * Shape.Strides[I] * Width;
      std::memcpy(&Masked[Byte], &Uploaded[Byte], Width);
      size_t Dim = At.size();
      while (Dim > 0 && ++At[Dim - 1] == Shape.Sizes[Dim - 1])
        At[--Dim] = 0;
      if (Dim == 0)
        break;
    }
  }
  return firstDifference(Uploaded, Masked, firstElementByte());
}

std::string TestTensor::unchanged() const {
  return firstDifference(Uploaded, Image, firstElementByte());
}

void *TestTensor::data() const { return Buffer.data() + firstElementByte(); }

mlafix::Tensor TestTensor::view() const {
  return mlafix::Tensor::strided(data(), Type, Shape.Sizes, Shape.Strides,
                                 On->handle());
}

mlafix::Tensor TestTensor::view(const std::vector<int> &Permutation) const {
  std::vector<int64_t> Sizes, Strides;
  for (int Dim : Permutation) {
    Sizes.push_back(Shape.Sizes[Dim]);
    Strides.push_back(Shape.Strides[Dim]);
  }
  return mlafix::Tensor::strided(data(), Type, Sizes, Strides, On->handle());
}
