// SPDX-License-Identifier: MIT
// The report: all stages one after the other, and what they come to, as JSON for programs and as text for people.
#pragma once
#include "tools/xio-verify/rows.hpp"
#include "tools/xio-verify/settings.hpp"

namespace xio::verify {

constexpr const char* k_report_format = "xio-verify report";
constexpr int k_report_version = 1;

// Runs the stages that were asked for. Its progress goes to standard error. The result names no host, user or address.
json make_report(const settings& s);

// Of a report that make_report or read_report returned.
std::string text_of_report(const json& report);

}  // namespace xio::verify
