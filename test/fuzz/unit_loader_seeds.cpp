//===- unit_loader_seeds.cpp - Seeds for the unit loader's fuzzer ---------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
//   mlafix-unit-loader-seeds DIR
//
// Writes one input of each kind to DIR: a manifest, a unit and a cubin.
//
//===----------------------------------------------------------------------===//

#include "UnitWriter.h"

#include <cstdio>
#include <fstream>

using namespace mlafix::test;

static bool write(const std::string &path, const std::string &bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return static_cast<bool>(file);
}

/// Returns a second kernel, with the features of manifests that add_bias lacks.
static json raggedKernel() {
  json kernel = addBiasUnit().kernel();
  kernel["name"] = "ragged";
  kernel["bindings"] = {{"H", 16}, {"T", "bf16"}};
  kernel["args"][0]["dims"] = {"n", "H", ""};
  kernel["args"][0]["shape"] = {-1, 16, 1};
  kernel["args"][0]["strides"] = {-1, -1, 1};
  kernel["args"][0]["access"] = "update";
  kernel["args"].push_back({{"name", "count"},
                            {"kind", "scalar"},
                            {"dtype", "i32"},
                            {"at_most", "H"}});
  kernel["aliases"] = json::array();
  kernel["checks"] = json::array({leastRows(1)});
  kernel["proofs"] = {
      {{"arg", 0}, {"question", "coverage"}, {"verdict", "proved"}},
      {{"arg", 1},
       {"question", "bounds"},
       {"verdict", "refuted"},
       {"reason", "n = 1"},
       {"element", "x[1]"}}};
  json &variants = kernel["code"][1]["variants"];
  for (json &variant : variants) {
    variant["geometry"] = {{"kind", "ragged"},
                           {"rows", {{"arg", 0}, {"dim", 0}}},
                           {"inner", {{{"value", 16}}, {{"arg", 5}}}},
                           {"rows_per_block", 4},
                           {"threads", 256},
                           {"blocks_per_sm", 4}};
    variant["params"].push_back({{"kind", "scalar"}, {"arg", 5}});
  }
  variants[0]["guards"] = {
      {{"kind", "max_rows"}, {"value", 1000}},
      {{"kind", "stride"}, {"arg", 0}, {"dim", 1}, {"value", 1}},
      {{"kind", "align"}, {"args", {0, 1, 2}}, {"bytes", 16}}};
  return kernel;
}

/// Returns a third kernel. It is specialised for calls without its optional
/// argument, and clusters of blocks share its rows.
static json absentKernel() {
  json kernel = addBiasUnit().kernel();
  for (json &variant : kernel["code"][1]["variants"]) {
    variant["geometry"]["rows_per_block"] = 1;
    variant["geometry"]["cluster"] = 4;
  }
  kernel["bindings"] = {{"scale", "absent"}};
  kernel["args"][2]["access"] = "absent";
  return kernel;
}

/// Returns a fourth kernel, in which groups of lanes share rows.
static json sharedKernel() {
  json kernel = addBiasUnit().kernel();
  kernel["name"] = "shared";
  for (json &variant : kernel["code"][1]["variants"]) {
    variant["geometry"] = {{"kind", "groups"},
                           {"extents", {{{"arg", 0}, {"dim", 0}}}},
                           {"lanes", 16},
                           {"threads", 512},
                           {"groups",
                            {{"most", 32},
                             {"chunk", 4},
                             {"least_threads", 8},
                             {"threads_per_sm", 682},
                             {"pieces", {{"arg", 0}, {"dim", 1}}}}}};
    variant["params"].push_back({{"kind", "group_threads"}});
  }
  return kernel;
}

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "expected one argument, the folder to write to\n");
    return 1;
  }
  std::string folder = std::string(argv[1]) + "/";
  UnitWriter writer = addBiasUnit();
  writer.manifest["kernels"].push_back(raggedKernel());
  writer.manifest["kernels"].push_back(absentKernel());
  writer.manifest["kernels"].push_back(sharedKernel());
  std::vector<uint8_t> unit = writer.finish();
  bool written =
      write(folder + "manifest.json", writer.manifest.dump(1)) &&
      write(folder + "unit.mlafix", std::string(unit.begin(), unit.end())) &&
      write(folder + "image.cubin", writer.images[1]);
  return written ? 0 : 1;
}
