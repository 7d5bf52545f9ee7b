// SPDX-License-Identifier: MIT
// Read once for all files of libxio (XIO_PRECOMPILED in m4/). A file still includes what it uses: where a compiler
// cache is, nothing is read before it.
#pragma once
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>
