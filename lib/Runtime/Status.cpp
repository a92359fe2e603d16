//===- Status.cpp - Errors and log of the runtime -------------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include "Environment.h"
#include "Fork.h"

#include <algorithm>
#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <mutex>

using namespace mlafix::runtime;

namespace {

constexpr size_t messageCapacity = 2048;

struct ThreadErrors {
  char message[messageCapacity];
  char *callerBuffer;
  size_t callerCapacity;
};
// ThreadErrors is plain data without a constructor, so it costs nothing when a
// thread starts.
thread_local ThreadErrors errors;

struct LogSink {
  // Protects `callback` and `user`. It is locked while the callback runs, so
  // only one call of the callback runs at a time.
  std::mutex mutex;
  mlafix_log_callback callback = nullptr;
  void *user = nullptr;
  std::atomic<bool> wanted{false};
};
// Constant-initialised and never destroyed, since threads may log during exit.
LogSink sink;

void copyToCaller() {
  if (!errors.callerBuffer || errors.callerCapacity == 0)
    return;
  size_t length =
      std::min(std::strlen(errors.message), errors.callerCapacity - 1);
  length = wholeLength(errors.message, length);
  std::memcpy(errors.callerBuffer, errors.message, length);
  errors.callerBuffer[length] = '\0';
}

/// Returns the length in bytes of the UTF-8 character at the start of `text`,
/// which ends with a NUL. Returns 0 if the character is invalid.
size_t characterLength(const char *text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = byte(0);
  if (first < 0x80)
    return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4)
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xc0) != 0x80)
      return 0;
  // Reject overlong forms, surrogates and code points above U+10FFFF.
  bool isOther =
      (first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f);
  return isOther ? 0 : length;
}

/// Replaces invalid UTF-8, which names and paths from a caller may contain, by
/// text such as "\xff". Returns the new length.
size_t escapeBytes(char (&text)[messageCapacity], size_t length) {
  size_t valid = 0;
  while (valid < length && characterLength(text + valid))
    valid += characterLength(text + valid);
  if (valid >= length)
    return length;
  char old[messageCapacity];
  std::memcpy(old, text, messageCapacity);
  size_t out = valid;
  for (size_t in = valid; in < length;) {
    size_t whole = characterLength(old + in);
    char escaped[sizeof("\\xff")];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x",
                  static_cast<unsigned char>(old[in]));
    size_t size = whole ? whole : sizeof(escaped) - 1;
    if (out + size >= messageCapacity)
      break;
    std::memcpy(text + out, whole ? old + in : escaped, size);
    out += size;
    in += whole ? whole : 1;
  }
  text[out] = '\0';
  return out;
}

/// Formats a message as vsnprintf() does, but truncates it at the boundary of a
/// UTF-8 character and escapes invalid UTF-8. Returns the length written.
size_t formatMessage(char (&out)[messageCapacity], const char *format,
                     va_list arguments) {
  int wanted = std::vsnprintf(out, messageCapacity, format, arguments);
  if (wanted < 0)
    return out[0] = '\0';
  auto length = static_cast<size_t>(wanted);
  if (length >= messageCapacity) {
    length = wholeLength(out, messageCapacity - 1);
    out[length] = '\0';
  }
  return escapeBytes(out, length);
}

} // namespace

size_t mlafix::runtime::wholeLength(const char *text, size_t length) {
  // Count the continuation bytes (10xxxxxx) at the end of the text. The byte
  // before them tells how many continuation bytes its character needs.
  size_t tail = 0;
  auto byteAt = [&](size_t fromEnd) {
    return static_cast<unsigned char>(text[length - 1 - fromEnd]);
  };
  while (tail < 3 && tail < length && (byteAt(tail) & 0xc0) == 0x80)
    ++tail;
  if (tail == length)
    return length;
  unsigned char first = byteAt(tail);
  size_t follow = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : 0;
  return tail < follow ? length - tail - 1 : length;
}

mlafix_status mlafix::runtime::fail(mlafix_status status, const char *format,
                                    ...) {
  va_list arguments;
  va_start(arguments, format);
  formatMessage(errors.message, format, arguments);
  va_end(arguments);
  copyToCaller();
  return status;
}

mlafix_status mlafix::runtime::prefixError(mlafix_status status,
                                           const char *format, ...) {
  char old[messageCapacity];
  std::memcpy(old, errors.message, messageCapacity);
  va_list arguments;
  va_start(arguments, format);
  size_t length = formatMessage(errors.message, format, arguments);
  va_end(arguments);
  size_t rest = std::strlen(old), room = messageCapacity - length - 1;
  if (rest > room)
    rest = wholeLength(old, room);
  std::memcpy(errors.message + length, old, rest);
  errors.message[length + rest] = '\0';
  copyToCaller();
  return status;
}

mlafix_status mlafix::runtime::require(const void *argument, const char *name,
                                       const char *what) {
  return argument ? MLAFIX_OK
                  : fail(MLAFIX_INVALID_ARGUMENT,
                         "argument \"%s\": expected %s, got null", name, what);
}

bool mlafix::runtime::isLogged(mlafix_log_level level) {
  return level >= environment().logLevel ||
         sink.wanted.load(std::memory_order_relaxed);
}

void mlafix::runtime::log(mlafix_log_level level, const char *format, ...) {
  if (!isLogged(level))
    return;
  bool toStderr = level >= environment().logLevel;
  char message[messageCapacity];
  va_list arguments;
  va_start(arguments, format);
  formatMessage(message, format, arguments);
  va_end(arguments);
  ForkSafeLock lock(sink.mutex);
  if (sink.callback)
    sink.callback(sink.user, level, message);
  else if (toStderr)
    std::fprintf(stderr, "mlafix: %s\n", message);
}

//===----------------------------------------------------------------------===//
// C interface
//===----------------------------------------------------------------------===//

extern "C" uint32_t mlafix_abi_version(void) noexcept {
  return MLAFIX_ABI_VERSION;
}

extern "C" const char *mlafix_version(void) noexcept {
  return MLAFIX_RUNTIME_VERSION;
}

extern "C" const char *mlafix_status_name(mlafix_status status) noexcept {
  switch (status) {
  case MLAFIX_OK:
    return "OK";
  case MLAFIX_INVALID_ARGUMENT:
    return "INVALID_ARGUMENT";
  case MLAFIX_NOT_FOUND:
    return "NOT_FOUND";
  case MLAFIX_IO_ERROR:
    return "IO_ERROR";
  case MLAFIX_BAD_UNIT:
    return "BAD_UNIT";
  case MLAFIX_VERSION_MISMATCH:
    return "VERSION_MISMATCH";
  case MLAFIX_REFUSED:
    return "REFUSED";
  case MLAFIX_NO_DRIVER:
    return "NO_DRIVER";
  case MLAFIX_DRIVER_ERROR:
    return "DRIVER_ERROR";
  case MLAFIX_NO_IMAGE:
    return "NO_IMAGE";
  case MLAFIX_OUT_OF_MEMORY:
    return "OUT_OF_MEMORY";
  case MLAFIX_INTERNAL_ERROR:
    return "INTERNAL_ERROR";
  case MLAFIX_RANK_ERROR:
    return "RANK_ERROR";
  }
  return "?";
}

extern "C" const char *mlafix_last_error(void) noexcept {
  return errors.message;
}

extern "C" void mlafix_set_error_buffer(char *buffer,
                                        size_t capacity) noexcept {
  errors.callerBuffer = buffer;
  errors.callerCapacity = capacity;
}

extern "C" void mlafix_set_log_callback(mlafix_log_callback callback,
                                        void *user) noexcept {
  ForkSafeLock lock(sink.mutex);
  sink.callback = callback;
  sink.user = user;
  sink.wanted.store(callback != nullptr, std::memory_order_relaxed);
}
