// SPDX-License-Identifier: MIT
// Read once for all files of tests/unit and tests/model, as library.hpp for those of libxio.
#pragma once
#include <gtest/gtest.h>

#include "precompiled/library.hpp"
