# SPDX-License-Identifier: MIT
# Makes what `lspci -D -xxxx` would write for a machine that is described in lines of
#   BDF id=VVVV:DDDD class=CCCC [header=HH] [bus=PP,SS,UU] [subsystem=VVVV] [bytes=N]
#       [type=T [version=V] [cap2=X] [ctl2=X] [acs=X] [aer=X] [vfs=COUNT,OFFSET,STRIDE]]
# all numbers hexadecimal but for N. Offsets: PCI Express Base Specification 5.0, 7.5.1, 7.5.3, 7.7.8, 7.8.4 and 9.3.3.

function hex(text,   i, value) {
  value = 0
  for (i = 1; i <= length(text); i++) value = value * 16 + index("0123456789abcdef", tolower(substr(text, i, 1))) - 1
  return value
}

# Little-endian.
function put(at, bytes, value,   i) {
  for (i = 0; i < bytes; i++) {
    data[at + i] = value % 256
    value = int(value / 256)
  }
}

function get(key,   i) {
  for (i = 2; i <= NF; i++) if (index($i, key "=") == 1) return substr($i, length(key) + 2)
  return ""
}

function express(   v, part, after) {
  put(6, 2, 16)   # status: capabilities
  put(52, 1, 64)        # the first at 0x40
  put(64, 2, 16)        # PCI Express, and no other
  v = get("version") == "" ? 2 : hex(get("version"))
  put(66, 2, v + 16 * hex(get("type")))
  put(100, 4, hex(get("cap2")))
  put(104, 2, hex(get("ctl2")))
  # ACS at 0x100, SR-IOV at 0x140, Advanced Error Reporting at 0x180.
  if (get("acs") get("vfs") get("aer") == "") return
  after = get("vfs") != "" ? 320 * 1048576 : 0
  put(256, 4, 13 + 65536 + (get("aer") != "" ? 384 * 1048576 : after))
  put(262, 2, hex(get("acs")))
  if (get("aer") != "") {
    put(384, 4, 1 + 65536 + after)
    put(388, 4, hex(get("aer")))
  }
  if (get("vfs") == "") return
  split(get("vfs"), part, ",")
  put(320, 4, 16 + 65536)
  put(328, 2, 1)  # virtual functions enabled
  put(336, 2, hex(part[1]))
  put(340, 2, hex(part[2]))
  put(342, 2, hex(part[3]))
}

/^[0-9a-f]/ {
  bytes = get("bytes") == "" ? 4096 : get("bytes") + 0
  for (i = 0; i < 4096; i++) data[i] = 0
  split(get("id"), id, ":")
  put(0, 2, hex(id[1]))
  put(2, 2, hex(id[2]))
  put(10, 2, hex(get("class")))
  put(14, 1, hex(get("header")))
  if (get("bus") != "") {
    split(get("bus"), bus, ",")
    for (i = 1; i <= 3; i++) put(23 + i, 1, hex(bus[i]))
  }
  if (get("subsystem") != "") put(44, 2, hex(get("subsystem")))
  if (get("type") != "") express()
  print $1 " described: " get("class")
  for (i = 0; i < bytes; i += 16) {
    printf "%02x:", i
    for (j = 0; j < 16; j++) printf " %02x", data[i + j]
    print ""
  }
  print ""
}
