//===- Manifest.cpp - The manifest of a unit, from JSON -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The Manifest*.cpp alone see the JSON library (through ManifestValue.h). An
// error is thrown as a ManifestError with the path to the offending value;
// parseManifest catches it.
//
//===----------------------------------------------------------------------===//

#include "Manifest.h"

#include "ManifestParts.h"
#include "Status.h"

#include <set>

using namespace mlafix::runtime;
using nlohmann::json;

namespace {

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

Image parseImage(const Value &value, const TargetCode &code) {
  Image image{};
  std::string format = value.at("format").string();
  if (format == "cubin")
    image.format = Image::Cubin;
  else if (format == "ptx")
    image.format = Image::Ptx;
  else if (format == "cpu")
    image.format = Image::Cpu;
  else
    value.at("format").error("a format that this library knows (the unit may "
                             "come from a newer mlafix)");
  if (code.isCpu() != (image.format == Image::Cpu))
    value.at("format").error(code.isCpu()
                                 ? "\"cpu\" for " + code.target
                                 : "\"cubin\" or \"ptx\" for " + code.target);
  image.offset = static_cast<uint64_t>(
      value.at("offset").integer(0, static_cast<int64_t>(limits::fileBytes)));
  image.size = static_cast<uint64_t>(
      value.at("size").integer(1, static_cast<int64_t>(limits::fileBytes)));
  if (value.has("assembler"))
    image.assembler = value.at("assembler").string();
  return image;
}

/// "sm_90" -> 90; 0 if it is no such name.
int parseSm(const std::string &target) {
  if (target.size() < 5 || target.size() > 6 ||
      target.compare(0, 3, "sm_") != 0)
    return 0;
  int number = 0;
  for (char c : target.substr(3)) {
    if (c < '0' || c > '9')
      return 0;
    number = number * 10 + (c - '0');
  }
  return number;
}

TargetCode parseCode(const Value &value, const KernelDesc &kernel) {
  TargetCode code;
  code.target = value.at("target").name();
  code.computeCapability = parseSm(code.target);
  code.cpuLevel = cpuLevelOf(code.target);
  if (code.isCpu() && code.cpuLevel < 0)
    value.at("target").error("\"sm_NN\""
#define MLAFIX_CPU_TARGET(NAME, LEVEL) ", \"" NAME "\""
#include "mlafix/Targets.def"
                             " (the unit may come from a newer mlafix)");
  for (const TargetCode &other : kernel.code)
    if (other.target == code.target)
      value.at("target").error("a target that no other entry has");
  value.at("images").each(limits::images, [&](const Value &image) {
    code.images.push_back(parseImage(image, code));
  });
  if (code.images.empty())
    value.at("images").error("at least one image");
  if (code.isCpu() && code.images.size() != 1)
    value.at("images").error("one image for a CPU target");
  value.at("variants").each(limits::variants, [&](const Value &variant) {
    code.variants.push_back(parseCodeVersion(variant, kernel, code));
  });
  if (code.variants.empty())
    value.at("variants").error("at least one code version");
  return code;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

std::vector<std::pair<std::string, std::string>>
parseBindings(const Value &value) {
  std::vector<std::pair<std::string, std::string>> bindings;
  value.requireObject();
  if (value.raw().size() > limits::bindings)
    value.error("at most " + std::to_string(limits::bindings) + " bindings");
  // The library keeps keys sorted.
  for (const auto &item : value.raw().items()) {
    Value binding = value.at(item.key().c_str());
    std::string text =
        item.value().is_number_integer()
            ? std::to_string(binding.integer(INT64_MIN, INT64_MAX))
            : binding.name();
    // A list of bindings is a text, too: "D=128,T=bf16".
    if (!limits::isBindable(item.key()) || !limits::isBindable(text))
      value.error("names and values without '=' and ','");
    bindings.emplace_back(item.key(), text);
  }
  return bindings;
}

ProofDesc parseProof(const Value &value, const KernelDesc &kernel) {
  ProofDesc proof;
  proof.arg = static_cast<uint32_t>(
      value.at("arg").integer(0, static_cast<int64_t>(kernel.args.size()) - 1));
  proof.question = value.at("question").name();
  proof.verdict = value.at("verdict").name();
  if (value.has("reason"))
    proof.reason = value.at("reason").string();
  if (value.has("element"))
    proof.element = value.at("element").string();
  return proof;
}

KernelDesc parseKernel(const Value &value) {
  KernelDesc kernel;
  kernel.name = value.at("name").name();
  if (value.has("bindings"))
    kernel.bindings = parseBindings(value.at("bindings"));
  for (const auto &[name, text] : kernel.bindings)
    kernel.bindingsText +=
        (kernel.bindingsText.empty() ? "" : ",") + name + "=" + text;
  if (value.has("defaults"))
    kernel.defaults = parseBindings(value.at("defaults"));
  value.at("args").each(MLAFIX_MAX_ARGS, [&](const Value &arg) {
    kernel.args.push_back(parseArg(arg, kernel));
  });
  resolveBounds(kernel);
  if (value.has("aliases"))
    value.at("aliases").each(limits::aliases, [&](const Value &pair) {
      std::vector<uint32_t> members;
      pair.each(2, [&](const Value &member) {
        members.push_back(tensorIndex(member, kernel));
      });
      if (members.size() != 2 || members[0] == members[1])
        pair.error("two different arguments");
      kernel.aliases.emplace_back(members[0], members[1]);
    });
  if (value.has("checks"))
    value.at("checks").each(limits::checks, [&](const Value &check) {
      kernel.checks.push_back(parseLaunchCheck(check, kernel));
    });
  if (value.has("proofs"))
    value.at("proofs").each(limits::proofs, [&](const Value &proof) {
      kernel.proofs.push_back(parseProof(proof, kernel));
    });
  value.at("code").each(limits::targets, [&](const Value &code) {
    kernel.code.push_back(parseCode(code, kernel));
  });
  return kernel;
}

} // namespace

mlafix_status mlafix::runtime::parseManifest(const char *text, size_t size,
                                             UnitDesc &unit) {
  try {
    json root = parseJson(text, size);
    Value value(root, "");
    std::set<std::string> seen;
    if (value.has("producer"))
      unit.producer = value.at("producer").string();
    value.at("kernels").each(limits::kernels, [&](const Value &kernel) {
      unit.kernels.push_back(parseKernel(kernel));
      // A look-up could not choose between two of the same.
      const KernelDesc &last = unit.kernels.back();
      if (!seen.insert(last.name + " " + last.bindingsText).second)
        kernel.at("name").error("another name, or other bindings, than each "
                                "kernel before it");
    });
  } catch (const ManifestError &error) {
    return fail(MLAFIX_BAD_UNIT, "the unit's manifest is wrong: %s",
                error.message.c_str());
  }
  // Only now do the strings stay where they are.
  for (KernelDesc &kernel : unit.kernels)
    for (ArgDesc &arg : kernel.args)
      for (const std::string &dim : arg.dims)
        arg.dimPointers.push_back(dim.c_str());
  return MLAFIX_OK;
}
