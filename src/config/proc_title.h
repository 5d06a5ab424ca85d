// What ps shows of the server: set-proc-title and proc-title-template, as in Redis.
//
// The kernel shows the memory where the command line was, so a title is written over it, and over
// the environment behind it, which moves elsewhere first.
//
// Thread safety: TakeCommandLine before there are threads; ShowProcTitle by one thread at a time.
#pragma once

#include <string>
#include <string_view>

#include "config/settings.h"

namespace sava::config {

// From here on `argv` belongs to the title: its texts must have been copied.
void TakeCommandLine(int argc, char** argv);

// Shows a title, cut to the room there is. Without TakeCommandLine: does nothing.
void ShowProcTitle(std::string_view title);

// The template of the settings with its variables filled in. `title` is the program's name as it
// was called, `config_file` may be empty.
std::string ProcTitle(const Settings& settings, std::string_view title,
                      std::string_view config_file);

}  // namespace sava::config
