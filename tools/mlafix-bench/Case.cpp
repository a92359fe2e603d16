//===- Case.cpp - Buffers, views and the list of cases --------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Case.h"

#include <algorithm>

using namespace mlafix::bench;

static std::vector<int64_t> rowMajor(const std::vector<int64_t> &sizes) {
  std::vector<int64_t> strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = sizes.size(); i-- > 0; stride *= sizes[i])
    strides[i] = stride;
  return strides;
}

int64_t Buffer::elements() const {
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  return count;
}

int64_t Buffer::bytes() const {
  return elements() * static_cast<int64_t>(mlafix_dtype_size(type));
}

View View::transposed() const {
  View view = *this;
  std::reverse(view.sizes.begin(), view.sizes.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return view;
}

View View::at(unsigned dim, int64_t index) const {
  View view = *this;
  view.offset += index * strides[dim];
  view.sizes.erase(view.sizes.begin() + dim);
  view.strides.erase(view.strides.begin() + dim);
  return view;
}

int64_t View::index(const std::vector<int64_t> &position) const {
  int64_t result = offset;
  for (size_t i = 0; i < position.size(); ++i)
    result += position[i] * strides[i];
  return result;
}

View Case::add(mlafix_dtype type, std::vector<int64_t> sizes, Content content,
               std::vector<double> values) {
  buffers.push_back({type, sizes, content, std::move(values)});
  return {static_cast<int>(buffers.size() - 1), 0, sizes, rowMajor(sizes)};
}

void Case::addBaseline(const std::string &name, const Launch &launch,
                       const std::string &against) {
  implementations.push_back({name, true, false, against, {launch}});
}

void Case::addBaselines(const std::string &name, Launch launch) {
  addBaseline(name, launch);
  launch.function += "_dependent";
  implementations.push_back(
      {name + ", dependent", true, true, "mlafix, dependent", {launch}});
}

int64_t Case::bytesPerSet() const {
  int64_t bytes = 0;
  for (const Buffer &buffer : buffers)
    bytes += (buffer.bytes() + 255) / 256 * 256;
  return bytes;
}

std::vector<Implementation>
mlafix::bench::ours(const std::vector<Launch> &launches) {
  return {{"mlafix", false, false, "", launches},
          {"mlafix, dependent", false, true, "", launches}};
}

std::string mlafix::bench::bindingsOf(int64_t heads, int64_t dim,
                                      const std::string &others) {
  return "H=" + std::to_string(heads) + ",D=" + std::to_string(dim) + "," +
         others;
}

std::string mlafix::bench::shaped(int64_t heads, int64_t dim) {
  return "h" + std::to_string(heads) + "_d" + std::to_string(dim);
}

std::vector<Case> mlafix::bench::allCases() {
  std::vector<Case> cases;
#define MLAFIX_CASES(name) add##name##Cases(cases);
#include "Cases.inc"
#undef MLAFIX_CASES
  return cases;
}
