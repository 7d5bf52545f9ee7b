# SPDX-License-Identifier: MIT
# For tests/amdgpu/sites: frames of llvm-symbolizer, innermost first and an empty line behind each site, and the list of
# sites in that order; prints mnemonic, source line and site.
FILENAME != last { last = FILENAME; ++file; n = 1 }
file == 1 {
  if ($0 == "") { ++n; next }
  sub(/:[0-9]+$/, "")
  sub(/^.*\/\.\.\//, "")
  if (first[n] == "") first[n] = $0
  # The platform's headers spell orders, and the compiler's are nobody's.
  if (line[n] == "" && $0 ~ /^(include\/xio|tests)\// && $0 !~ /device\/platform|amdgcn|host_memory/) line[n] = $0
  next
}
{
  split($2, words, " ")
  where = line[n] != "" ? line[n] : first[n]
  print words[1] "\t" where "\t" $1
  ++n
}
