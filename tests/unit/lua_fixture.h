// What tests of the interpreter share: a host that answers from a script of its own, and short ways
// to run Lua and read what comes back.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lua/interpreter.h"

namespace sava::lua {

class FakeHost : public Host {
 public:
  CallResult Call(std::span<const std::string_view> args, int resp, std::string* reply) override {
    calls.emplace_back(args.begin(), args.end());
    resps.push_back(resp);
    if (unwind_at != 0 && static_cast<int>(calls.size()) == unwind_at) return CallResult::kUnwind;
    if (answer) {
      *reply = answer(args);
    } else if (args[0] == "raw" && args.size() > 1) {
      *reply = args[1];
    } else if (args[0] == "echo") {
      *reply = "$" + std::to_string(args[1].size()) + "\r\n" + std::string(args[1]) + "\r\n";
    } else {
      *reply = "+OK\r\n";
    }
    return CallResult::kReplied;
  }
  void Log(int level, std::string_view text) override {
    logged.push_back(std::to_string(level) + ":" + std::string(text));
  }
  void SetReplication(int flags) override { replication.push_back(flags); }
  Access CheckAccess(std::span<const std::string_view> args) override {
    return args[0] == "get"   ? Access::kAllowed
           : args[0] == "set" ? Access::kDenied
                              : Access::kUnknown;
  }
  bool Interrupted() override {
    ++asked;
    return interrupt_after != 0 && asked >= interrupt_after;
  }

  std::function<std::string(std::span<const std::string_view>)> answer;
  std::vector<std::vector<std::string>> calls;
  std::vector<int> resps;
  std::vector<std::string> logged;
  std::vector<int> replication;
  int unwind_at = 0;
  int asked = 0;
  int interrupt_after = 0;
};

class LuaTest : public ::testing::Test {
 protected:
  // Runs a script as EVAL does; the RESP reply, or "FAILED " and the error, or what stopped it.
  std::string Eval(std::string_view body, std::vector<std::string_view> keys = {},
                   std::vector<std::string_view> args = {}, int client_resp = 2) {
    return EvalIn(&interpreter_, body, keys, args, client_resp);
  }
  std::string EvalIn(Interpreter* interpreter, std::string_view body,
                     std::vector<std::string_view> keys = {},
                     std::vector<std::string_view> args = {}, int client_resp = 2) {
    std::string error;
    const int handle = interpreter->Compile(body, &error);
    if (handle == 0) return "COMPILE " + error;
    const std::string answer = Run(
        interpreter,
        {.handle = handle, .name = "SHA", .keys = keys, .args = args, .client_resp = client_resp});
    interpreter->Release(handle);
    return answer;
  }
  std::string Run(Interpreter* interpreter, const Call& call) {
    std::string reply;
    switch (interpreter->Run(call, &host_, &reply)) {
      case RunResult::kReplied:
        return reply;
      case RunResult::kFailed:
        return "FAILED " + reply;
      case RunResult::kUnwound:
        return "UNWOUND";
      case RunResult::kKilled:
        return "KILLED";
    }
    return "?";
  }
  // The text that a script gives as its result, or its error.
  std::string Text(std::string_view body) {
    const std::string reply = Eval(body);
    if (!reply.starts_with('$')) return reply;
    const size_t at = reply.find("\r\n") + 2;
    return reply.substr(at, reply.size() - at - 2);
  }

  FakeHost host_;
  Interpreter interpreter_{Limits{}};
};

// A script's failure on its first line.
inline std::string Failure(std::string_view error) {
  return "FAILED " + std::string(error) + " script: SHA, on @user_script:1.";
}

}  // namespace sava::lua
