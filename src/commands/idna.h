// Hosts beyond ASCII by libidn2, for the URL commands (commands/iri.h).
#pragma once

#include <string>
#include <string_view>

namespace sava::commands {

// `münchen.de` is `xn--mnchen-3ya.de`: UTS 46 without its transitional mappings. False when the
// host is not UTF-8, or no host. Thread-safe.
bool IdnaToAscii(std::string_view host, std::string* ascii);

// Lets the URL commands use it. May be called more than once.
void InstallIdna();

}  // namespace sava::commands
