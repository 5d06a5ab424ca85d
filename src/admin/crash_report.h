// What the log says when the process crashes: the signal, the registers, the stack, the command
// that the thread was running, and INFO. Then the signal does what it always did: it ends the
// process, with a core where the system writes them.
//
// The handler runs on a stack of its own (base/alternate_stack.h). It takes no lock and allocates
// nothing, since the thread may have been interrupted anywhere: INFO is the text that was kept
// last, at most a second before. An alarm ends the process if the report cannot be written. Not in
// sanitizer builds, which report by themselves.
//
// Thread safety: all three by one thread at a time.
#pragma once

#include <string>
#include <string_view>

namespace sava::admin {

#ifdef SAVA_SANITIZED
inline constexpr bool kCrashReports = false;
#else
inline constexpr bool kCrashReports = true;
#endif

// From now on SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGABRT are reported in this file; empty: on
// standard output.
void InstallCrashReport(const std::string& log_path);
// They do what they do by default.
void RemoveCrashReport();
// The INFO of a report to come; what is too long is cut off.
void KeepInfoForCrash(std::string_view text);

}  // namespace sava::admin
