#!/bin/bash
# SPDX-License-Identifier: MIT
# xio-info on machines that files describe: topology from lstopo's XML, preflight and drives from a tree of sysfs and
# proc; and the route table of a world.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
info=$builddir/xio-info
if [ ! -x "$info" ]; then skip 'this build has no xio-info: it wants nlohmann-json'; fi
unset "${!XIO_@}" HSA_FORCE_FINE_GRAIN_PCIE 2>/dev/null

# judge COMMAND...: a preflight, whose status is 3 where it says that something is missing.
judge() {
  out=$(timeout -k 5 120 "$@" 2>&1)
  local got=$? expected=0
  checks=$((checks + 1))
  if grep -qE '^ +[a-z_]+ +missing' <<<"$out"; then expected=3; fi
  [ "$got" = "$expected" ] || wrong "status $got and not $expected: $*"
}

# --- Topology ---
# One package: a switch with a GPU and a NIC, a drive on a root port of its own.
cat >"$work/machine.xml" <<'END'
<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" allowed_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" allowed_nodeset="0x00000001" gp_index="1">
  <object type="NUMANode" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="20" local_memory="1073741824"/>
  <object type="PU" os_index="0" cpuset="0x00000001" complete_cpuset="0x00000001" nodeset="0x00000001" complete_nodeset="0x00000001" gp_index="30"/>
  <object type="Bridge" gp_index="50" bridge_type="0-1" depth="0" bridge_pci="0000:[10-1f]">
   <object type="Bridge" gp_index="51" bridge_type="1-1" depth="1" bridge_pci="0000:[11-13]" pci_busid="0000:10:01.0" pci_type="0604 [1022:14ab] [0000:0000] 04" pci_link_speed="0">
    <object type="PCIDev" gp_index="60" pci_busid="0000:11:00.0" pci_type="0302 [1002:740f] [0000:0000] 02" pci_link_speed="0"/>
    <object type="PCIDev" gp_index="61" pci_busid="0000:12:00.0" pci_type="0207 [15b3:1021] [0000:0000] 00" pci_link_speed="0">
     <object type="OSDev" gp_index="70" name="mlx5_0" osdev_type="3"/>
    </object>
   </object>
   <object type="PCIDev" gp_index="62" pci_busid="0000:10:05.0" pci_type="0108 [144d:a80a] [0000:0000] 00" pci_link_speed="0">
    <object type="OSDev" gp_index="71" name="nvme0n1" osdev_type="0"/>
   </object>
  </object>
 </object>
</topology>
END
if has HAVE_HWLOC; then
  replies 0 '^From GPU 0000:11:00\.0 \(NUMA node 0\)' "$info" --topology --xml "$work/machine.xml"
  says '0000:12:00\.0 +2 \(steps to NIC mlx5_0, one PCIe bridge, nearest\)'
  says 'nic +0000:12:00\.0 \(nearest\)'
  says 'drive +0000:10:05\.0 \(nearest\)'
  says 'steps to drive nvme0n1, one host bridge'
  echo '<topology' >"$work/broken.xml"
  replies 2 'describes no machine' "$info" --topology --xml "$work/broken.xml"
  replies 2 'cannot be read as a machine' "$info" --topology --xml "$work/nowhere"
  # A folder has nothing to read, and this has no end: not for so long that memory is gone.
  for odd in "$work" /dev/zero; do
    replies 2 "$odd cannot be read as a machine" timeout 20 "$info" --topology --xml "$odd"
  done
  replies 0 '^From GPU 0000:11:00\.0' "$info" --topology --xml <(cat "$work/machine.xml")
  returns 0 "$info" --topology
fi
replies 2 'goes with --topology' "$info" --xml "$work/machine.xml"

# --- Preflight ---
# A machine whose GPU, NIC and switch are in a dump and whose kernel speaks through files.
machine=$work/machine
mkdir -p "$machine"/{dev/dri,dev/infiniband,boot,proc/self,proc/sys/kernel,sys/class/iommu/dmar0,sys/class/infiniband/mlx5_0}
gpu_folder=$machine/sys/bus/pci/devices/0000:03:00.0
node=$machine/sys/class/kfd/kfd/topology/nodes/0
mkdir -p "$gpu_folder" "$node" "$machine/sys/module/amdgpu"
echo 6.12.12 >"$machine/sys/module/amdgpu/version"
: >"$machine/dev/kfd"
: >"$machine/dev/dri/renderD128"
: >"$machine/dev/infiniband/uverbs0"
echo 68702699520 >"$gpu_folder/mem_info_vram_total"
echo 68702699520 >"$gpu_folder/mem_info_vis_vram_total"
printf 'simd_count 440\ncpu_cores_count 0\ndomain 0\nlocation_id 768\nhive_id 77\n' >"$node/properties"
echo 6.12.0-test >"$machine/proc/sys/kernel/osrelease"
printf 'CONFIG_PCI_P2PDMA=y\nCONFIG_DMABUF_MOVE_NOTIFY=y\nCONFIG_HSA_AMD_P2P=y\n' >"$machine/boot/config-6.12.0-test"
echo 'Max locked memory         unlimited            unlimited            bytes' >"$machine/proc/self/limits"
printf 'Name:\tx\nCapEff:\t0000000000000000\n' >"$machine/proc/self/status"
# pci ROOT-CAP2 ACS: its PCI functions.
pci() {
  awk -f "$srcdir/tests/tools/pci_dump.awk" >"$work/pci" <<END
0000:00:01.0 id=1022:14ab class=0604 header=01 bus=00,01,08 type=4 cap2=$1
0000:01:00.0 id=11f8:4000 class=0604 header=01 bus=01,02,08 type=5 cap2=40
0000:02:00.0 id=11f8:4000 class=0604 header=01 bus=02,03,03 type=6 cap2=40 acs=$2
0000:03:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=40
END
}
look() { judge "${program[@]}" --preflight --root "$machine" --dump "$work/pci"; }
program=("$info")
# shows LINE...: what a look at the machine prints, from behind its indent.
shows() {
  look
  says_all "${@/#/^  }"
}
# others_see LINE...: the same for another user than root.
others_see() {
  program=("${plain[@]}")
  shows "$@"
  program=("$info")
}
pci 180 0
look
for name in gpu_driver render_access large_bar pcie_atomics iommu acs dma_buf register_pages memlock rdma_access; do
  says "^  $name +ok"
done
says '^  fine_grain +not needed'
says '^  vfio_access +not needed'
silent '_cure'

# Each piece taken away is named with its cure, and nothing else is.
# lacks NAME CURE: after a change.
lacks() {
  look
  says "^  $1 +missing"
  says "^  $1_cure +.*$2"
  holds "more than $1 is missing" [ "$(grep -c ' missing ' <<<"$out")" = 1 ]
}
pci 80 0
lacks pcie_atomics 'another root port'
pci 180 4
lacks acs 'setpci -s 0000:02:00\.0 ECAP_ACS\+6\.w=0:4'
pci 180 0
echo 268435456 >"$gpu_folder/mem_info_vis_vram_total"
lacks large_bar 'Resizable BAR'
echo 68702699520 >"$gpu_folder/mem_info_vis_vram_total"
sed -i 's/hive_id 77/hive_id 0/' "$node/properties"
lacks fine_grain 'HSA_FORCE_FINE_GRAIN_PCIE=1'
judge env HSA_FORCE_FINE_GRAIN_PCIE=1 "$info" --preflight --root "$machine" --dump "$work/pci"
says '^  fine_grain +ok'
sed -i 's/hive_id 0/hive_id 77/' "$node/properties"
rm "$machine/sys/module/amdgpu/version"
lacks register_pages 'amdgpu-dkms'
rmdir "$machine/sys/module/amdgpu"
shows 'register_pages +unknown'
mkdir "$machine/sys/module/amdgpu"
echo 6.12.12 >"$machine/sys/module/amdgpu/version"
rmdir "$machine/sys/class/iommu/dmar0"
lacks iommu 'amd_iommu=on'
mkdir "$machine/sys/class/iommu/dmar0"
# Linux 7.3 has no option for it any more: importers are always told.
printf 'CONFIG_PCI_P2PDMA=y\nCONFIG_HSA_AMD_P2P=y\n' | tee "$machine/boot/config-7.3.4" >"$machine/boot/config-7.2.0"
echo 7.3.4 >"$machine/proc/sys/kernel/osrelease"
shows 'dma_buf +ok'
echo 7.2.0 >"$machine/proc/sys/kernel/osrelease"
shows 'dma_buf +missing .*without CONFIG_DMABUF_MOVE_NOTIFY'
echo 6.12.0-test >"$machine/proc/sys/kernel/osrelease"
sed -i 's/CONFIG_HSA_AMD_P2P=y/# CONFIG_HSA_AMD_P2P is not set/' "$machine/boot/config-6.12.0-test"
lacks dma_buf 'a kernel with them'
says 'made without CONFIG_HSA_AMD_P2P'
sed -i 's/# CONFIG_HSA_AMD_P2P is not set/CONFIG_HSA_AMD_P2P=y/' "$machine/boot/config-6.12.0-test"
# Fedora keeps it with the modules; where nobody keeps it, the kernel itself may say.
mkdir -p "$machine/lib/modules/6.12.0-test"
mv "$machine/boot/config-6.12.0-test" "$machine/lib/modules/6.12.0-test/config"
shows 'dma_buf +ok'
mv "$machine/lib/modules/6.12.0-test/config" "$work/config"
shows 'dma_buf +unknown' 'dma_buf_cure +.*zcat /proc/config.gz'
mv "$work/config" "$machine/boot/config-6.12.0-test"
echo 5.10.0-old >"$machine/proc/sys/kernel/osrelease"
lacks dma_buf '5\.12 or later'
echo 6.12.0-test >"$machine/proc/sys/kernel/osrelease"
echo 'Max locked memory         8388608              8388608              bytes' >"$machine/proc/self/limits"
lacks memlock 'limits\.d'
says '8388608 bytes may be locked, and the heap has 67108864'
printf 'CapEff:\t0000000000004000\n' >"$machine/proc/self/status"
shows 'memlock +ok \(no limit: CAP_IPC_LOCK\)'
rm "$machine/dev/kfd"
lacks gpu_driver 'modprobe amdgpu'
: >"$machine/dev/kfd"
rm "$machine/dev/infiniband/uverbs0"
lacks rdma_access 'modprobe ib_uverbs'
: >"$machine/dev/infiniband/uverbs0"
says '^  slingshot_access +not needed'
mkdir -p "$machine/sys/class/cxi/cxi0"
lacks slingshot_access 'pass /dev/cxi0'
: >"$machine/dev/cxi0"
shows 'slingshot_access +ok'
# What a file denies root does not see: then another user looks.
plain=("$info")
if [ "$(id -u)" = 0 ]; then plain=(setpriv --reuid=65534 --regid=65534 --clear-groups "$info"); fi
chmod -R a+rX "$work"
if "${plain[@]}" --version >/dev/null 2>&1; then
  chmod 0 "$machine/dev/kfd"
  others_see 'gpu_driver +missing \(this process may not read and write /dev/kfd\)'
  says '^  gpu_driver_cure +ask root for a udev rule'
  chmod 660 "$machine/dev/kfd"
  if [ "$(id -u)" = 0 ]; then
    chgrp 44 "$machine/dev/kfd"
    others_see 'gpu_driver_cure +as root: usermod -aG [a-z0-9]+ USER; then log in again'
  fi
  chmod 666 "$machine/dev/kfd"
  # A drive may be reached by its group or by its own file.
  mkdir -p "$machine/dev/vfio/devices"
  : >"$machine/dev/vfio/vfio"
  : >"$machine/dev/vfio/17"
  : >"$machine/dev/vfio/devices/vfio3"
  : >"$machine/dev/iommu"
  chmod 666 "$machine/dev/vfio/17"
  chmod 0 "$machine/dev/vfio/devices/vfio3"
  others_see 'vfio_access +ok \(/dev/vfio/17\)'
  chmod 0 "$machine/dev/vfio/17"
  others_see 'vfio_access +missing \(this process may not read and write /dev/vfio/17\)'
  chmod 666 "$machine/dev/vfio/devices/vfio3" "$machine/dev/iommu"
  others_see 'vfio_access +ok \(/dev/vfio/devices/vfio3 and 1 more\)'
  rm -r "$machine/dev/vfio" "$machine/dev/iommu"
  # Nothing else of this tool wants root either, and what needs it says so.
  returns 0 "${plain[@]}"
  returns 0 "${plain[@]}" --atomics --dump "$work/pci"
  returns 0 "${plain[@]}" --world
else
  echo "not run: ${plain[*]}"
fi
# A kernel that says nothing is not one that lacks something.
rm "$machine/proc/sys/kernel/osrelease"
shows 'dma_buf +unknown'
mkdir "$work/nothing"
judge "$info" --preflight --root "$work/nothing" --dump "$work/pci"
says '^  gpu_driver +missing'
says '^  memlock +unknown'
awk -f "$srcdir/tests/tools/pci_dump.awk" >"$work/user" <<<'0000:03:00.0 id=1002:740f class=0302 type=0 bytes=64'
judge "$info" --preflight --root "$machine" --dump "$work/user"
says '^  acs +unknown'
says '^  pcie_atomics +unknown'
: >"$work/no_dump"
returns 2 "$info" --preflight --dump "$work/no_dump"
judge "$info" --preflight
replies 2 'is no folder' "$info" --preflight --root "$work/nowhere"
replies 2 'one at a time' "$info" --preflight --world
returns 2 "$info" --topology --root "$work"

# --- Drives ---
drive() { # BDF DRIVER
  mkdir -p "$machine/sys/bus/pci/devices/$1" "$machine/sys/bus/pci/drivers/$2"
  echo 0x010802 >"$machine/sys/bus/pci/devices/$1/class"
  ln -s "../../../../bus/pci/drivers/$2" "$machine/sys/bus/pci/devices/$1/driver"
}
drive 0000:05:00.0 vfio-pci
ln -s ../../../kernel/iommu_groups/17 "$machine/sys/bus/pci/devices/0000:05:00.0/iommu_group"
drive 0000:06:00.0 nvme
mkdir -p "$machine/sys/bus/pci/devices/0000:06:00.0/nvme/nvme0/nvme0n1" "$machine/sys/block/nvme0n1"
echo 'A Drive   ' >"$machine/sys/bus/pci/devices/0000:06:00.0/nvme/nvme0/model"
echo 259:0 >"$machine/sys/block/nvme0n1/dev"
echo 1000 >"$machine/sys/block/nvme0n1/size"
: >"$machine/proc/self/mountinfo"
replies 0 'controllers +2' "$info" --root "$machine"
says '^NVMe controller 0000:05:00\.0'
says 'use +xio_storage_open "nvme:0000:05:00\.0/1"'
says 'addresses +by type 1 \(there is no /dev/iommu\)'
says 'model +A Drive$'
says 'nvme0n1 +1000 \(512-byte sectors\)'
says 'use +bind it to vfio-pci: xio-info --bind 0000:06:00\.0'
echo '36 35 259:0 / /data rw,noatime shared:1 - ext4 /dev/nvme0n1 rw' >"$machine/proc/self/mountinfo"
replies 0 'held +yes \(nvme0n1 is mounted on /data\)' "$info" --root "$machine"
says 'use +none while it is held'
# With the files of iommufd, and without an IOMMU.
mkdir -p "$machine/dev/vfio/devices" "$machine/sys/bus/pci/devices/0000:05:00.0/vfio-dev/vfio3"
: >"$machine/dev/iommu"
: >"$machine/dev/vfio/devices/vfio3"
echo 244:3 >"$machine/sys/bus/pci/devices/0000:05:00.0/vfio-dev/vfio3/dev"
replies 0 'addresses +by iommufd$' "$info" --root "$machine"
replies 0 'addresses +by type 1 \(XIO_VFIO_IOMMU\)' env XIO_VFIO_IOMMU=type1 "$info" --root "$machine"
rm "$machine/sys/bus/pci/devices/0000:05:00.0/iommu_group"
replies 0 'addresses +none \(.*behind no IOMMU' "$info" --root "$machine"

# --- A drive is given to vfio-pci, and back: what is in use stays as it is ---
at=$machine/sys/bus/pci drive6=$machine/sys/bus/pci/devices/0000:06:00.0
mkdir -p "$machine/sys/kernel/iommu_groups/18/devices" "$machine/sys/block/nvme0n1/holders"
ln -s ../../../../kernel/iommu_groups/18 "$drive6/iommu_group"
for file in "$drive6/driver_override" "$at/drivers/nvme/unbind" "$at/drivers/vfio-pci/unbind" "$at/drivers_probe"; do : >"$file"; done
# stays WHY [COMMAND...]: nothing is printed or written.
stays() {
  replies 1 "$1" "$info" --root "$machine" "${@:2}"
  silent '^echo'
  checks=$((checks + 1))
  if [ -s "$drive6/driver_override" ] || [ -s "$at/drivers_probe" ]; then wrong "written although refused: $1"; fi
}
bind=(--bind 06:00.0)
stays '0000:06:00\.0 stays as it is: nvme0n1 is mounted on /data; free it first' "${bind[@]}"
echo '36 35 259:0 / / rw,noatime shared:1 - ext4 /dev/nvme0n1 rw' >"$machine/proc/self/mountinfo"
stays 'nvme0n1 is mounted as the root file system' "${bind[@]}"
: >"$machine/proc/self/mountinfo"
echo '/dev/nvme0n1 partition 1 0 -2' >"$machine/proc/swaps"
stays 'nvme0n1 is swapped on' "${bind[@]}"
rm "$machine/proc/swaps"
: >"$machine/sys/block/nvme0n1/holders/md0"
stays 'nvme0n1 is part of md0' "${bind[@]}"
rm "$machine/sys/block/nvme0n1/holders/md0"
echo 2 >"$drive6/sriov_numvfs"
stays 'it has 2 virtual functions' "${bind[@]}"
rm "$drive6/sriov_numvfs"
mkdir -p "$at/devices/0000:06:00.1" "$machine/sys/kernel/iommu_groups/18/devices/0000:06:00.1"
echo 0x020000 >"$at/devices/0000:06:00.1/class"
ln -s ../../../../bus/pci/drivers/e1000e "$at/devices/0000:06:00.1/driver"
stays 'shares IOMMU group 18 with 0000:06:00\.1, which e1000e drives' "${bind[@]}"
rm -r "$machine/sys/kernel/iommu_groups/18/devices/0000:06:00.1" "$at/devices/0000:06:00.1"
mv "$at/drivers/vfio-pci" "$work/vfio-pci"
stays 'modprobe vfio-pci' "${bind[@]}"
mv "$work/vfio-pci" "$at/drivers/vfio-pci"
stays 'is in no IOMMU group' --bind 0000:05:00.0
replies 2 'is no NVMe controller' "$info" --root "$machine" --bind 03:00.0
replies 2 'there is no PCI function 0000:77:00\.0' "$info" --root "$machine" --bind 77:00.0
replies 2 'one subject each' "$info" --bind 06:00.0 --unbind 06:00.0
returns 2 "$info" --bind 06:00.0 --json
# probed DRIVER: what the kernel does when it is told to find a driver for the drive.
probed() {
  rm "$at/drivers_probe"
  mkfifo "$at/drivers_probe"
  (read -r bdf <"$at/drivers_probe" && [ "$bdf" = 0000:06:00.0 ] && ln -sfn "../../../../bus/pci/drivers/$1" "$drive6/driver") &
}
probed vfio-pci
returns 0 "$info" --root "$machine" "${bind[@]}"
wait
says '0000:06:00\.0 is bound to vfio-pci now, until the next boot'
says 'chown USER /dev/vfio/18; back: xio-info --unbind 0000:06:00\.0'
checks=$((checks + 1))
[ "$(grep '^echo' <<<"$out")" = "echo vfio-pci > $drive6/driver_override
echo 0000:06:00.0 > $at/drivers/nvme/unbind
echo 0000:06:00.0 > $at/drivers_probe" ] || wrong "the steps are not said: $out"
holds 'the steps were not done' [ "$(cat "$drive6/driver_override" "$at/drivers/nvme/unbind")" = $'vfio-pci\n0000:06:00.0' ]
replies 0 'bound to vfio-pci already' "$info" --root "$machine" "${bind[@]}"
mkdir -p "$machine/proc/4242/fd"
echo trainer >"$machine/proc/4242/comm"
ln -s /dev/vfio/18 "$machine/proc/4242/fd/7"
replies 1 'process 4242 \(trainer\) has /dev/vfio/18 open' "$info" --root "$machine" --unbind 06:00.0
rm -r "$machine/proc/4242"
probed nvme
returns 0 "$info" --root "$machine" --unbind 06:00.0
wait
says "is Linux' again: nvme has it"
replies 0 'is not bound to vfio-pci: nvme has it' "$info" --root "$machine" --unbind 06:00.0

# --- Drives of the kernel module, and their way to GPU memory ---
drive 0000:04:00.0 xio
: >"$machine/dev/xio"
replies 0 'use +xio_storage_open "kmod:0000:04:00\.0/1"' "$info" --root "$machine"
# A drive behind the GPU's switch and one at another root port; ports of Intel's machines by their numbers.
# ways ACS HOST-BRIDGE
ways() {
  awk -f "$srcdir/tests/tools/pci_dump.awk" >"$work/pci" <<END
0000:00:00.0 id=$2 class=0600 type=4
0000:00:01.0 id=8086:1234 class=0604 header=01 bus=00,01,08 type=4 cap2=180
0000:01:00.0 id=11f8:4000 class=0604 header=01 bus=01,02,08 type=5 cap2=40
0000:02:00.0 id=11f8:4000 class=0604 header=01 bus=02,03,03 type=6 cap2=40 acs=$1
0000:02:01.0 id=11f8:4000 class=0604 header=01 bus=02,04,04 type=6 cap2=40
0000:03:00.0 id=1002:740f class=0302 type=0 cap2=180 ctl2=40
0000:04:00.0 id=144d:a80a class=0108 type=0
0000:00:02.0 id=8086:1234 class=0604 header=01 bus=00,09,09 type=4 cap2=180
0000:09:00.0 id=144d:a80a class=0108 type=0
END
}
# processor VENDOR FAMILY
processor() { printf 'processor\t: 0\nvendor_id\t: %s\ncpu family\t: %s\n' "$1" "$2" >"$machine/proc/cpuinfo"; }
processor GenuineIntel 6
ways 0 8086:4668
shows 'module_access +ok \(/dev/xio\)' 'peer_path +ok \(Linux lets every drive' 'iommu_mode +ok'
for redirect in 4 8 20; do
  ways $redirect 8086:4668
  shows 'peer_path +missing \(1 of 1 ways are closed: .*ACS at 0000:02:00\.0'
  says '^  peer_path_cure +.*pci=disable_acs_redir=0000:02:00\.0'
done
# Bits that redirect nothing.
ways 11 8086:4668
shows 'peer_path +ok'
drive 0000:09:00.0 xio
ways 0 8086:4668
shows 'peer_path +missing \(1 of 2 ways are closed: transfers between drive 0000:09:00\.0 and GPU 0000:03:00\.0'
says '^  peer_path_cure +put the drive behind the same PCIe switch'
for listed in 8086:2020 8086:09a2 8086:2f00 8086:0b25 8086:4948 10de:2f97 1ae0:4711 1d17:1003; do
  ways 4 $listed
  shows 'peer_path +ok'
done
for other in 10de:2020 1d17:1009; do
  ways 4 $other
  shows 'peer_path +missing'
done
ways 0 8086:4668
processor AuthenticAMD 22
shows 'peer_path +missing'
processor AuthenticAMD 25
shows 'peer_path +ok'
mkdir -p "$machine/sys/kernel/iommu_groups/21"
ln -s ../../../../kernel/iommu_groups/21 "$machine/sys/bus/pci/devices/0000:09:00.0/iommu_group"
echo DMA-FQ >"$machine/sys/kernel/iommu_groups/21/type"
shows 'iommu_mode +missing \(.*0000:09:00\.0.*DMA-FQ' 'iommu_mode_cure +.*iommu=pt'
echo identity >"$machine/sys/kernel/iommu_groups/21/type"
shows 'iommu_mode +ok'
rm "$machine/dev/xio"
shows 'module_access +missing'
rm -r "$machine"/sys/bus/pci/devices/0000:0[49]:00.0
shows 'peer_path +not needed \(no drive is bound to xio'

# --- NICs, and their way to GPU memory: a GPU wants one of them ---
says '^  nic_path +not needed \(no RDMA device on PCI'
mkdir -p "$machine/sys/bus/pci/devices/0000:09:00.0/infiniband/mlx5_0"
ways 0 8086:4668
processor GenuineIntel 6
shows 'nic_path +missing \(no NIC reaches the memory of GPU 0000:03:00\.0: transfers between NIC 0000:09:00\.0 and'
says '^  nic_path_cure +put the NIC behind the same PCIe switch'
processor AuthenticAMD 25
shows 'nic_path +ok \(Linux lets a NIC reach the memory of every GPU'
# A second one, behind the GPU's switch.
processor GenuineIntel 6
mkdir -p "$machine/sys/bus/pci/devices/0000:04:00.0/infiniband/mlx5_1"
shows 'nic_path +ok'
ways 8 8086:4668
shows 'nic_path +missing \(no NIC .*ACS at 0000:02:00\.0'
rm -r "$machine"/sys/bus/pci/devices/0000:0[49]:00.0

# --- A world ---
replies 0 '^Routes of PE 0 of 1' "$info" --world
says 'pe0_8 +direct'
replies 0 '^Routes of PE 0 of 2' "$start" -n 2 "$info" --world
says '^Routes of PE 1 of 2'
says 'pe1_4k +direct'
if [ "$gpu" = host ] && has XIO_ENABLE_MODEL; then
  replies 0 'pe1_4k +direct' env XIO_SDMA_THRESHOLD=1M "$start" -n 2 "$info" --world
  says 'pe1_1M +sdma'
  says '^  sdma +model'
  replies 0 '"pe1_8": "rdma"' env XIO_ROUTE=rdma "$start" -n 2 "$info" --world --json
  says '"rdma": ".*\(model\)"'
fi
replies 1 'XIO_HEAP_SIZE' env XIO_HEAP_SIZE=nonsense "$info" --world

finish
