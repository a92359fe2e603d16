//===- ProcessTest.cpp - Runs programs and gives them input ---------------===//
//
// Part of mlafix, under the Apache License v2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

#include "lib/Target/Process.h"

#include "gtest/gtest.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

using namespace mlafix::target;

static std::unique_ptr<Process>
start(std::vector<llvm::StringRef> arguments,
      std::vector<std::string> environment = {}) {
  auto process = Process::start("/bin/sh", arguments, environment);
  if (process)
    return std::move(*process);
  ADD_FAILURE() << llvm::toString(process.takeError());
  return nullptr;
}

static Process::Result finish(Process &process, llvm::StringRef input) {
  auto result = process.finish(input);
  if (result)
    return std::move(*result);
  ADD_FAILURE() << llvm::toString(result.takeError());
  return {};
}

TEST(Process, gives_input_and_takes_both_outputs_and_the_status) {
  // The input is larger than a pipe's buffer.
  std::string input(1 << 20, 'x');
  auto process = start({"-c", "cat; echo said >&2; exit 3"});
  ASSERT_TRUE(process);
  Process::Result result = finish(*process, input);
  EXPECT_EQ(result.output, input);
  EXPECT_EQ(result.log, "said\n");
  EXPECT_EQ(result.status, 3);
}

TEST(Process, opens_its_streams_by_name) {
  auto process = start({"-c", "cat /dev/stdin > /dev/stdout"});
  ASSERT_TRUE(process);
  EXPECT_EQ(finish(*process, "text").output, "text");
}

TEST(Process, that_does_not_read_is_no_signal) {
  auto process = start({"-c", "exec 0</dev/null; echo done"});
  ASSERT_TRUE(process);
  EXPECT_EQ(finish(*process, std::string(1 << 20, 'x')).output, "done\n");
  sigset_t pending;
  sigpending(&pending);
  EXPECT_FALSE(sigismember(&pending, SIGPIPE));
}

TEST(Process, adds_and_replaces_variables) {
  setenv("MLAFIX_TEST_KEPT", "kept", 1);
  setenv("MLAFIX_TEST_CHANGED", "old", 1);
  auto process =
      start({"-c", "echo $MLAFIX_TEST_KEPT $MLAFIX_TEST_CHANGED $NEW_ONE"},
            {"MLAFIX_TEST_CHANGED=new", "NEW_ONE=1"});
  unsetenv("MLAFIX_TEST_KEPT");
  unsetenv("MLAFIX_TEST_CHANGED");
  ASSERT_TRUE(process);
  EXPECT_EQ(finish(*process, "").output, "kept new 1\n");
}

TEST(Process, that_is_given_up_ends) {
  int ends[2];
  // The program inherits the write end of the pipe and keeps it open while it
  // runs.
  ASSERT_EQ(pipe(ends), 0);
  auto process = start({"-c", "exec sleep 1000"});
  ASSERT_TRUE(process);
  close(ends[1]);
  process.reset();
  char byte;
  EXPECT_EQ(read(ends[0], &byte, 1), 0);
  close(ends[0]);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a zombie is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(Process, ends_though_a_forked_process_lives_on) {
  auto process = start({"-c", "cat"});
  ASSERT_TRUE(process);
  pid_t forked = fork();
  if (forked == 0)
    for (;;)
      pause();
  ASSERT_GT(forked, 0);
  EXPECT_EQ(finish(*process, "text").output, "text");
  kill(forked, SIGKILL);
  waitpid(forked, nullptr, 0);
}

TEST(Process, that_is_not_there_is_an_error) {
  auto process = Process::start("/no/such/program", {});
  ASSERT_FALSE(bool(process));
  std::string message = llvm::toString(process.takeError());
  EXPECT_EQ(message.find("cannot run '/no/such/program': "), 0u) << message;
}

TEST(Process, that_crashes_is_an_error) {
  auto process = start({"-c", "kill -9 $$"});
  ASSERT_TRUE(process);
  auto result = process->finish("");
  ASSERT_FALSE(bool(result));
  EXPECT_NE(llvm::toString(result.takeError()).find("cannot run '/bin/sh': "),
            std::string::npos);
}

namespace {
/// Makes the system reap all children automatically as long as the object
/// lives.
struct ReapingHost {
  void (*previous)(int) = std::signal(SIGCHLD, SIG_IGN);
  ~ReapingHost() { std::signal(SIGCHLD, previous); }
};
} // namespace

TEST(Process, has_no_status_in_a_host_that_reaps_every_child) {
  ReapingHost host;
  auto process = start({"-c", "cat; echo said >&2; exit 3"});
  ASSERT_TRUE(process);
  Process::Result result = finish(*process, "text");
  EXPECT_EQ(result.output, "text");
  EXPECT_EQ(result.log, "said\n");
  EXPECT_FALSE(result.status.has_value());
}
