# SPDX-License-Identifier: MIT
# docs/nvshmem.svg out of what bench/vs_nvshmem printed: how many times NVSHMEM's time is XIO's, of puts and gets, by size.
#   bench/vs_nvshmem of bench/results/2026-11-30-2xh200 | awk -f bench/nvshmem_chart.awk >docs/nvshmem.svg
BEGIN {
  FS = " *[|] *"
  width = 354; height = 210; top = 64; gap = 428; left = 48
  low = 0.7; high = 16; first = 8; last = 65536
  split("thread wave block", scopes, " ")
  split("by a thread,by a warp,by a block of 256", names, ",")
  # Where a line's name ends, beside the line: size and ratio.
  split("512 4096 65536 128 4096 16384", at_size, " ")
  split("2.6 1.6 0.82 6.2 9.2 1.25", at_ratio, " ")
}
$2 == "put_lat" || $2 == "get_lat" { ratio[$2, $3, $4] = $7; if ($3 == "thread" && $2 == "put_lat") sizes[++n] = $4 }
function x_of(size) { return width * log(size / first) / log(last / first) }
function y_of(r) { return height * log(high / r) / log(high / low) }
function short(size) { return size < 1024 ? size " B" : size / 1024 " KiB" }
function panel(test, title, x, base,   i, s, y, path, value) {
  printf "<g transform=\"translate(%d %d)\">\n<text class=\"t h\" y=\"-14\">%s</text>\n", x, top, title
  for (value = 1; value <= 16; value *= 2) {
    y = y_of(value)
    printf "<path class=\"%s\" d=\"M0 %.1fH%d\"/><text class=\"s\" x=\"-8\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n", value == 1 ? "one" : "g", y, width, y + 4, value
  }
  for (i = 1; i <= n; ++i)
    if (i % 3 == 1 && i < n - 1 || i == n) printf "<text class=\"s\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x_of(sizes[i]), height + 20, short(sizes[i])
  for (s = 1; s <= 3; ++s) {
    path = ""
    for (i = 1; i <= n; ++i) path = path sprintf("%s%.1f %.1f", i == 1 ? "M" : "L", x_of(sizes[i]), y_of(ratio[test, scopes[s], sizes[i]]))
    printf "<path class=\"c%d\" d=\"%s\"/>\n", s, path
    printf "<text class=\"n%d\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n", s, x_of(at_size[base + s]) - 4, y_of(at_ratio[base + s]), names[s]
  }
  print "</g>"
}
END {
  print "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 880 316\" font-family=\"system-ui, -apple-system, Segoe UI, DejaVu Sans, sans-serif\" font-size=\"13\">"
  print "<title>How many times as long as XIO's NVSHMEM's puts and gets take, by size and by scope</title>"
  print "<style>"
  print ".page{fill:#fff;stroke:#d0d7de}.t{fill:#1f2328;font-size:15px}.s{fill:#59636e;font-size:12px}.h{font-weight:600}.g{stroke:#d0d7de}.one{stroke:#59636e;stroke-width:1.5}"
  print ".c1,.c2,.c3{fill:none;stroke-width:2.5}.c1{stroke:#0969da}.c2{stroke:#1a7f37}.c3{stroke:#bc4c00}.n1{fill:#0969da}.n2{fill:#1a7f37}.n3{fill:#bc4c00}"
  print "@media (prefers-color-scheme:dark){"
  print ".page{fill:#0d1117;stroke:#3d444d}.t{fill:#f0f6fc}.s{fill:#9aa4af}.g{stroke:#3d444d}.one{stroke:#9aa4af}"
  print ".c1{stroke:#4493f8}.c2{stroke:#3fb950}.c3{stroke:#f0883e}.n1{fill:#4493f8}.n2{fill:#3fb950}.n3{fill:#f0883e}}"
  print "</style>"
  print "<rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"879\" height=\"315\" rx=\"8\"/>"
  print "<text class=\"s\" x=\"16\" y=\"24\">NVSHMEM 3's time / XIO's on two H200s of one machine: above 1 XIO is faster</text>"
  panel("put_lat", "put, and quiet", left, 0)
  panel("get_lat", "get (NVSHMEM: and quiet)", left + gap, 3)
  print "</svg>"
}
