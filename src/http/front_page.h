// FrontPage: what `GET /` answers: what this server is and what may be asked of it, as a page for a
// browser and as JSON for a program.
#pragma once

#include <string_view>

#include "http/call.h"

namespace sava::http {

// Whether an Accept field asks for HTML rather than JSON. Only a client that names text/html gets
// it.
bool PrefersHtml(std::string_view accept);

void WriteFrontPage(Call& call);

}  // namespace sava::http
