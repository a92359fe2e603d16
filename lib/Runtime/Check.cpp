//===- Check.cpp - Arguments against the signature ------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Bytes.h"
#include "Call.h"
#include "Manifest.h"
#include "Unit.h"
#include "mlafix/DimList.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

using namespace mlafix::runtime;
using namespace mlafix;

//===----------------------------------------------------------------------===//
// Overlap
//===----------------------------------------------------------------------===//

namespace {

bool mayAlias(const KernelDesc &desc, uint32_t a, uint32_t b) {
  for (const auto &pair : desc.aliases)
    if ((pair.first == a && pair.second == b) ||
        (pair.first == b && pair.second == a))
      return true;
  return false;
}

/// Returns true if the tensors `a` and `b` have equal element sizes, shapes and
/// strides.
bool sameLayout(const Call &call, uint32_t a, uint32_t b) {
  const ArgDesc &descA = call.desc().args[a], &descB = call.desc().args[b];
  const CallArg &argA = call.args[a], &argB = call.args[b];
  if (descA.ndim() != descB.ndim() || descA.elementBytes != descB.elementBytes)
    return false;
  for (uint32_t i = 0; i < descA.ndim(); ++i)
    if (argA.sizes[i] != argB.sizes[i] ||
        (argA.sizes[i] > 1 && argA.strides[i] != argB.strides[i]))
      return false;
  return true;
}

/// Returns the layout of an argument. The argument's span has been computed, so
/// its layout exists.
ByteLayout layoutOf(const Call &call, uint32_t index) {
  const ArgDesc &desc = call.desc().args[index];
  const CallArg &given = call.args[index];
  ByteLayout layout;
  makeByteLayout(desc, given, layout);
  return layout;
}

/// Checks two tensors whose spans overlap.
mlafix_status checkPair(const Call &call, uint32_t a, uint32_t b) {
  const KernelDesc &desc = call.desc();
  bool aliased = mayAlias(desc, a, b);
  if (call.args[a].data == call.args[b].data && mayCoincide(call, a, b))
    return MLAFIX_OK;
  Relation relation = overlap(layoutOf(call, a), layoutOf(call, b));
  if (relation == Relation::Disjoint)
    return MLAFIX_OK;
  if (relation == Relation::Unknown) {
    if (call.flags & MLAFIX_LAUNCH_ASSUME_DISJOINT)
      return MLAFIX_OK;
    return WRONG(
        desc.args[a],
        "expected memory apart from that of argument \"%s\", got "
        "interleaved tensors that cannot be told apart by their sizes "
        "and strides (pass MLAFIX_LAUNCH_ASSUME_DISJOINT if they are disjoint)",
        desc.args[b].name.c_str());
  }
  return WRONG(desc.args[a],
               "expected memory apart from that of argument \"%s\"%s, got an "
               "overlap",
               desc.args[b].name.c_str(),
               aliased ? " (or the same pointer, sizes and strides)" : "");
}

/// Computes the span of a tensor for which makeByteSpan() returned false. Fails
/// if the tensor is written and its elements overlap.
mlafix_status spanByLayout(const Call &call, uint32_t index, ByteSpan &span) {
  const ArgDesc &arg = call.desc().args[index];
  const CallArg &given = call.args[index];
  ByteLayout layout;
  if (!makeByteLayout(arg, given, layout))
    return WRONG(arg, "expected a tensor that fits the address space, got %s",
                 "sizes and strides that lead out of it");
  span = {layout.base, layout.extent};
  if (!arg.isWritten())
    return MLAFIX_OK;
  Relation self = selfOverlap(layout);
  if (self == Relation::Overlap ||
      (self == Relation::Unknown &&
       !(call.flags & MLAFIX_LAUNCH_ASSUME_DISJOINT)))
    return WRONG(arg,
                 "expected each element of a tensor that is written at an "
                 "address of its own, got strides that %s",
                 self == Relation::Overlap ? "let elements overlap"
                                           : "may let elements overlap");
  return MLAFIX_OK;
}

} // namespace

bool mlafix::runtime::mayCoincide(const Call &call, uint32_t a, uint32_t b) {
  const ArgDesc &descA = call.desc().args[a], &descB = call.desc().args[b];
  return descA.isTensor() && descB.isTensor() && mayAlias(call.desc(), a, b) &&
         call.args[a].hasShape && call.args[b].hasShape &&
         sameLayout(call, a, b);
}

/// Checks that no written tensor overlaps itself or another tensor (N11). A
/// tensor may overlap another one if the kernel lets the two alias.
static mlafix_status checkOverlaps(const Call &call) {
  const KernelDesc &desc = call.desc();
  // The spans of all tensors that touch memory, and their argument indices.
  ByteSpan spans[MLAFIX_MAX_ARGS];
  uint32_t which[MLAFIX_MAX_ARGS];
  uint32_t count = 0;
  for (uint32_t i = 0; i < desc.args.size(); ++i) {
    const ArgDesc &arg = desc.args[i];
    const CallArg &given = call.args[i];
    // checkManyPointers() checks arguments of several tensors.
    if (!arg.isTensor() || arg.isMany() || !given.present)
      continue;
    ByteSpan &span = spans[count];
    if (!makeByteSpan(arg, given, arg.isWritten(), span))
      MLAFIX_TRY(spanByLayout(call, i, span));
    if (span.extent != 0)
      which[count++] = i;
  }
  for (uint32_t a = 0; a < count; ++a) {
    if (!desc.args[which[a]].isWritten())
      continue;
    for (uint32_t b = 0; b < count; ++b) {
      // If both tensors of a pair are written, check the pair only once.
      if (spans[a].isApartFrom(spans[b]) || a == b ||
          (b < a && desc.args[which[b]].isWritten()))
        continue;
      MLAFIX_TRY(checkPair(call, which[a], which[b]));
    }
  }
  return MLAFIX_OK;
}

// Conditions of a launch
//===----------------------------------------------------------------------===//

namespace {

/// Returns the value that a step reads: a size (0 if the tensor is omitted) or
/// a scalar.
int64_t readLeaf(const Call &call, const CheckStep &step) {
  const CallArg &arg = call.args[step.arg];
  if (step.kind == CheckStepKind::Size)
    return arg.hasShape ? arg.sizes[step.dim] : 0;
  return integerOf(call, step.arg);
}

int64_t compute(CheckStepKind kind, int64_t x, int64_t y, int64_t z) {
  auto ux = static_cast<uint64_t>(x), uy = static_cast<uint64_t>(y);
  switch (kind) {
#define MLAFIX_CHECK_STEP(KIND, NAME, OPERANDS, VALUE)                         \
  case CheckStepKind::KIND:                                                    \
    return static_cast<int64_t>(VALUE);
#include "mlafix/CheckSteps.def"
  default:
    return 0;
  }
}

bool passes(const Call &call, const LaunchCheck &check) {
  std::array<int64_t, limits::checkSteps> values = {};
  size_t count = 0;
  for (const CheckStep &step : check.steps) {
    int64_t &value = values[count++];
    if (step.kind == CheckStepKind::Constant)
      value = step.value;
    else if (step.isLeaf())
      value = readLeaf(call, step);
    else
      value = compute(step.kind, values[step.of[0]], values[step.of[1]],
                      values[step.of[2]]);
  }
  return values[count - 1] != 0;
}

/// Returns true if `text` contains the name `word`, not only as a part of a
/// longer name.
bool hasWord(const std::string &text, const std::string &word) {
  auto isOfName = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
           (c >= 'a' && c <= 'z');
  };
  for (size_t at = text.find(word); at != std::string::npos;
       at = text.find(word, at + 1)) {
    size_t end = at + word.size();
    if ((at == 0 || !isOfName(text[at - 1])) &&
        (end == text.size() || !isOfName(text[end])))
      return true;
  }
  return false;
}

/// Formats the values of a condition's names, for example "n = 20, k = 3".
/// Stops when the buffer is full.
class Numbers {
public:
  Numbers(const Call &call, const LaunchCheck &check) {
    for (const CheckStep &step : check.steps) {
      if (!step.isLeaf() || step.kind == CheckStepKind::Constant)
        continue;
      const ArgDesc &arg = call.desc().args[step.arg];
      bool isSize = step.kind == CheckStepKind::Size;
      bool isNamed = !isSize || !arg.dims[step.dim].empty();
      const std::string &name =
          isSize && isNamed ? arg.dims[step.dim] : arg.name;
      add("%.48s%s = %" PRId64, name.c_str(), isNamed ? "" : ".shape",
          readLeaf(call, step));
    }
    // A bound name is a constant in the steps, so look it up in the bindings.
    const auto &bindings = call.desc().bindings;
    for (const auto &[name, value] : bindings)
      if (hasWord(check.text, name))
        add("%.48s = %.48s", name.c_str(), value.c_str());
    for (size_t i = 0; used == 0 && i < bindings.size(); ++i)
      add("%.48s = %.48s", bindings[i].first.c_str(),
          bindings[i].second.c_str());
    if (used == 0)
      add("a condition that never holds");
  }

  const char *get() const { return text; }

private:
  __attribute__((format(printf, 2, 3))) void add(const char *format, ...) {
    char one[128];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(one, sizeof(one), format, arguments);
    va_end(arguments);
    int written = std::snprintf(text + used, sizeof(text) - used, "%s%s",
                                used ? ", " : "", one);
    if (used + static_cast<size_t>(written) < sizeof(text))
      used += static_cast<size_t>(written);
    text[used] = '\0';
  }

  size_t used = 0;
  char text[512] = "";
};

} // namespace

/// Checks the kernel's conditions on sizes and scalars. All arguments have been
/// read.
static mlafix_status checkConditions(const Call &call) {
  for (const LaunchCheck &check : call.desc().checks)
    if (!passes(call, check))
      return fail(MLAFIX_INVALID_ARGUMENT, "expected %s, got %s",
                  check.text.c_str(), Numbers(call, check).get());
  return MLAFIX_OK;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

namespace {

constexpr uint32_t knownFlags = MLAFIX_LAUNCH_DEEP_CHECKS |
                                MLAFIX_LAUNCH_NO_DEPENDENT |
                                MLAFIX_LAUNCH_ASSUME_DISJOINT;

/// The largest allowed size of a dim, in elements. No memory is larger. The
/// compiler's proofs assume that index arithmetic on sizes up to this limit
/// does not overflow (docs/Proofs.md).
constexpr int64_t maxSize = int64_t(1) << 48;

/// An upper limit of sizeof(mlafix_arg) in bytes, for all future versions.
constexpr uint32_t maxArgBytes = 256;

const char *kindName(int32_t kind) {
  switch (kind) {
  case MLAFIX_ARG_TENSOR:
    return "a tensor";
  case MLAFIX_ARG_I64:
    return "an i64";
  case MLAFIX_ARG_I32:
    return "an i32";
  case MLAFIX_ARG_F32:
    return "an f32";
  case MLAFIX_ARG_BOOL:
    return "a bool";
  case MLAFIX_ARG_PEERS:
    return "a tensor of each rank";
  case MLAFIX_ARG_LIST:
    return "a list of tensors";
  default:
    return "an argument of unknown kind";
  }
}

const char *dtypeName(int32_t dtype) {
  const DTypeInfo *info = findDType(dtype);
  return info ? info->name : "an unknown dtype";
}

/// Formats a dim's name for a message as ` ("n")`. The text is empty if the dim
/// has no name.
struct DimLabel {
  DimLabel(const ArgDesc &desc, uint32_t dim) {
    const std::string &name = desc.dims[dim];
    size_t shown = std::min<size_t>(name.size(), longest);
    if (name.empty())
      text[0] = '\0';
    else
      std::snprintf(text, sizeof(text), " (\"%.*s%s\")",
                    static_cast<int>(wholeLength(name.data(), shown)),
                    name.data(), shown < name.size() ? "..." : "");
  }
  static constexpr size_t longest = 48;
  char text[longest + 16];
};

/// Returns advice for a message about rows whose elements are not adjacent, or
/// "".
const char *adviceOnStride(const ArgDesc &desc, uint32_t dim) {
  if (desc.strides[dim] != 1 || desc.access != MLAFIX_READ)
    return "";
  return "; a contiguous copy has it, as .contiguous() of a torch tensor";
}

mlafix_status checkShape(const ArgDesc &desc, const CallArg &arg) {
  for (uint32_t i = 0; i < desc.ndim(); ++i) {
    if (arg.sizes[i] < 0)
      return WRONG(desc,
                   "expected a size of at least 0 in dim %u%s, got %" PRId64, i,
                   DimLabel(desc, i).text, arg.sizes[i]);
    if (arg.sizes[i] > maxSize)
      return WRONG(desc,
                   "expected a size of at most 2^48 in dim %u%s, got %" PRId64,
                   i, DimLabel(desc, i).text, arg.sizes[i]);
    if (desc.shape[i] >= 0 && arg.sizes[i] != desc.shape[i])
      return WRONG(desc, "expected size %" PRId64 " in dim %u%s, got %" PRId64,
                   desc.shape[i], i, DimLabel(desc, i).text, arg.sizes[i]);
  }
  if (uint32_t last = desc.ndim() - 1;
      desc.perByte > 1 && arg.sizes[last] % desc.perByte != 0)
    return WRONG(desc,
                 "expected an even size in dim %u%s, since two elements of %s "
                 "share a byte, got %" PRId64,
                 last, DimLabel(desc, last).text, desc.dtypeName.c_str(),
                 arg.sizes[last]);
  for (uint32_t i = 0; i < desc.ndim(); ++i)
    // The stride of a dim of size 1 is never used. Neither are the strides of
    // an empty tensor, which are 0 in numpy.
    if (desc.strides[i] >= 0 && arg.sizes[i] > 1 && !arg.empty &&
        arg.strides[i] != desc.strides[i])
      return WRONG(desc,
                   "expected stride %" PRId64 " in dim %u%s, got %" PRId64 "%s",
                   desc.strides[i], i, DimLabel(desc, i).text, arg.strides[i],
                   adviceOnStride(desc, i));
  return desc.isSwizzled() ? checkSwizzle(desc, arg) : MLAFIX_OK;
}

/// Computes row-major strides from the sizes, which are not negative. Returns
/// false on overflow.
bool contiguousStrides(const ArgDesc &desc, CallArg &arg) {
  int64_t stride = 1;
  for (uint32_t i = desc.ndim(); i-- > 0;) {
    arg.strides[i] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(arg.sizes[i], 1),
                               &stride))
      return false;
    if (i + 1 == desc.ndim())
      stride /= desc.perByte; // outer strides count bytes
  }
  return true;
}

/// Checks that dims with the same name have the same size. The first argument
/// with the name determines the size.
mlafix_status checkNamedDims(const Call &call, int64_t *values) {
  const KernelDesc &desc = call.desc();
  // The capacity is the number of dims that all arguments can have together, so
  // each name fits.
  constexpr size_t capacity = MLAFIX_MAX_ARGS * MLAFIX_MAX_DIMS;
  uint16_t first[capacity];
  std::fill_n(values, desc.dimNames.size(), int64_t(-1));
  for (uint32_t a = 0; a < desc.args.size(); ++a) {
    const ArgDesc &arg = desc.args[a];
    if (!arg.isTensor() || !call.args[a].hasShape)
      continue;
    for (uint32_t i = 0; i < arg.ndim(); ++i) {
      int32_t id = arg.dimIds[i];
      if (id < 0)
        continue;
      int64_t size = call.args[a].sizes[i];
      if (values[id] < 0) {
        values[id] = size;
        first[id] = static_cast<uint16_t>(a);
      } else if (values[id] != size) {
        return WRONG(arg,
                     "expected size %" PRId64
                     " in dim %u%s, as in argument \"%s\", got %" PRId64,
                     values[id], i, DimLabel(arg, i).text,
                     desc.args[first[id]].name.c_str(), size);
      }
    }
  }
  return MLAFIX_OK;
}

mlafix_status checkBounds(const Call &call, const int64_t *dimValues) {
  const KernelDesc &desc = call.desc();
  for (uint32_t i = 0; i < desc.args.size(); ++i) {
    const ArgDesc &arg = desc.args[i];
    if (arg.atMostId < 0)
      continue;
    int64_t value = integerOf(call, i);
    int64_t most = dimValues[arg.atMostId];
    if (value < 0 || value > most)
      return WRONG(arg,
                   "expected a value from 0 to %" PRId64
                   ", the size of dim \"%s\", got %" PRId64,
                   most, arg.atMost.c_str(), value);
  }
  return MLAFIX_OK;
}

} // namespace

mlafix_status mlafix::runtime::readTensor(const ArgDesc &desc,
                                          const mlafix_tensor *tensor,
                                          mlafix_device device, CallArg &arg) {
  arg.present = arg.hasShape = arg.empty = false;
  arg.data = nullptr;
  if (!tensor) {
    if (desc.optional)
      return MLAFIX_OK;
    return WRONG(desc, "expected a tensor of dtype %s%s, got null",
                 desc.dtypeName.c_str(),
                 desc.boundPresent ? ", since this specialisation binds the "
                                     "argument as present"
                                   : "");
  }
  if (tensor->struct_size < sizeof(mlafix_tensor))
    return WRONG(desc, "expected a mlafix_tensor with struct_size %zu, got %u",
                 sizeof(mlafix_tensor), tensor->struct_size);
  if (desc.optional && !tensor->data) // omitted: ignore its shape
    return MLAFIX_OK;
  if (desc.isAbsent())
    return WRONG(desc,
                 "expected null, since this specialisation binds the argument "
                 "as absent, got a tensor of dtype %s",
                 dtypeName(tensor->dtype));
  if (tensor->dtype != desc.dtype)
    return WRONG(desc, "expected dtype %s, got %s", desc.dtypeName.c_str(),
                 dtypeName(tensor->dtype));
  if (tensor->ndim != desc.ndim())
    return WRONG(desc, "expected %u dims, got %u%s", desc.ndim(), tensor->ndim,
                 DimList(desc.dims).text);
  if (tensor->device.type != device.type ||
      tensor->device.ordinal != device.ordinal)
    return WRONG(desc, "expected a tensor on %s, got one on %s",
                 DeviceName(device).text, DeviceName(tensor->device).text);
  if (desc.ndim() > 0 && !tensor->sizes)
    return WRONG(desc, "expected %u sizes, got null", desc.ndim());

  arg.hasShape = true;
  arg.data = tensor->data;
  arg.present = tensor->data != nullptr;
  for (uint32_t i = 0; i < desc.ndim(); ++i) {
    arg.sizes[i] = tensor->sizes[i];
    arg.strides[i] = tensor->strides ? tensor->strides[i] : 0;
    arg.empty |= arg.sizes[i] == 0;
  }
  if (!tensor->strides && !contiguousStrides(desc, arg))
    return WRONG(desc, "expected a tensor that fits 64-bit offsets, got %s",
                 "sizes whose product does not");
  return checkShape(desc, arg);
}

mlafix_status mlafix::runtime::readScalar(const ArgDesc &desc,
                                          const mlafix_arg &arg, CallArg &out) {
  out.present = out.hasShape = out.empty = false;
  out.data = nullptr;
  out.scalar = scalarSlot(arg);
  if (desc.kind == MLAFIX_ARG_BOOL && arg.value.boolean > 1)
    return WRONG(desc, "expected a bool, which is 0 or 1, got %u",
                 arg.value.boolean);
  return MLAFIX_OK;
}

mlafix_status mlafix::runtime::checkScalarBounds(const Call &call) {
  int64_t dimValues[MLAFIX_MAX_ARGS * MLAFIX_MAX_DIMS];
  MLAFIX_TRY(checkNamedDims(call, dimValues));
  MLAFIX_TRY(checkBounds(call, dimValues));
  return checkConditions(call);
}

mlafix_status mlafix::runtime::checkPointers(const Call &call) {
  const KernelDesc &desc = call.desc();
  for (uint32_t i = 0; i < desc.args.size(); ++i) {
    const ArgDesc &arg = desc.args[i];
    const CallArg &given = call.args[i];
    if (!arg.isTensor() || arg.isMany() || !given.hasShape)
      continue;
    if (!given.present && !given.empty)
      return WRONG(arg, "expected a data pointer, got %s",
                   "null for a tensor that is neither optional nor empty");
    if (reinterpret_cast<uintptr_t>(given.data) & (arg.elementBytes - 1))
      return WRONG(arg,
                   "expected a data pointer that is a multiple of %u, the size "
                   "of a %s, got %p",
                   arg.elementBytes, arg.dtypeName.c_str(), given.data);
  }
  MLAFIX_TRY(checkOverlaps(call));
  return checkManyPointers(call);
}

mlafix_status mlafix::runtime::checkCall(const mlafix_kernel &kernel,
                                         const mlafix_arg *args,
                                         uint32_t numArgs, mlafix_device device,
                                         uint32_t flags, Call &call) {
  size_t slot = 0;
  MLAFIX_TRY(deviceSlot(device, slot));
  if (flags & ~knownFlags)
    return fail(MLAFIX_INVALID_ARGUMENT,
                "argument \"flags\": expected flags that this library knows, "
                "got 0x%x",
                flags);
  const KernelDesc &desc = *kernel.desc;
  if (numArgs != desc.args.size())
    return fail(MLAFIX_INVALID_ARGUMENT, "expected %zu arguments, got %u",
                desc.args.size(), numArgs);
  if (numArgs > 0 && !args)
    return fail(
        MLAFIX_INVALID_ARGUMENT,
        "argument \"args\": expected an array of %u arguments, got null",
        numArgs);
  call.kernel = kernel.desc;
  call.device = device;
  call.flags = flags;
  call.numTables = 0;
  call.hasGroup = false;
  call.blockSlots = 0;
  const char *next = reinterpret_cast<const char *>(args);
  uint32_t step = numArgs > 0 ? args->struct_size : 0;
  // `struct_size` is also the distance between arguments, so check it before
  // reading the second one.
  if (numArgs > 0 && (step < sizeof(mlafix_arg) || step > maxArgBytes ||
                      step % alignof(mlafix_arg) != 0))
    return WRONG(desc.args[0],
                 "expected a mlafix_arg with struct_size %zu, or that of a "
                 "newer header, got %u",
                 sizeof(mlafix_arg), step);
  for (uint32_t i = 0; i < numArgs; ++i, next += step) {
    const ArgDesc &arg = desc.args[i];
    const auto &given = *reinterpret_cast<const mlafix_arg *>(next);
    if (given.struct_size != step)
      return WRONG(arg,
                   "expected a mlafix_arg with struct_size %u, as the first "
                   "one, got %u",
                   step, given.struct_size);
    if (given.kind != arg.kind)
      return WRONG(arg, "expected %s, got %s", kindName(arg.kind),
                   kindName(given.kind));
    if (arg.isMany())
      MLAFIX_TRY(readMany(arg, given.value.peers, device, call, call.args[i]));
    else if (arg.isTensor())
      MLAFIX_TRY(readTensor(arg, given.value.tensor, device, call.args[i]));
    else
      MLAFIX_TRY(readScalar(arg, given, call.args[i]));
  }
  MLAFIX_TRY(checkScalarBounds(call));
  MLAFIX_TRY(checkPointers(call));
  MLAFIX_TRY(checkGroup(call));
  return flags & MLAFIX_LAUNCH_DEEP_CHECKS ? checkMemory(call) : MLAFIX_OK;
}
