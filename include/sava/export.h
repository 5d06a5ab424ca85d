// SAVA_EXPORT marks what the shared library offers. Everything else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define SAVA_EXPORT __attribute__((visibility("default")))
#else
#define SAVA_EXPORT
#endif
