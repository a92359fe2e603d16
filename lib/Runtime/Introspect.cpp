//===- Introspect.cpp - What a unit and its kernels are -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Container.h"
#include "Status.h"
#include "Unit.h"

#include <algorithm>
#include <cstring>

using namespace mlafix::runtime;

namespace {

using Bindings = std::vector<std::pair<std::string, std::string>>;

/// Parses text like "D=128,T=bf16". Spaces around names and values are allowed.
mlafix_status parseBindings(const char *text, Bindings &bindings) {
  auto trim = [](const std::string &s) {
    size_t begin = s.find_first_not_of(' ');
    if (begin == s.npos)
      return std::string();
    return s.substr(begin, s.find_last_not_of(' ') - begin + 1);
  };
  std::string rest = text ? text : "";
  if (trim(rest).empty())
    return MLAFIX_OK;
  for (size_t begin = 0; begin <= rest.size();) {
    size_t end = std::min(rest.find(',', begin), rest.size());
    std::string item = rest.substr(begin, end - begin);
    size_t equals = item.find('=');
    std::string name = trim(item.substr(0, equals));
    std::string value =
        equals == item.npos ? "" : trim(item.substr(equals + 1));
    if (name.empty() || value.empty())
      return fail(MLAFIX_INVALID_ARGUMENT,
                  "argument \"bindings\": expected NAME=VALUE[,NAME=VALUE...], "
                  "got \"%s\"",
                  text);
    bindings.emplace_back(name, value);
    begin = end + 1;
  }
  return MLAFIX_OK;
}

/// Returns true if `name` is an upper-case dim whose size is nevertheless known
/// only at launch.
bool isOpen(const KernelDesc &kernel, const std::string &name) {
  return name.front() >= 'A' && name.front() <= 'Z' &&
         std::any_of(kernel.args.begin(), kernel.args.end(),
                     [&](const ArgDesc &arg) {
                       for (uint32_t d = 0; d < arg.ndim(); ++d)
                         if (arg.dims[d] == name && arg.shape[d] < 0)
                           return true;
                       return false;
                     });
}

/// Returns true if the kernel has all bindings of `wanted`. If `orOpen` is
/// true, a dim whose size is known only at launch matches any size.
bool matches(const KernelDesc &kernel, const Bindings &wanted, bool orOpen) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto &binding) {
    return std::find(kernel.bindings.begin(), kernel.bindings.end(), binding) !=
               kernel.bindings.end() ||
           (orOpen && isOpen(kernel, binding.first));
  });
}

/// Returns true if every binding of the kernel that `wanted` omits is the
/// default one:
///   - A name with a default must be bound to it.
///   - A dynamic dim (lower case) or an optional argument without a default is
///     not bound by default, so any binding of it is not the default one.
///   - Any binding of another name counts as the default one.
bool isDefault(const KernelDesc &kernel, const Bindings &wanted) {
  return std::all_of(
      kernel.bindings.begin(), kernel.bindings.end(), [&](const auto &binding) {
        auto named = [&](const Bindings &list) {
          return std::find_if(list.begin(), list.end(), [&](const auto &other) {
            return other.first == binding.first;
          });
        };
        if (named(wanted) != wanted.end())
          return true;
        auto preset = named(kernel.defaults);
        if (preset != kernel.defaults.end()) {
          // The default may be the name of another binding: use that binding's
          // value.
          auto other = std::find_if(
              kernel.bindings.begin(), kernel.bindings.end(),
              [&](const auto &base) { return base.first == preset->second; });
          return binding.second == (other == kernel.bindings.end()
                                        ? preset->second
                                        : other->second);
        }
        bool isLower =
            binding.first.front() >= 'a' && binding.first.front() <= 'z';
        return !isLower && std::none_of(kernel.args.begin(), kernel.args.end(),
                                        [&](const ArgDesc &arg) {
                                          return arg.name == binding.first;
                                        });
      });
}

/// Lists kernels for a message, for example "merge[D=128,T=bf16], fixup". The
/// list has at most 32 kernels, and says how many more there are.
std::string list(const std::vector<const KernelDesc *> &kernels) {
  std::string text;
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (i == 32)
      return text + ", and " + std::to_string(kernels.size() - i) + " more";
    text += (i ? ", " : "") + kernels[i]->name;
    if (!kernels[i]->bindingsText.empty())
      text += "[" + kernels[i]->bindingsText + "]";
  }
  return text.empty() ? "no kernel" : text;
}

mlafix_status findKernel(const mlafix_unit &unit, const char *name,
                         const char *bindings, const mlafix_kernel *&found) {
  Bindings wanted;
  MLAFIX_TRY(parseBindings(bindings, wanted));
  std::vector<const KernelDesc *> all, named, matching;
  for (const mlafix_kernel &kernel : unit.kernels) {
    all.push_back(kernel.desc);
    if (kernel.desc->name == name)
      named.push_back(kernel.desc);
  }
  // Prefer kernels that are compiled for the given sizes. Use kernels for any
  // size only if there is no such kernel.
  bool orOpen = false;
  auto isMatching = [&](const mlafix_kernel &kernel) {
    return kernel.desc->name == name && matches(*kernel.desc, wanted, orOpen);
  };
  orOpen = std::none_of(unit.kernels.begin(), unit.kernels.end(), isMatching);
  for (const mlafix_kernel &kernel : unit.kernels)
    if (isMatching(kernel)) {
      matching.push_back(kernel.desc);
      found = &kernel;
    }
  if (matching.size() == 1)
    return MLAFIX_OK;
  size_t presets = 0;
  for (const mlafix_kernel &kernel : unit.kernels)
    if (isMatching(kernel) && isDefault(*kernel.desc, wanted)) {
      found = &kernel;
      ++presets;
    }
  if (presets == 1)
    return MLAFIX_OK;
  found = nullptr;
  if (named.empty())
    return fail(MLAFIX_NOT_FOUND,
                "expected a kernel \"%s\" in the unit, got %s", name,
                list(all).c_str());
  if (matching.empty())
    return fail(MLAFIX_NOT_FOUND,
                "expected a kernel \"%s\" with bindings \"%s\" in the unit, "
                "got %s",
                name, bindings, list(named).c_str());
  return fail(MLAFIX_INVALID_ARGUMENT,
              "expected bindings that choose one kernel \"%s\", got \"%s\", "
              "which leaves %s",
              name, bindings ? bindings : "", list(matching).c_str());
}

/// Copies `from` to the caller's struct, but only as many bytes as that struct
/// has.
template <typename Info> mlafix_status give(const Info &from, Info *to) {
  uint32_t size = to->struct_size;
  if (size < sizeof(uint32_t))
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"info\": expected struct_size to be set, got %u",
                size);
  std::memcpy(to, &from, std::min<size_t>(size, sizeof(Info)));
  to->struct_size = size;
  return MLAFIX_OK;
}

/// Fails unless the caller's struct has its size set. `type` is its name.
template <typename Info>
mlafix_status checkInfo(const Info *info, const char *type) {
  if (info && info->struct_size >= sizeof(uint32_t))
    return MLAFIX_OK;
  return fail(MLAFIX_INVALID_ARGUMENT,
              "argument \"info\": expected a %s with struct_size set, got %s",
              type, info ? "none set" : "null");
}

mlafix_status noSuch(const char *what, uint32_t index, size_t count) {
  return fail(MLAFIX_INVALID_ARGUMENT,
              "argument \"index\": expected less than %zu, the number of %s, "
              "got %u",
              count, what, index);
}

} // namespace

extern "C" const char *mlafix_unit_producer(const mlafix_unit *unit) noexcept {
  return unit ? unit->desc.producer.c_str() : "";
}

extern "C" const char *mlafix_unit_manifest(const mlafix_unit *unit,
                                            size_t *size) noexcept {
  if (size)
    *size = unit ? unit->desc.manifestBytes : 0;
  return unit ? reinterpret_cast<const char *>(unit->bytes.data()) +
                    format::headerBytes
              : nullptr;
}

extern "C" uint32_t mlafix_unit_num_kernels(const mlafix_unit *unit) noexcept {
  return unit ? static_cast<uint32_t>(unit->kernels.size()) : 0;
}

extern "C" const mlafix_kernel *mlafix_unit_kernel_at(const mlafix_unit *unit,
                                                      uint32_t index) noexcept {
  return unit && index < unit->kernels.size() ? &unit->kernels[index] : nullptr;
}

extern "C" mlafix_status
mlafix_unit_find_kernel(const mlafix_unit *unit, const char *name,
                        const char *bindings,
                        const mlafix_kernel **kernel) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(unit, "unit"));
    MLAFIX_TRY(require(name, "name"));
    MLAFIX_TRY(require(kernel, "kernel"));
    *kernel = nullptr;
    return findKernel(*unit, name, bindings, *kernel);
  });
}

extern "C" const char *
mlafix_kernel_name(const mlafix_kernel *kernel) noexcept {
  return kernel ? kernel->desc->name.c_str() : "";
}

extern "C" const char *
mlafix_kernel_bindings(const mlafix_kernel *kernel) noexcept {
  return kernel ? kernel->desc->bindingsText.c_str() : "";
}

extern "C" uint32_t
mlafix_kernel_num_args(const mlafix_kernel *kernel) noexcept {
  return kernel ? static_cast<uint32_t>(kernel->desc->args.size()) : 0;
}

extern "C" mlafix_status
mlafix_kernel_arg_info(const mlafix_kernel *kernel, uint32_t index,
                       mlafix_arg_info *info) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel"));
    MLAFIX_TRY(require(info, "info"));
    if (index >= kernel->desc->args.size())
      return noSuch("arguments", index, kernel->desc->args.size());
    const ArgDesc &arg = kernel->desc->args[index];
    mlafix_arg_info out = MLAFIX_ARG_INFO_INIT;
    out.kind = arg.kind;
    out.name = arg.name.c_str();
    out.dtype_name = arg.dtypeName.c_str();
    out.dtype = arg.dtype;
    out.access = arg.access;
    out.optional = arg.optional;
    out.ndim = arg.ndim();
    out.dims = arg.dimPointers.data();
    out.shape = arg.shape;
    out.strides = arg.strides;
    out.at_most = arg.atMost.empty() ? nullptr : arg.atMost.c_str();
    return give(out, info);
  });
}

extern "C" uint32_t
mlafix_kernel_num_aliases(const mlafix_kernel *kernel) noexcept {
  return kernel ? static_cast<uint32_t>(kernel->desc->aliases.size()) : 0;
}

extern "C" mlafix_status mlafix_kernel_alias(const mlafix_kernel *kernel,
                                             uint32_t index, uint32_t *a,
                                             uint32_t *b) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel"));
    MLAFIX_TRY(require(a, "a"));
    MLAFIX_TRY(require(b, "b"));
    if (index >= kernel->desc->aliases.size())
      return noSuch("aliases", index, kernel->desc->aliases.size());
    *a = kernel->desc->aliases[index].first;
    *b = kernel->desc->aliases[index].second;
    return MLAFIX_OK;
  });
}

extern "C" uint32_t
mlafix_kernel_num_proofs(const mlafix_kernel *kernel) noexcept {
  return kernel ? static_cast<uint32_t>(kernel->desc->proofs.size()) : 0;
}

extern "C" mlafix_status mlafix_kernel_proof(const mlafix_kernel *kernel,
                                             uint32_t index,
                                             mlafix_proof_info *info) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel"));
    MLAFIX_TRY(require(info, "info"));
    if (index >= kernel->desc->proofs.size())
      return noSuch("proofs", index, kernel->desc->proofs.size());
    const ProofDesc &proof = kernel->desc->proofs[index];
    mlafix_proof_info out = MLAFIX_PROOF_INFO_INIT;
    out.arg = proof.arg;
    out.question = proof.question.c_str();
    out.verdict = proof.verdict.c_str();
    out.reason = proof.reason.c_str();
    out.element = proof.element.c_str();
    return give(out, info);
  });
}

extern "C" uint32_t
mlafix_kernel_num_targets(const mlafix_kernel *kernel) noexcept {
  return kernel ? static_cast<uint32_t>(kernel->desc->code.size()) : 0;
}

extern "C" const char *mlafix_kernel_target(const mlafix_kernel *kernel,
                                            uint32_t index) noexcept {
  return kernel && index < kernel->desc->code.size()
             ? kernel->desc->code[index].target.c_str()
             : nullptr;
}

extern "C" mlafix_status
mlafix_kernel_code_info(const mlafix_kernel *kernel, mlafix_device device,
                        mlafix_code_info *info) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(kernel, "kernel"));
    MLAFIX_TRY(require(info, "info"));
    const PreparedKernel *prepared = nullptr;
    MLAFIX_TRY(prepareKernel(*kernel, device, prepared));
    mlafix_code_info out = MLAFIX_CODE_INFO_INIT;
    out.num_variants = static_cast<uint32_t>(prepared->code->variants.size());
    out.target = prepared->code->target.c_str();
    switch (prepared->image->format) {
    case Image::Cubin:
      out.format = "cubin";
      break;
    case Image::Ptx:
      out.format = "ptx";
      break;
    case Image::Cpu:
      out.format = "cpu";
      break;
    }
    out.assembler = prepared->image->assembler.c_str();
    return give(out, info);
  });
}

extern "C" mlafix_status
mlafix_bound_launch_info(const mlafix_bound *bound,
                         mlafix_launch_info *info) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a bound kernel"));
    MLAFIX_TRY(checkInfo(info, "mlafix_launch_info"));
    const Plan &plan = bound->plan;
    bool onCpu = bound->call.device.type == MLAFIX_CPU;
    mlafix_launch_info out = MLAFIX_LAUNCH_INFO_INIT;
    out.num_params = plan.numParams;
    out.function = bound->prepared->entries[plan.index];
    out.kernel_params = onCpu ? nullptr : bound->kernelParams;
    out.slots = plan.slots;
    out.rows = plan.rows;
    out.grid_x = plan.grid;
    out.block_x = plan.threads;
    out.variant = plan.index;
    out.dependent = isDependent(plan, bound->call.flags);
    out.entry = plan.variant->entry.c_str();
    for (const Param &param : plan.variant->params)
      out.num_slots += param.slots;
    Traffic traffic = countTraffic(bound->call);
    out.num_variants =
        static_cast<uint32_t>(bound->prepared->code->variants.size());
    out.bytes_read = traffic.read;
    out.bytes_written = traffic.written;
    out.bandwidth = bound->prepared->bandwidth;
    out.target = bound->prepared->code->target.c_str();
    out.kernel = bound->call.desc().name.c_str();
    out.bindings = bound->call.desc().bindingsText.c_str();
    return give(out, info);
  });
}

extern "C" mlafix_status
mlafix_bound_variant_info(const mlafix_bound *bound, uint32_t index,
                          mlafix_variant_info *info) noexcept {
  return guarded([&] {
    MLAFIX_TRY(require(bound, "bound", "a bound kernel"));
    const auto &variants = bound->prepared->code->variants;
    MLAFIX_TRY(checkInfo(info, "mlafix_variant_info"));
    if (index >= variants.size())
      return noSuch("code versions", index, variants.size());
    thread_local std::string refused;
    MLAFIX_TRY(explainVersion(bound->call, variants[index], refused));
    mlafix_variant_info out = MLAFIX_VARIANT_INFO_INIT;
    out.is_chosen = index == bound->plan.index;
    out.entry = variants[index].entry.c_str();
    out.refused = refused.c_str();
    return give(out, info);
  });
}
