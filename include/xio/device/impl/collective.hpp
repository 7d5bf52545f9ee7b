// SPDX-License-Identifier: MIT
// How collectives are done; the calls are in device/collective.hpp.
#pragma once
#include "xio/device/impl/team_move.hpp"
#include "xio/device/impl/team_reduce.hpp"
#include "xio/device/impl/team_varied.hpp"
