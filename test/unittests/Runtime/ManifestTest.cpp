//===- ManifestTest.cpp - Invalid manifests are refused -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "TestUnit.h"
#include "UnitModel.h"

#include <functional>

using namespace mlafix;
using namespace mlafix::test;

namespace {

/// A change to add_bias's manifest, and the words of the error that it must
/// cause.
struct Spoilt {
  const char *name;
  std::function<void(json &kernel)> spoil;
  std::vector<std::string> words;
};

/// Prints the name of a case in test reports.
void PrintTo(const Spoilt &spoilt, std::ostream *stream) {
  *stream << spoilt.name;
}

json &arg(json &kernel, int i) { return kernel["args"][i]; }
json &cpuVariant(json &kernel) { return kernel["code"][0]["variants"][0]; }
json &gpuVariant(json &kernel) { return kernel["code"][1]["variants"][0]; }

const std::vector<Spoilt> spoilt = {
    {"no_name", [](json &k) { k.erase("name"); }, {"kernels[0]", "\"name\""}},
    {"empty_name", [](json &k) { k["name"] = ""; }, {"a name"}},
    {"name_is_a_number", [](json &k) { k["name"] = 3; }, {"a string", "got 3"}},
    {"control_characters", [](json &k) { k["name"] = "a\nb"; }, {"control"}},
    {"name_with_nul",
     [](json &k) { k["name"] = std::string("a\0b", 3); },
     {"control"}},
    {"huge_name",
     [](json &k) { k["name"] = std::string(5000, 'x'); },
     {"1024 bytes"}},
    {"unknown_arg_kind",
     [](json &k) { arg(k, 0)["kind"] = "image"; },
     {"args[0].kind", "newer", "\"image\""}},
    {"unknown_dtype",
     [](json &k) { arg(k, 0)["dtype"] = "f64"; },
     {"args[0].dtype", "\"f64\""}},
    {"unknown_scalar",
     [](json &k) { arg(k, 3)["dtype"] = "f64"; },
     {"args[3].dtype", "\"f64\""}},
    {"twice_the_same_argument",
     [](json &k) { arg(k, 1)["name"] = "out"; },
     {"args[1].name", "no other argument"}},
    {"unknown_access",
     [](json &k) { arg(k, 0)["access"] = "append"; },
     {"args[0].access", "\"append\""}},
    {"absent_and_not_optional",
     [](json &k) { arg(k, 1)["access"] = "absent"; },
     {"args[1].access", "an optional argument"}},
    {"alias_of_an_absent_tensor",
     [](json &k) {
       arg(k, 2)["access"] = "absent";
       k["aliases"] = {{0, 2}};
     },
     {"aliases[0][1]", "not absent"}},
    {"guard_on_an_absent_tensor",
     [](json &k) {
       arg(k, 2)["access"] = "absent";
       gpuVariant(k)["guards"][0]["args"] = json::array({2});
     },
     {"guards[0].args[0]", "not absent"}},
    {"parameter_of_an_absent_tensor",
     [](json &k) {
       arg(k, 2)["access"] = "absent";
       gpuVariant(k)["params"][0]["arg"] = 2;
     },
     {"params[0].arg", "not absent"}},
    {"proof_of_no_argument",
     [](json &k) {
       k["proofs"] = {
           {{"arg", 5}, {"question", "bounds"}, {"verdict", "proved"}}};
     },
     {"proofs[0].arg", "0 to 4", "got 5"}},
    {"proof_without_a_verdict",
     [](json &k) {
       k["proofs"] = {{{"arg", 0}, {"question", "bounds"}}};
     },
     {"proofs[0]", "\"verdict\""}},
    {"proof_with_a_control_character",
     [](json &k) {
       k["proofs"] = {{{"arg", 0},
                       {"question", "bounds"},
                       {"verdict", "unknown"},
                       {"reason", "a\nb"}}};
     },
     {"proofs[0].reason", "control"}},
    {"proofs_are_no_array",
     [](json &k) { k["proofs"] = "proved"; },
     {"proofs", "an array"}},
    {"too_many_proofs",
     [](json &k) {
       json proof = {{"arg", 0}, {"question", "bounds"}, {"verdict", "proved"}};
       k["proofs"] = std::vector<json>(2000, proof);
     },
     {"proofs", "at most 1024 elements"}},
    {"too_many_dims",
     [](json &k) { arg(k, 0)["dims"] = std::vector<std::string>(9, "n"); },
     {"args[0].dims", "at most 8 elements, got 9"}},
    {"shape_and_dims_differ",
     [](json &k) { arg(k, 0)["shape"] = json::array({-1}); },
     {"args[0].shape", "2 sizes"}},
    {"strides_and_dims_differ",
     [](json &k) {
       arg(k, 0)["strides"] = json::array({1, 1, 1});
     },
     {"args[0].strides", "2 strides"}},
    {"negative_size",
     [](json &k) { arg(k, 0)["shape"][0] = -2; },
     {"args[0].shape[0]", "got -2"}},
    {"fractional_size",
     [](json &k) { arg(k, 0)["shape"][0] = 1.5; },
     {"args[0].shape[0]", "an integer"}},
    {"size_past_int64",
     [](json &k) { arg(k, 0)["shape"][0] = UINT64_MAX; },
     {"args[0].shape[0]", "an integer"}},
    {"optional_is_a_number",
     [](json &k) { arg(k, 0)["optional"] = 1; },
     {"true or false"}},
    {"bound_by_an_unknown_dim",
     [](json &k) { arg(k, 4)["at_most"] = "q"; },
     {"\"limit\"", "at_most", "\"q\""}},
    {"bound_by_an_optional_dim",
     [](json &k) {
       arg(k, 2)["dims"][0] = "m";
       arg(k, 4)["at_most"] = "m";
     },
     {"\"limit\"", "not optional"}},
    {"bound_on_a_float",
     [](json &k) { arg(k, 3)["at_most"] = "n"; },
     {"args[3].at_most", "only on an integer"}},
    {"another_swizzle",
     [](json &k) { arg(k, 0)["swizzle"] = "64x8"; },
     {"args[0].swizzle", "\"128x4\"", "newer mlafix"}},
    {"swizzle_of_one_dim",
     [](json &k) {
       arg(k, 0)["swizzle"] = "128x4";
       for (const char *field : {"dims", "shape", "strides"})
         arg(k, 0)[field].erase(1);
     },
     {"args[0].swizzle", "rows and columns"}},
    {"too_many_arguments",
     [](json &k) {
       json scalar = {{"kind", "scalar"}, {"dtype", "i32"}};
       for (int i = 0; i < 60; ++i) {
         scalar["name"] = "s" + std::to_string(i);
         k["args"].push_back(scalar);
       }
     },
     {"args", "at most 64 elements, got 65"}},
    {"alias_of_a_scalar",
     [](json &k) {
       k["aliases"] = {{0, 3}};
     },
     {"aliases[0][1]", "tensor"}},
    {"alias_of_itself",
     [](json &k) {
       k["aliases"] = json::array({json::array({1, 1})});
     },
     {"aliases[0]", "two different"}},
    {"alias_out_of_range",
     [](json &k) {
       k["aliases"] = json::array({json::array({0, 5})});
     },
     {"aliases[0][1]", "0 to 4"}},
    {"unknown_target",
     [](json &k) { k["code"][1]["target"] = "gfx942"; },
     {"code[1].target", "newer", "gfx942"}},
    {"target_twice",
     [](json &k) { k["code"][2]["target"] = "sm_90"; },
     {"code[2].target", "no other entry"}},
    {"unknown_format",
     [](json &k) { k["code"][1]["images"][0]["format"] = "fatbin"; },
     {"images[0].format", "newer", "fatbin"}},
    {"cubin_for_the_cpu",
     [](json &k) { k["code"][0]["images"][0]["format"] = "cubin"; },
     {"\"cpu\" for ", machineCodeTarget}},
    {"cpu_code_for_a_gpu",
     [](json &k) { k["code"][1]["images"][0]["format"] = "cpu"; },
     {"\"cubin\" or \"ptx\""}},
    {"no_variant",
     [](json &k) { k["code"][0]["variants"] = json::array(); },
     {"at least one code version"}},
    {"too_many_variants",
     [](json &k) {
       k["code"][0]["variants"] =
           std::vector<json>(65, k["code"][0]["variants"][0]);
     },
     {"at most 64"}},
    {"unknown_guard",
     [](json &k) { gpuVariant(k)["guards"][0]["kind"] = "moon_phase"; },
     {"guards[0].kind", "newer", "moon_phase"}},
    {"alignment_of_three",
     [](json &k) { gpuVariant(k)["guards"][0]["bytes"] = 3; },
     {"power of two"}},
    {"guard_on_a_scalar",
     [](json &k) { gpuVariant(k)["guards"][0]["args"] = json::array({3}); },
     {"tensor"}},
    {"guard_of_one_distinct_tensor",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {{"kind", "distinct"},
                                     {"args", json::array({0})}};
     },
     {"guards[0].args", "two arguments"}},
    {"guard_of_a_last_dim_that_is_packed",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {
           {"kind", "packed"}, {"arg", 1}, {"dim", 1}, {"value", 1}};
     },
     {"a dim before the last one"}},
    {"guard_of_one_tensor_with_the_same_strides",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {{"kind", "same_strides"},
                                     {"args", json::array({0})}};
     },
     {"guards[0].args", "two arguments or more"}},
    {"guard_of_strides_that_may_be_omitted",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {{"kind", "same_strides"},
                                     {"args", json::array({2, 0})}};
     },
     {"guards[0].args[0]", "not optional"}},
    {"guard_of_strides_of_two_ranks",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {{"kind", "same_strides"},
                                     {"args", json::array({0, 2})}};
     },
     {"guards[0].args[1]", "one rank"}},
    {"more_threads_at_least_than_at_most",
     [](json &k) { gpuVariant(k)["geometry"]["least_threads"] = 4096; },
     {"least_threads", "got 4096"}},
    {"more_blocks_of_a_cluster_than_chips_have",
     [](json &k) { gpuVariant(k)["geometry"]["cluster"] = 16; },
     {"cluster", "got 16"}},
    {"blocks_of_a_cluster_that_are_no_power_of_two",
     [](json &k) {
       gpuVariant(k)["geometry"]["rows_per_block"] = 1;
       gpuVariant(k)["geometry"]["cluster"] = 6;
     },
     {"cluster", "a power of two"}},
    {"several_rows_of_a_cluster",
     [](json &k) {
       gpuVariant(k)["geometry"]["rows_per_block"] = 2;
       gpuVariant(k)["geometry"]["cluster"] = 2;
     },
     {"cluster", "where \"rows_per_block\" is 1"}},
    {"several_rows_with_parts",
     [](json &k) {
       gpuVariant(k)["geometry"]["rows_per_block"] = 2;
       gpuVariant(k)["geometry"]["parts"] = {{"value", 4}};
     },
     {"parts", "where \"rows_per_block\" and \"cluster\" are 1"}},
    {"pieces_of_nothing",
     [](json &k) {
       gpuVariant(k)["geometry"]["rows_per_block"] = 1;
       gpuVariant(k)["geometry"]["parts"] = {
           {"arg", 0}, {"dim", 0}, {"per", 0}};
     },
     {"parts.per", "got 0"}},
    {"guard_beyond_the_cache_on_a_scalar",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {{"kind", "beyond_cache"},
                                     {"args", json::array({3})}};
     },
     {"guards[0].args", "tensor"}},
    {"rows_of_a_batch_on_a_cpu_out_of_range",
     [](json &k) {
       k["code"][0]["variants"][0]["geometry"]["rows_per_block"] = 0;
     },
     {"rows_per_block", "1 to"}},
    {"guard_on_a_dim_out_of_range",
     [](json &k) {
       gpuVariant(k)["guards"][0] = {
           {"kind", "stride"}, {"arg", 0}, {"dim", 2}, {"value", 1}};
     },
     {"guards[0].dim", "0 to 1"}},
    {"unknown_parameter",
     [](json &k) { gpuVariant(k)["params"][0]["kind"] = "stream"; },
     {"params[0].kind", "newer"}},
    {"parameter_out_of_range",
     [](json &k) { gpuVariant(k)["params"][0]["arg"] = 5; },
     {"params[0].arg", "0 to 4"}},
    {"negative_parameter",
     [](json &k) { gpuVariant(k)["params"][0]["arg"] = -1; },
     {"params[0].arg", "0 to 4"}},
    {"size_of_a_scalar",
     [](json &k) { gpuVariant(k)["params"][4]["arg"] = 3; },
     {"params[4].arg", "tensor"}},
    {"tensor_as_a_scalar",
     [](json &k) { gpuVariant(k)["params"][5]["arg"] = 0; },
     {"params[5].arg", "scalar"}},
    {"size_of_a_dim_out_of_range",
     [](json &k) { gpuVariant(k)["params"][4]["dim"] = 7; },
     {"params[4].dim"}},
    {"too_many_parameters",
     [](json &k) {
       gpuVariant(k)["params"] =
           std::vector<json>(257, gpuVariant(k)["params"][0]);
     },
     {"params", "at most 256"}},
    {"unknown_geometry",
     [](json &k) { gpuVariant(k)["geometry"]["kind"] = "torus"; },
     {"geometry.kind", "newer"}},
    {"too_many_threads",
     [](json &k) { gpuVariant(k)["geometry"]["threads"] = 1025; },
     {"threads", "1 to 1024", "1025"}},
    {"no_threads",
     [](json &k) { gpuVariant(k)["geometry"]["threads"] = 0; },
     {"threads"}},
    {"no_rows_per_block",
     [](json &k) { gpuVariant(k)["geometry"]["rows_per_block"] = 0; },
     {"rows_per_block"}},
    {"extent_of_a_float",
     [](json &k) {
       gpuVariant(k)["geometry"]["extents"] = json::array({{{"arg", 3}}});
     },
     {"extents[0]", "integer"}},
    {"extent_of_an_optional_tensor",
     [](json &k) {
       gpuVariant(k)["geometry"]["extents"] =
           json::array({{{"arg", 2}, {"dim", 0}}});
     },
     {"extents[0]", "not optional"}},
    {"negative_extent",
     [](json &k) {
       gpuVariant(k)["geometry"]["extents"] = json::array({{{"value", -1}}});
     },
     {"extents[0].value"}},
    {"blocks_per_sm_too_many",
     [](json &k) {
       gpuVariant(k)["geometry"] = {
           {"kind", "ragged"},       {"rows", {{"value", 4}}},
           {"inner", json::array()}, {"rows_per_block", 1},
           {"threads", 32},          {"blocks_per_sm", 1000}};
     },
     {"blocks_per_sm"}},
    {"entry_outside_the_image",
     [](json &k) { cpuVariant(k)["offset"] = 191; },
     {"offset", std::to_string(sizeof(machineCode)) + " bytes"}},
    {"more_stack_than_any_code_takes",
     [](json &k) { cpuVariant(k)["stack_bytes"] = (64 << 20) + 1; },
     {"stack_bytes", "0 to 67108864"}},
    {"bindings_are_a_list",
     [](json &k) { k["bindings"] = json::array(); },
     {"bindings", "an object"}},
    {"binding_is_an_object",
     [](json &k) { k["bindings"]["D"] = json::object(); },
     {"bindings.D"}},
    {"binding_to_a_value_with_a_comma",
     [](json &k) { k["bindings"]["T"] = "bf16,f32"; },
     {"without '=' and ','"}},
    {"binding_to_a_value_with_an_equals_sign",
     [](json &k) { k["bindings"]["T"] = "T=bf16"; },
     {"without '=' and ','"}},
    {"binding_with_an_equals_sign",
     [](json &k) { k["bindings"]["a=b"] = 1; },
     {"'='"}},
    {"image_past_the_cap",
     [](json &k) {
       k["code"][0]["images"][0] = {
           {"format", "cpu"}, {"offset", 0}, {"size", uint64_t(1) << 40}};
     },
     {"size"}},
};

class Manifest : public testing::TestWithParam<Spoilt> {};

TEST_P(Manifest, is_refused) {
  UnitWriter writer = addBiasUnit();
  GetParam().spoil(writer.kernel());
  expectBadUnit(writer, GetParam().words);
}

INSTANTIATE_TEST_SUITE_P(Spoilt, Manifest, testing::ValuesIn(spoilt),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
