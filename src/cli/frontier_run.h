// The document's program: runs a file of commands on a Frontier.
#pragma once

#include <string>

#include "base/result.h"
#include "types/frontier/frontier.h"
#include "types/frontier/url.h"

namespace sava::cli {

struct FrontierRunOptions {
  std::string path = "-";  // standard input
  std::string output;      // empty: NAME-out.txt beside the file
  types::Frontier::Strategy strategy = types::Frontier::Strategy::kDepth;
  types::UrlNorm norm = types::UrlNorm::kUfmg;
  bool log = false;  // every access to NAME-access.log
};

// Writes the output; that of standard input goes to saida-out.txt, as in the document. What cannot
// be understood, and URLs that are refused, are told on standard error as FILE:LINE: reason; the
// run goes on.
base::Status RunFrontierScript(const FrontierRunOptions& options);

}  // namespace sava::cli
