//===- Process.cpp - a program that waits for its input -------------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Process.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace mlafix::target;

extern char **environ;

static Error systemError(const Twine &what) {
  int number = errno;
  return createStringError(std::error_code(number, std::generic_category()),
                           what + ": " + sys::StrError(number));
}

/// Returns a path through which a child process can open this process's file
/// descriptor.
static std::string descriptorPath(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

namespace {

/// The open write ends of all pipes to child processes. A child reads until
/// every copy of its pipe's write end is closed. If another thread forks, the
/// new process inherits copies and closes them right after the fork. Otherwise
/// the child would wait until the new process ends.
class WriteEnds {
public:
  static WriteEnds &get() {
    // Never destroyed, since threads may outlive main().
    static WriteEnds &made = *new WriteEnds;
    return made;
  }

  /// Creates a pipe and registers its write end.
  bool make(int ends[2]) {
    std::lock_guard<std::mutex> lock(mutex);
    if (pipe2(ends, O_CLOEXEC) != 0)
      return false;
    open.insert(ends[1]);
    return true;
  }

  void close(int end) {
    std::lock_guard<std::mutex> lock(mutex);
    open.erase(end);
    ::close(end);
  }

private:
  WriteEnds() {
    pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                   [] {
                     for (int end : get().open)
                       ::close(end);
                     get().open.clear();
                     get().mutex.unlock();
                   });
  }

  std::mutex mutex;
  DenseSet<int> open;
};

/// While in scope, writing to a pipe that has no reader returns an error.
/// SIGPIPE is not raised, whatever handler the host has installed.
class NoPipeSignal {
public:
  NoPipeSignal() {
    sigemptyset(&pipeSignal);
    sigaddset(&pipeSignal, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    wasPending = sigismember(&pending, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipeSignal, &previous);
  }
  ~NoPipeSignal() {
    timespec now = {0, 0};
    while (!wasPending && sigtimedwait(&pipeSignal, nullptr, &now) == -1 &&
           errno == EINTR)
      ;
    pthread_sigmask(SIG_SETMASK, &previous, nullptr);
  }

private:
  sigset_t pipeSignal, previous;
  bool wasPending;
};

} // namespace

class Process::Pipe {
public:
  ~Pipe() {
    closeRead();
    closeWrite();
  }

  Error open() {
    int ends[2];
    if (!WriteEnds::get().make(ends))
      return systemError("cannot make a pipe");
    readEnd = ends[0], writeEnd = ends[1];
    return Error::success();
  }

  std::string path() const { return descriptorPath(readEnd); }

  void closeRead() {
    if (readEnd >= 0)
      ::close(readEnd);
    readEnd = -1;
  }

  void closeWrite() {
    if (writeEnd >= 0)
      WriteEnds::get().close(writeEnd);
    writeEnd = -1;
  }

  /// Writes `text` until all of it is written or the program stops reading.
  void write(StringRef text) {
    NoPipeSignal quiet;
    while (!text.empty()) {
      ssize_t count = ::write(writeEnd, text.data(), text.size());
      if (count < 0 && errno == EINTR)
        continue;
      if (count < 0)
        return; // the program's own message tells why
      text = text.drop_front(count);
    }
  }

private:
  int readEnd = -1, writeEnd = -1;
};

/// An anonymous in-memory file.
class Process::Memory {
public:
  ~Memory() {
    if (descriptor >= 0)
      ::close(descriptor);
  }

  Error open() {
    descriptor = memfd_create("mlafix", MFD_CLOEXEC);
    return descriptor < 0 ? systemError("cannot make a file in memory")
                          : Error::success();
  }

  std::string path() const { return descriptorPath(descriptor); }

  Expected<std::string> read() const {
    ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getOpenFile(
        descriptor, path(), /*FileSize=*/-1, /*RequiresNullTerminator=*/false,
        /*IsVolatile=*/true);
    if (!buffer)
      return createStringError(buffer.getError(),
                               "cannot read a file in memory: " +
                                   buffer.getError().message());
    return (*buffer)->getBuffer().str();
  }

private:
  int descriptor = -1;
};

Process::Process() = default;

Error Process::startIn(StringRef name, ArrayRef<StringRef> arguments,
                       ArrayRef<std::string> environment) {
  program = name.str();
  input = std::make_unique<Pipe>();
  output = std::make_unique<Memory>();
  log = std::make_unique<Memory>();
  if (Error error = input->open())
    return error;
  if (Error error = joinErrors(output->open(), log->open()))
    return error;

  SmallVector<StringRef> all = {program};
  append_range(all, arguments);
  SmallVector<StringRef> variables(environment.begin(), environment.end());
  // The host must not change its environment while this loop reads it, since C
  // has no lock for the environment.
  for (char **variable = environ; *variable; ++variable) {
    StringRef text = *variable;
    if (none_of(environment, [&](StringRef ours) {
          return ours.split('=').first == text.split('=').first;
        }))
      variables.push_back(text);
  }
  std::string paths[] = {input->path(), output->path(), log->path()};
  std::optional<StringRef> redirects[] = {
      StringRef(paths[0]), StringRef(paths[1]), StringRef(paths[2])};
  std::string message;
  bool failed = false;
  process = sys::ExecuteNoWait(program, all, ArrayRef(variables), redirects, 0,
                               &message, &failed);
  input->closeRead();
  if (failed || process.Pid == sys::ProcessInfo::InvalidPid)
    return createStringError("cannot run '" + program + "': " + message);
  running = true;
  return Error::success();
}

Expected<std::unique_ptr<Process>>
Process::start(StringRef program, ArrayRef<StringRef> arguments,
               ArrayRef<std::string> environment) {
  std::unique_ptr<Process> result(new Process);
  if (Error error = result->startIn(program, arguments, environment))
    return error;
  return result;
}

Expected<Process::Result> Process::finish(StringRef text) {
  input->write(text);
  input->closeWrite();
  int number = 0;
  End end = wait(number);
  if (end == End::Signal)
    return createStringError("cannot run '" + program +
                             "': it crashed: " + strsignal(number));
  Expected<std::string> written = output->read();
  if (!written)
    return written.takeError();
  Expected<std::string> said = log->read();
  if (!said)
    return said.takeError();
  Result result = {{}, std::move(*written), std::move(*said)};
  if (end == End::Exit)
    result.status = number;
  return result;
}

Process::End Process::wait(int &number) {
  running = false;
  int status = 0;
  pid_t ended;
  do
    ended = waitpid(process.Pid, &status, 0);
  while (ended < 0 && errno == EINTR);
  if (ended < 0)
    return End::Unknown; // ECHILD: the host has already waited for it
  number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
  return WIFSIGNALED(status) ? End::Signal : End::Exit;
}

Process::~Process() {
  if (!running)
    return;
  // Do not kill the process if waitpid() fails. The host has then already
  // waited for the child, and the process id may belong to another process.
  if (waitpid(process.Pid, nullptr, WNOHANG) != 0)
    return;
  kill(process.Pid, SIGKILL);
  int number;
  wait(number);
}
