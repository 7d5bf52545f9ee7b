# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# need COMMAND=PACKAGE... (or /PATH=PACKAGE): the programs and files that a virtual machine test uses, installed when this is root on Debian. Ends with
# status 125 and one sentence when one stays missing. Source it.
PATH=$PATH:/usr/sbin:/sbin

absent() {
  local pair
  for pair in "$@"; do
    case $pair in
      /*) [ -e "${pair%%=*}" ] ;;
      *) command -v "${pair%%=*}" >/dev/null ;;
    esac || echo "${pair#*=}"
  done | sort -u
}

need() {
  local packages
  mapfile -t packages < <(absent "$@")
  if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "vm: installing ${packages[*]}" >&2
    { apt-get update -qq &&
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}"; } >/dev/null || true
    mapfile -t packages < <(absent "$@")
  fi
  if [ ${#packages[@]} -gt 0 ]; then
    echo "vm: missing; ask for: apt-get install --no-install-recommends ${packages[*]}" >&2
    exit 125
  fi
}
