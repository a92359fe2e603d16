//===- HostKernel.cpp - a kernel as hosts in C and C++ see it -------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/EmbedUnit.h"

#include "lib/Target/CNames.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
using namespace mlafix::target;

static std::string asText(const json::Value &value) {
  if (std::optional<StringRef> text = value.getAsString())
    return text->str();
  std::string text;
  raw_string_ostream(text) << value;
  return text;
}

/// Changes a source name so that it cannot end a C comment.
static std::string inComment(StringRef name) {
  std::string text;
  for (char c : name)
    text += text.empty() || text.back() != '*' || c != '/' ? std::string(1, c)
                                                           : std::string(" /");
  return text;
}

static std::string inLiteral(StringRef text) {
  std::string escaped;
  raw_string_ostream stream(escaped);
  for (char c : text) {
    if (c == '"' || c == '\\')
      stream << '\\';
    stream << c;
  }
  return escaped;
}

static std::string cTypeOf(StringRef dtype) {
  StringRef plain = StringSwitch<StringRef>(dtype)
                        .Case("f32", "float")
                        .Cases({"i64", "index"}, "int64_t")
                        .Case("i32", "int32_t")
                        .Case("i8", "int8_t")
                        .Case("u8", "uint8_t")
                        .Case("bool", "bool")
                        .Default("");
  return plain.empty() ? ("mlafix::" + dtype).str() : plain.str();
}

/// Describes a tensor argument in words, for example "bf16 [n, H = 16, 128],
/// written".
static std::string describeTensor(const json::Object &arg) {
  std::string text = arg.getString("dtype")->str() + " [";
  const json::Array &dims = *arg.getArray("dims");
  for (auto [i, size] : enumerate(*arg.getArray("shape"))) {
    std::string name = i < dims.size() ? asText(dims[i]) : "";
    int64_t known = size.getAsInteger().value_or(-1);
    std::string number = known < 0 ? "" : std::to_string(known);
    std::string between = name.empty() || number.empty() ? "" : " = ";
    text += (i ? ", " : "") +
            (name.empty() && number.empty() ? "any" : name + between + number);
  }
  text += "]";
  ArrayRef<json::Value> strides = *arg.getArray("strides");
  if (!strides.empty() && strides.back().getAsInteger() == 1)
    text += ", elements of the last dim adjacent";
  StringRef access = *arg.getString("access");
  text += access == "write"    ? ", written"
          : access == "update" ? ", updated"
                               : ", read";
  if (arg.getBoolean("optional").value_or(false))
    text += "; optional";
  return inComment(text);
}

static HostArg describeArgument(const json::Object &arg) {
  HostArg made;
  StringRef dtype = *arg.getString("dtype");
  made.cType = cTypeOf(dtype);
  StringRef kind = *arg.getString("kind");
  if (kind == "peers" || kind == "list") {
    made.cType = "const mlafix_peers *";
    made.maker = "mlafix_" + kind.str() + "_arg";
    made.description = (kind == "peers" ? "of each rank, " : "a list, each ") +
                       describeTensor(arg);
    return made;
  }
  made.isTensor = kind == "tensor";
  if (!made.isTensor) {
    made.maker =
        ("mlafix_" + (dtype == "index" ? "i64" : dtype) + "_arg").str();
    made.description = dtype;
    if (std::optional<StringRef> most = arg.getString("at_most"))
      made.description += ", 0 to " + inComment(*most);
    return made;
  }
  made.maker = "mlafix_tensor_arg";
  made.rank = arg.getArray("shape")->size();
  StringRef access = *arg.getString("access");
  made.isAbsent = access == "absent";
  made.isWritten = access != "read";
  made.isOptional = arg.getBoolean("optional").value_or(false);
  made.description = describeTensor(arg);
  return made;
}

/// Chooses the C names of the arguments. Completes their descriptions: an
/// argument's name in the kernel if the C name differs, and the arguments that
/// may be the same tensor.
static void nameArguments(const json::Object &signature, HostKernel &kernel) {
  CNames names(
      {"args", "bound", "device", "flags", "kernel", "status", "stream"});
  for (auto [arg, value] : zip(kernel.args, *signature.getArray("args"))) {
    StringRef name = *value.getAsObject()->getString("name");
    arg.cName = names.make(name);
    if (arg.cName != name)
      arg.description += "; the kernel calls it " + inComment(name);
  }
  for (const json::Value &alias : *signature.getArray("aliases")) {
    const json::Array &pair = *alias.getAsArray();
    HostArg &first = kernel.args[*pair[0].getAsInteger()];
    const HostArg &second = kernel.args[*pair[1].getAsInteger()];
    StringRef before = StringRef(first.description).contains("may be ")
                           ? " or "
                           : "; may be the same tensor as ";
    if (!first.isAbsent && !second.isAbsent)
      first.description += before.str() + second.cName;
  }
}

Error mlafix::target::checkUnitName(StringRef unit) {
  if (isCName(unit) && !unit.starts_with("mlafix"))
    return Error::success();
  return createStringError("expected a name for the unit that is an identifier "
                           "in C and C++ and does not begin with mlafix "
                           "(--name), got '" +
                           unit + "'");
}

/// Returns the names that do not have the same value in all of `bindings`.
static std::vector<std::string>
differing(ArrayRef<const json::Object *> bindings) {
  std::vector<std::string> names;
  for (const json::Object *some : bindings)
    for (const auto &binding : *some)
      if (any_of(bindings, [&](const json::Object *other) {
            const json::Value *found = other->get(binding.first);
            return !found || *found != binding.second;
          }))
        names.push_back(binding.first.str());
  llvm::sort(names);
  names.erase(llvm::unique(names), names.end());
  return names;
}

/// Returns a suffix such as "_D64_T_bf16" with the bindings of `names`. The
/// suffix tells a specialisation from others of the same kernel.
static std::string suffixOf(const json::Object &bindings,
                            ArrayRef<std::string> names) {
  std::string suffix;
  for (const std::string &name : names)
    if (const json::Value *value = bindings.get(name))
      suffix +=
          "_" + name + (value->getAsInteger() ? "" : "_") + asText(*value);
  return suffix;
}

std::vector<HostKernel>
mlafix::target::describeKernels(StringRef unit,
                                ArrayRef<json::Object> signatures) {
  std::string load = (unit + "_load").str(), loaded = (unit + "_unit").str();
  CNames names({load, loaded});
  std::vector<HostKernel> kernels;
  for (const json::Object &signature : signatures) {
    HostKernel &kernel = kernels.emplace_back();
    StringRef name = *signature.getString("name");
    SmallVector<const json::Object *> ofThatName;
    for (const json::Object &other : signatures)
      if (*other.getString("name") == name)
        ofThatName.push_back(other.getObject("bindings"));
    const json::Object &bindings = *signature.getObject("bindings");
    std::string prefix = name == unit || name.starts_with((unit + "_").str())
                             ? ""
                             : (unit + "_").str();
    kernel.cName = names.make(prefix + name.str() +
                                  suffixOf(bindings, differing(ofThatName)),
                              {"_bind"});
    kernel.name = inComment(name);
    kernel.literal = inLiteral(name);
    SmallVector<std::string> bound;
    for (const auto &[key, value] : bindings)
      bound.push_back(key.str() + "=" + asText(value));
    llvm::sort(bound);
    kernel.bindings = inComment(join(bound, ", "));
    kernel.bindingsLiteral = inLiteral(join(bound, ","));
    for (const json::Value &arg : *signature.getArray("args"))
      kernel.args.push_back(describeArgument(*arg.getAsObject()));
    nameArguments(signature, kernel);
  }
  return kernels;
}
