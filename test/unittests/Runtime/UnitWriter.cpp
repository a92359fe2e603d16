//===- UnitWriter.cpp - Makes units in memory for tests -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "UnitWriter.h"

#include "Container.h"
#include "MachineCode.h"

#include <cstring>

using namespace mlafix;
using namespace mlafix::test;

namespace {

void putInteger(std::vector<uint8_t> &bytes, size_t offset, uint64_t value,
                size_t size) {
  for (size_t i = 0; i < size; ++i)
    bytes[offset + i] = static_cast<uint8_t>(value >> (8 * i));
}

size_t alignUp(size_t offset) { return (offset + 63) / 64 * 64; }

} // namespace

std::vector<uint8_t> test::wrapUnit(const std::string &manifest,
                                    const std::string &tail) {
  std::vector<uint8_t> bytes(64);
  std::memcpy(bytes.data(), runtime::format::magic, 8);
  putInteger(bytes, 8, 1, 4);
  putInteger(bytes, 12, 1, 4);
  putInteger(bytes, 24, manifest.size(), 8);
  bytes.insert(bytes.end(), manifest.begin(), manifest.end());
  bytes.insert(bytes.end(), tail.begin(), tail.end());
  putInteger(bytes, 16, bytes.size(), 8);
  fixChecksum(bytes);
  return bytes;
}

void test::fixChecksum(std::vector<uint8_t> &bytes) {
  putInteger(bytes, 32, runtime::unitChecksum(bytes.data(), bytes.size()), 8);
}

std::vector<uint8_t> UnitWriter::finish() const {
  // The offsets depend on the manifest's length, which depends on the number of
  // digits of the offsets. The layout is therefore repeated until the length is
  // stable.
  std::string text, tail;
  size_t assumed = 0;
  do {
    assumed = text.size();
    std::vector<size_t> offsets;
    size_t end = 64 + assumed;
    tail.clear();
    for (const std::string &image : images) {
      offsets.push_back(alignUp(end));
      tail.append(offsets.back() - end, '\0');
      tail += image;
      end = offsets.back() + image.size();
    }
    json copy = manifest;
    for (json &kernel : copy["kernels"])
      for (json &code : kernel["code"])
        for (json &image : code["images"])
          if (image.contains("image")) {
            // The index is taken modulo the number of images, since fuzzers
            // name nonexistent images.
            size_t index = image["image"].get<size_t>() % images.size();
            image.erase("image");
            image["offset"] = offsets[index];
            image["size"] = images[index].size();
          }
    text = copy.dump();
  } while (text.size() != assumed);
  return wrapUnit(text, tail);
}

std::string test::fakeCubin(const std::string &text) {
  std::string elf(64, '\0');
  std::memcpy(&elf[0],
              "\x7f"
              "ELF\x02\x01\x01",
              7);
  elf[18] = static_cast<char>(190); // e_machine: CUDA
  elf[52] = 64;                     // e_ehsize
  return elf + text;
}

/// Returns the manifest's "code" of add_bias, which refers to the images of
/// addBiasUnit by their indices.
static json addBiasCode() {
  json rows = {{"kind", "rows"},
               {"extents", {{{"arg", 0}, {"dim", 0}}}},
               {"rows_per_block", 8},
               {"threads", 128}};
  json params = {{{"kind", "pointer"}, {"arg", 0}},
                 {{"kind", "pointer"}, {"arg", 1}},
                 {{"kind", "stride"}, {"arg", 0}, {"dim", 0}},
                 {{"kind", "stride"}, {"arg", 1}, {"dim", 0}},
                 {{"kind", "size"}, {"arg", 0}, {"dim", 1}},
                 {{"kind", "scalar"}, {"arg", 3}}};
  json guard = {
      {"kind", "align"}, {"args", json::array({0, 1})}, {"bytes", 16}};
  auto variant = [&](const char *entry, json guards) {
    return json{{"entry", entry},
                {"guards", std::move(guards)},
                {"params", params},
                {"geometry", rows}};
  };
  auto gpuVariants = [&](bool dependent) {
    json all = json::array({variant("add_bias_aligned", json::array({guard})),
                            variant("add_bias_any", json::array())});
    for (json &one : all)
      one["dependent_launch"] = dependent;
    return all;
  };
  json onCpu = variant("add_bias", json::array());
  onCpu["offset"] = addBiasOffset;
  auto image = [](const char *format, int index) {
    return json{{"format", format}, {"image", index}, {"assembler", "fake 1"}};
  };
  json cpu = {{"target", machineCodeTarget},
              {"images", json::array({image("cpu", 0)})},
              {"variants", json::array({onCpu})}};
  json sm90 = {{"target", "sm_90"},
               {"images", json::array({image("cubin", 1), image("ptx", 2)})},
               {"variants", gpuVariants(true)}};
  json sm80 = {{"target", "sm_80"},
               {"images", json::array({image("cubin", 3), image("ptx", 4)})},
               {"variants", gpuVariants(false)}};
  return json::array({cpu, sm90, sm80});
}

static json addBiasArgs() {
  auto tensor = [](const char *name, const char *access) {
    return json{{"name", name},       {"kind", "tensor"}, {"dtype", "f32"},
                {"dims", {"n", "D"}}, {"shape", {-1, 4}}, {"strides", {-1, 1}},
                {"access", access},   {"optional", false}};
  };
  json scale = {{"name", "scale"},
                {"kind", "tensor"},
                {"dtype", "f32"},
                {"dims", json::array({"n"})},
                {"shape", json::array({-1})},
                {"strides", json::array({-1})},
                {"access", "read"},
                {"optional", true}};
  json bias = {{"name", "bias"}, {"kind", "scalar"}, {"dtype", "f32"}};
  json limit = {{"name", "limit"},
                {"kind", "scalar"},
                {"dtype", "index"},
                {"at_most", "n"}};
  return json::array(
      {tensor("out", "write"), tensor("in", "read"), scale, bias, limit});
}

UnitWriter test::addBiasUnit() {
  UnitWriter unit;
  unit.manifest = {
      {"producer", "test 1"},
      {"kernels", json::array({{{"name", "add_bias"},
                                {"bindings", {{"T", "f32"}, {"D", 4}}},
                                {"args", addBiasArgs()},
                                {"aliases", json::array({json::array({0, 1})})},
                                {"code", addBiasCode()}}})}};
  unit.images = {std::string(machineCode, machineCode + sizeof(machineCode)),
                 fakeCubin("cubin sm_90"), ".version 7.8 // ptx sm_90\n",
                 fakeCubin("cubin sm_80"), ".version 7.0 // ptx sm_80\n"};
  return unit;
}

json test::leastRows(int64_t least) {
  return {{"text", "n >= " + std::to_string(least)},
          {"steps",
           {{{"op", "size"}, {"arg", 0}, {"dim", 0}},
            {{"op", "constant"}, {"value", least}},
            {{"op", "lt"}, {"of", {0, 1}}},
            {{"op", "constant"}, {"value", 1}},
            {{"op", "xor"}, {"of", {2, 3}}}}}};
}

UnitWriter test::cpuOnlyUnit() {
  UnitWriter unit = addBiasUnit();
  json &code = unit.kernel()["code"];
  code = json::array({code[0]});
  unit.images.resize(1);
  return unit;
}
