// SPDX-License-Identifier: MIT
// Reports on live processes of this user.
#pragma once
#include "ctx/job_picture.hpp"
#include "tools/xio-info/settings.hpp"

namespace xio::info {

// --job: as JSON, as a graph for Graphviz, or else as text. Throws.
std::string job_report(const settings& s);

// The pictures of all hosts as one, by job. remarks: on hosts that cannot be reached.
std::map<std::uint64_t, seen_job> jobs_of_hosts(const settings& s, std::vector<std::string>& remarks);
// From the JSON of job_report; throws std::exception for another text.
std::map<std::uint64_t, seen_job> jobs_in(const std::string& text, std::vector<std::string>& remarks);

// --metrics: OpenMetrics text of all PEs; PEs without a reply are named on standard error. Throws.
std::string metrics_report(const std::string& which);

}  // namespace xio::info
