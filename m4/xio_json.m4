# SPDX-License-Identifier: MIT
AC_DEFUN([XIO_CHECK_JSON], [XIO_PACKAGE([JSON], [nlohmann-json], [nlohmann_json], [nlohmann/json.hpp], [nlohmann::json j;], [],
  [reports in JSON])])
