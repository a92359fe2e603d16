//===- views.hpp - tensors with an element type and a rank ------*- C++ -*-===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
//
// The parameters of the C++ functions in the headers that mlafix-opt writes
// (--emit=header, docs/Embedding.md):
//
//   merge_attn_states({out, {n, 16, 128}}, nullptr, {prefix, {n, 16, 128}}, …);
//
//===----------------------------------------------------------------------===//

#ifndef MLAFIX_RUNTIME_VIEWS_HPP
#define MLAFIX_RUNTIME_VIEWS_HPP

#include "mlafix/runtime.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace mlafix {

/// Element types that C++17 lacks, as their bits in memory.
enum class bf16 : uint16_t {};
enum class f16 : uint16_t {};
enum class f8e4m3fn : uint8_t {};
enum class f8e5m2 : uint8_t {};
enum class f8e8m0 : uint8_t {};
/// Two elements per byte: sizes count elements; strides count bytes, except the
/// last, which is 1.
enum class f4e2m1 : uint8_t {};

/// True if `Source` elements may be passed to a kernel that takes `Element`s.
/// Specialise it for other libraries' types:
///
///   template <>
///   struct mlafix::IsElement<__nv_bfloat16, mlafix::bf16> : std::true_type {};
template <typename Source, typename Element>
struct IsElement : std::is_same<Source, Element> {};

namespace detail::elements {
// Aliases named by the suffix of the dtype's C enumerator.
using BF16 = bf16;
using F16 = f16;
using F32 = float;
using F8E4M3FN = f8e4m3fn;
using F8E5M2 = f8e5m2;
using F8E8M0 = f8e8m0;
using F4E2M1 = f4e2m1;
using I32 = int32_t;
using I64 = int64_t;
using I8 = int8_t;
using U8 = uint8_t;
using BOOL = bool;
} // namespace detail::elements

/// The dtype of a view's elements.
template <typename Element> struct DTypeOf;
#define MLAFIX_DTYPE(ENUM, VALUE, NAME, BITS, MLIR)                            \
  template <> struct DTypeOf<detail::elements::ENUM> {                         \
    static constexpr mlafix_dtype value = MLAFIX_##ENUM;                       \
    static_assert(sizeof(detail::elements::ENUM) == (BITS + 7) / 8,            \
                  "an element has the size of its dtype");                     \
  };
#include "mlafix/DTypes.def"

/// Sizes or strides of `Rank` dims, in elements: {n, 16, 128}.
template <size_t Rank> class Extents {
public:
  template <typename... Integers> Extents(Integers... values) noexcept {
    static_assert(sizeof...(Integers) == Rank,
                  "expected a number for each dim of the kernel's argument");
    static_assert((std::is_integral<Integers>::value && ...),
                  "expected integers");
    size_t i = 0;
    ((numbers[i++] = static_cast<int64_t>(values)), ...);
  }
  const int64_t *data() const noexcept { return numbers; }

private:
  int64_t numbers[Rank > 0 ? Rank : 1] = {};
};

namespace detail {
/// The C form of a view, valid within one expression.
class Descriptor {
public:
  explicit Descriptor(const mlafix_tensor &given) noexcept : tensor(given) {}
  operator const mlafix_tensor *() const noexcept { return &tensor; }

private:
  mlafix_tensor tensor;
};
} // namespace detail

/// A tensor view of `Rank` dims of memory that it does not own. `Element` is
/// const if the kernel only reads it. The call checks sizes and strides.
template <typename Element, size_t Rank> class View {
  using Value = std::remove_const_t<Element>;
  template <typename Source>
  using IfElement =
      std::enable_if_t<IsElement<std::remove_const_t<Source>, Value>::value &&
                       (std::is_const<Element>::value ||
                        !std::is_const<Source>::value)>;

public:
  /// A row-major, contiguous view.
  template <typename Source, typename = IfElement<Source>>
  View(Source *data, const Extents<Rank> &shape) noexcept
      : View(data, shape, shape, false) {}
  template <typename Source, typename = IfElement<Source>>
  View(Source *data, const Extents<Rank> &shape,
       const Extents<Rank> &strides) noexcept
      : View(data, shape, strides, true) {}
  /// Memory without an element type, as frameworks give it; the caller vouches
  /// for its dtype.
  static View untyped(
      std::conditional_t<std::is_const<Element>::value, const void *, void *>
          data,
      const Extents<Rank> &shape) noexcept {
    return View(data, shape, shape, false);
  }
  static View untyped(
      std::conditional_t<std::is_const<Element>::value, const void *, void *>
          data,
      const Extents<Rank> &shape, const Extents<Rank> &strides) noexcept {
    return View(data, shape, strides, true);
  }
  /// A view of writable elements converts to one of const elements.
  template <typename Source, typename = std::enable_if_t<
                                 std::is_same<const Source, Element>::value &&
                                 !std::is_same<Source, Element>::value>>
  View(const View<Source, Rank> &other) noexcept
      : View(other.data(), other.shape(), other.strides(), other.isStrided()) {}

  const void *data() const noexcept { return memory; }
  const Extents<Rank> &shape() const noexcept { return sizes; }
  const Extents<Rank> &strides() const noexcept { return steps; }
  bool isStrided() const noexcept { return strided; }

  /// The C view; valid while this object lives.
  detail::Descriptor on(mlafix_device device) const noexcept {
    mlafix_tensor tensor = MLAFIX_TENSOR_INIT;
    tensor.dtype = DTypeOf<Value>::value;
    tensor.ndim = static_cast<uint32_t>(Rank);
    tensor.device = device;
    tensor.data = const_cast<void *>(memory);
    tensor.sizes = sizes.data();
    tensor.strides = strided ? steps.data() : nullptr;
    return detail::Descriptor(tensor);
  }

protected:
  View(const void *data, const Extents<Rank> &shape,
       const Extents<Rank> &strides, bool hasStrides) noexcept
      : memory(data), sizes(shape), steps(strides), strided(hasStrides) {}

private:
  const void *memory;
  Extents<Rank> sizes, steps;
  bool strided;
};

/// An optional view; nullptr omits it.
template <typename Element, size_t Rank>
class OptionalView : public View<Element, Rank> {
public:
  using View<Element, Rank>::View;
  OptionalView(const View<Element, Rank> &view) noexcept
      : View<Element, Rank>(view) {}
  OptionalView(std::nullptr_t) noexcept
      : OptionalView(nothing(), std::make_index_sequence<Rank>()) {}

private:
  static const void *nothing() noexcept { return nullptr; }
  template <size_t... I>
  OptionalView(const void *data, std::index_sequence<I...>) noexcept
      : View<Element, Rank>(data, Extents<Rank>((I * 0)...),
                            Extents<Rank>((I * 0)...), false) {}
};

} // namespace mlafix

#endif // MLAFIX_RUNTIME_VIEWS_HPP
