// CollectionLimits: up to which size Redis keeps a collection in its compact forms. Our own forms
// differ; these numbers decide what OBJECT ENCODING answers, which RDB form is written, and how
// large the blocks of lists and streams in files are. Named after the settings.
#pragma once

#include <cstdint>

namespace sava::types {

struct CollectionLimits {
  int64_t hash_max_listpack_entries = 512;
  uint64_t hash_max_listpack_value = 64;
  int64_t list_max_listpack_size = -2;
  int64_t list_compress_depth = 0;
  int64_t set_max_intset_entries = 512;
  int64_t set_max_listpack_entries = 128;
  uint64_t set_max_listpack_value = 64;
  int64_t zset_max_listpack_entries = 128;
  uint64_t zset_max_listpack_value = 64;
  uint64_t hll_sparse_max_bytes = 3000;
  uint64_t stream_node_max_bytes = 4096;
  int64_t stream_node_max_entries = 100;
  // Blocks in which values repeat are dictionary-encoded (encoded_entries.h).
  bool dictionary_encoding = true;
};

inline constexpr CollectionLimits kDefaultCollectionLimits;

}  // namespace sava::types
