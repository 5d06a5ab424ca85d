// Announce: what a replica says of itself with REPLCONF.
#pragma once

#include <span>
#include <string_view>

#include "base/result.h"
#include "engine/output_feed.h"

namespace sava::replication {

// Pairs of a name and a value. Unknown capabilities are no error; the error is the reply
// to the replica, and the pairs before it have taken effect. REQUIRES: an even number of words.
base::Status Announce(std::span<const std::string_view> words, engine::Announcement* announced);

}  // namespace sava::replication
