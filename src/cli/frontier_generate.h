// Files of URL scheduler commands, made up: the parameters of the document's chapter 5.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace sava::cli {

struct GenerateOptions {
  uint64_t hosts = 10;
  double urls_mean = 10;  // per host
  double urls_variance = 5;
  uint64_t urls = 0;  // in all, exactly; 0: as it comes
  double depth_mean = 5;
  double depth_variance = 5;
  uint64_t seed = 1;
  std::string path = "-";  // standard output
};

inline constexpr uint64_t kMaxGeneratedHosts = 100'000'000;
inline constexpr double kMaxGeneratedUrls = 1e10;
inline constexpr double kMaxGeneratedDepth = 1000;

// Writes ADD_URLS with every host's URLs, LISTA_HOSTS, ESCALONA_TUDO and LIMPA_TUDO. How many URLs
// a host has and how deep each one is are normally distributed and rounded, at least 1; with `urls`
// hosts then get more or lose some, evenly, until there are that many. The URLs of the hosts come
// in turns, in runs of one to three; no two are equal. The same options write the same bytes.
//
// REQUIRES: urls is 0 or at least hosts.
base::Status GenerateScript(const GenerateOptions& options);

}  // namespace sava::cli
