// SPDX-License-Identifier: MIT
// Read once for all files of the tools, as library.hpp for those of libxio.
#pragma once
#if __has_include(<nlohmann/json.hpp>)
#include <nlohmann/json.hpp>
#endif

#include "precompiled/library.hpp"
