// SPDX-License-Identifier: MIT
// Reads a report that a stranger sent, and makes rows of docs/verified.md of it. Nothing in it is believed before it
// was checked, and what goes into the rows is plain text.
#pragma once
#include "tools/xio-verify/rows.hpp"

namespace xio::verify {

// Throws XIO_ERR_ARG with what is wrong, and where.
json read_report(const std::string& file);

// The same of its text, for tests.
json check_report(const std::string& text);

// Lines of a Markdown table, of a report that was checked.
std::string rows_of_report(const json& report);

}  // namespace xio::verify
