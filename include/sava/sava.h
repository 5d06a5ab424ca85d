// All of the library.
#pragma once

#include <sava/association_counter.h>
#include <sava/bloom.h>
#include <sava/bloom_filter.h>
#include <sava/count_min.h>
#include <sava/cuckoo.h>
#include <sava/dictionary_encoding.h>
#include <sava/hyperloglog.h>
#include <sava/sim_hash.h>
#include <sava/token_bucket.h>
#include <sava/top_k.h>
#include <sava/url_frontier.h>
#include <sava/varint.h>
#include <sava/version.h>
