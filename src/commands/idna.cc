#include "commands/idna.h"

#include <idn2.h>

#include <cstdint>

#include "commands/iri.h"

namespace sava::commands {

bool IdnaToAscii(std::string_view host, std::string* ascii) {
  if (host.find('\0') != std::string_view::npos) return false;
  const std::string text(host);
  uint8_t* found = nullptr;
  const int failed = idn2_lookup_u8(reinterpret_cast<const uint8_t*>(text.c_str()), &found,
                                    IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
  if (failed != IDN2_OK) return false;
  ascii->assign(reinterpret_cast<const char*>(found));
  idn2_free(found);
  return true;
}

void InstallIdna() { InstallHostToAscii(IdnaToAscii); }

}  // namespace sava::commands
