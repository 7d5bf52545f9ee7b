#!/bin/bash
# SPDX-License-Identifier: MIT
# What xio-perf measures and prints: every test with two PEs or alone, every route, three formats, a picture.
# shellcheck source=tests/tools/said.sh
. "${0%/*}/said.sh" || exit 1
if [ ! -x "$perf" ]; then skip 'this build has no xio-perf: it wants nlohmann-json'; fi
if [ "$gpu" = hip ] && [ ! -e /dev/kfd ]; then skip 'no AMD GPU here'; fi
unset "${!XIO_RUN_@}" XIO_ROUTE XIO_BACKEND 2>/dev/null
export XIO_TIMEOUT_MS=60000 TMPDIR=$work

passes() { returns 0 "$@"; }
# Rows of the CSV in $out, and what has to hold in each: min <= median <= p99 <= p99.9 <= max, the mean among them, and the
# bandwidth that follows from bytes and median. Of quoted cells only the last columns have any.
rows() {
  local problem
  problem=$(awk -F, -v wanted="$1" -v senders="${2:-1}" '
    NR == 1 {for (i = 1; i <= NF; ++i) at[$i] = i; next}
    {++rows; min = $at["min_us"]; med = $at["median_us"]; p99 = $at["p99_us"]; p999 = $at["p999_us"]; max = $at["max_us"]; mean = $at["mean_us"]
     if (!(min > 0 && min <= med && med <= p99 && p99 <= p999 && p999 <= max && mean >= min && mean <= max)) print "times of row " rows ": " $0
     gb = $at["GB_per_s"]
     if (gb != "") {
       is = senders * $at["bytes"] / med / 1000
       if ($at["route"] == "nvme") is *= $at["ctas"] * ($at["scope"] == "block" ? 1 : $at["threads"] / ($at["scope"] == "wave" ? 64 : 1))
       n = $at["team"]
       if (n != "") {one = $1 == "broadcast" || $1 == "reduce"; is = $at["bytes"] * (one ? 1 : n) / mean / 1000
         bus = gb * ($1 == "broadcast" ? 1 : (one ? 2 : 1) * (n - 1) / n)
         if ($at["bus_GB_per_s"] - bus > bus / 50 || bus - $at["bus_GB_per_s"] > bus / 50) print "row " rows ": bus " $at["bus_GB_per_s"] " and not " bus}
       if (gb - is > is / 50 + 0.0002 || is - gb > is / 50 + 0.0002) print "row " rows ": " gb " GB/s and not " is}
     if ($at["samples"] + 0 < 1) print "row " rows " has no samples"}
    END {if (rows != wanted) print rows + 0 " rows and not " wanted}' <<<"$out")
  holds "$problem" [ -z "$problem" ]
}
# gives ROWS COMMAND...
gives() {
  passes "${@:2}"
  rows "$1"
}
# How many rows have that in a column.
column() {
  local got
  got=$(awk -F, -v name="$1" -v is="$2" 'NR == 1 {for (i = 1; i <= NF; ++i) if ($i == name) c = i; next} $c == is {++n}
    END {print n + 0}' <<<"$out")
  holds "$got rows and not $3 have $2 as $1" [ "$got" = "$3" ]
}

# --- Every test with two PEs ---
small=(-n 5 -w 1 --format csv)
streams=("${small[@]}" -r 2)
gives 18 "$start" -n 2 "$perf" put_lat get_lat -b 1 -e 4097 -f 64 -s thread,wave,block "${small[@]}"
column scope wave 6
column ctas 1 18
gives 13 "$start" -n 2 "$perf" p_lat g_lat put_bw get_bw p_bw g_bw atomic_bw -b 100 -e 70000 -f 700 -c 3 -t 64 "${streams[@]}"
gives 6 "$start" -n 2 "$perf" put_lat get_lat -b 8 -e 8 -s all "${small[@]}"
column scope wave 2
for type in fp16 bf16 float double; do
  gives 4 "$start" -n 2 "$perf" p_lat g_lat p_bw g_bw -d $type -b 63 -e 63 -n 5 -w 1 --repetitions 2 --format csv
done
passes "$start" -n 2 "$perf" put_bw p_lat --dir write --msgrate -e 1k -n 2
says 'Mmsg_per_s'
gives 6 "$start" -n 2 "$perf" put_bw get_bw -b 4k -e 4k -s thread,wave,block -c 2 -t 128 --lockstep "${streams[@]}"
passes "$start" -n 2 "$perf" put_lat put_bw g_bw atomic_bw -b 4k -e 4k --bidir "${streams[@]}"
rows 4 2
gives 17 "$start" -n 2 "$perf" p_pingpong signal_pingpong put_pingpong put_signal_pingpong barrier -e 4k -f 512 \
  -s thread,wave,block "${small[@]}"
column test barrier 3
# --- Collectives and calls of the host ---
gives 12 "$start" -n 3 "$perf" barrier sync team_barrier team_sync -s all "${small[@]}"
column team 3 6
moves=(alltoall alltoallv fcollect collect broadcast reduce reduce_scatter)
gives 28 "$start" -n 3 "$perf" "${moves[@]}" -s wave,block --sizes 8,4k "${small[@]}"
column op sum 8
# The first of all PEs; the others wait.
gives 21 "$start" -n 3 "$perf" "${moves[@]}" --team 1,2,3 --sizes 8200 "${small[@]}"
for n in 1 2 3; do column team $n 7; done
for op in prod min max and or xor; do
  gives 2 "$start" -n 3 "$perf" reduce reduce_scatter -o $op -b 99 -e 99 "${small[@]}"
  column op $op 2
  column bytes 100 2
done
for way in 'rdma shm' 'rdma tcp'; do
  gives 9 env XIO_NIC_EXECUTOR="${way#* }" "$start" -n 3 "$perf" sync team_barrier "${moves[@]}" --sizes 64 --route "${way% *}" "${small[@]}"
  column route rdma 9
done
gives 4 "$start" -n 3 "$perf" host_barrier malloc team_create ctx_create --team 2 "${small[@]}"
column route host 3
column emulated '' 3
# A world that is larger than the launcher's variable says is made anew, with the memory that it needs.
gives 1 "$start" -n 3 env OMPI_COMM_WORLD_SIZE=1 "$perf" alltoall --sizes 4M -n 1 -w 0 --format csv

gives 4 "$start" -n 2 "$perf" put_staged_lat get_staged_lat -b 100 -e 70000 -f 700 "${small[@]}"
gives 5 "$start" -n 2 "$perf" packet_pingpong "${small[@]}"
for type in int uint64; do
  gives 28 "$start" -n 2 "$perf" atomic_lat atomic_bw -a all -d $type -b 256 -e 256 "${small[@]}"
done
column op compare_swap 2

# --- Every route; what carried it is said ---
for route in rdma sdma; do
  gives 15 "$start" -n 2 "$perf" put_lat get_lat put_bw get_bw p_lat g_lat atomic_lat put_signal_pingpong barrier \
    -b 256 -e 1k -f 4 --route $route "${streams[@]}"
  column test g_lat 1
done
column route sdma 10
column route direct 5
if [ "$gpu" = host ]; then
  column emulated emulated 15
  column backend 'model gfx90a' 10
  # Every workgroup puts its part of the bytes: that is what a threshold is compared with.
  export XIO_SDMA_THRESHOLD=1M
  passes "$start" -n 2 "$perf" put_bw get_bw -b 1M -e 1M -c 2 "${streams[@]}"
  column route direct 2
  passes "$start" -n 2 "$perf" put_bw get_bw -b 1M -e 1M -c 1 "${streams[@]}"
  column route sdma 2
  unset XIO_SDMA_THRESHOLD
fi

# On PE 0 alone, while the others stand by.
gives 4 "$start" -n 2 "$perf" nvme_read nvme_write -b 4k -e 8k -c 1 -t 4 "${small[@]}"

# --- Alone ---
gives 4 "$perf" nvme_read nvme_write -b 512 -e 32k -f 64 -c 2 -t 8 "${small[@]}"
column route nvme 4
column emulated emulated 4
gives 4 "$perf" nvme_read nvme_write -b 4k -e 4k -s wave,block -c 2 -t 128 "${small[@]}"
gives 4 "$perf" nvme_read nvme_write --access scattered -b 4k -e 64k -f 16 -c 2 -t 5 -n 40 -w 1 --format csv
# A wave takes part with all its threads, also where nobody says how many.
gives 3 "$perf" nvme_read -s all -b 4k -e 4k "${small[@]}"
if [ "$gpu" = host ]; then
  column threads 64 1
  column threads 16 2
fi
gives 3 "$perf" sdma_copy -b 4k -e 1M -f 16 "${streams[@]}"
column route sdma 3
is 'files were left' "$(ls -A "$work")" ''
# A file of the user's: read as it is; written over where that was said.
head -c 1M /dev/urandom >"$work/drive"
sum=$(sha256sum <"$work/drive")
gives 1 "$perf" nvme_read --storage "file:$work/drive" -b 4k -e 4k -c 1 -t 16 "${small[@]}"
holds 'nvme_read changed the file' [ "$sum" = "$(sha256sum <"$work/drive")" ]
passes "$perf" nvme_write --i-know --storage "file:$work/drive" -b 4k -e 4k -c 1 -t 16 "${small[@]}"
holds 'nvme_write wrote nothing' [ "$sum" != "$(sha256sum <"$work/drive")" ]
# A file of zeroes, and then of what a test wrote, needs no word for it.
truncate -s 1M "$work/zeroes"
for _ in 1 2; do passes "$perf" nvme_write --storage "file:$work/zeroes" -b 4k -e 4k -c 1 -t 16 "${small[@]}"; done
rm "$work/zeroes"
# Two files in stripes, and ops of more than one: what lies there is read back by the device.
for name in one two; do head -c 2M /dev/urandom >"$work/$name"; done
stripes=file:$work/one,file:$work/two
cp "$work/one" "$work/one.was"
cp "$work/two" "$work/two.was"
gives 2 "$perf" nvme_read --storage "$stripes" -b 4k -e 128k -f 32 -c 1 -t 2 "${small[@]}"
for name in one two; do
  holds "nvme_read changed file $name of the stripes" cmp -s "$work/$name" "$work/$name.was"
done
gives 2 "$perf" nvme_write --i-know --storage "$stripes" -b 4k -e 128k -f 32 -c 1 -t 2 "${small[@]}"
for name in one two; do
  holds "nvme_write wrote nothing to file $name of the stripes" [ "$(sha256sum <"$work/$name")" != "$(sha256sum <"$work/$name.was")" ]
done

# --- Lists: of tests, of sizes, and of everything ---
gives 7 "$perf" put_lat,get_lat g_lat --sizes 64,8,4k,64 "${small[@]}"
column bytes 4096 2
column bytes 64 2
holds 'sizes do not rise' [ "$(awk -F, 'NR > 1 && NR < 5 {print $4}' <<<"$out" | xargs)" = '8 64 4096' ]
listed=$("$perf" --list) || wrong '--list failed'
is '--list and --help differ' "$(awk '{print $1}' <<<"$listed" | sort)" \
  "$("$perf" --help | awk '/^Tests:/ {on = 1; next} !/^  / {on = 0} on && $1 != "all" {print $1}' | sort)"
# `all` is every test there is: two PEs run each of them, packets and drives with the sizes that they have.
passes "$start" -n 2 "$perf" all --sizes 8,4k -n 2 -w 0 -r 2 --format csv
while read -r name _; do
  says "^$name,"
done <<<"$listed"
column test nvme_read 1
column test packet_pingpong 1
# One PE goes without ping-pongs, and says so; other options leave out what they exclude.
passes "$perf" all --sizes 8,4k -n 2 -w 0 --route direct --dir write --format csv
says '^xio-perf: put_pingpong is left out: it takes two PEs and there is one$'
out=$(grep -v '^xio-perf: ' <<<"$out")
column test put_lat 2
for name in get_lat nvme_read sdma_copy put_pingpong; do column test $name 0; done

# --- How far it is: on a terminal, and nowhere else ---
if command -v script >/dev/null; then
  # None comes in the first second, so the measurements are long.
  out=$(script -qec "'$perf' put_lat,put_lat,put_lat --sizes 4M -n 10000 -w 0 --format csv >'$work/rows'" /dev/null 2>&1)
  says 'xio-perf: [0-9]+% [0-9]+/3 measurements'
  out=$(cat "$work/rows")
  rows 3
else
  echo 'no script(1): progress on a terminal is not tried'
fi
passes "$perf" put_lat,put_lat,put_lat --sizes 4M -n 10000 -w 0
silent measurements # progress is for terminals

# --- Under mpirun ---
if [ -n "$MPIRUN" ]; then
  out=$(mpirun_np 2 timeout -k 5 120 "$perf" put_lat signal_pingpong -e 64 "${small[@]}" 2>/dev/null)
  rows 5
  column test put_lat 4
fi

# --- For people, for programs, and as a picture ---
passes "$start" -n 2 "$perf" put_bw -b 1k -e 4k -n 3 --report_msgrate
says '^# version: [0-9]+\.[0-9]+\.[0-9]+'
says '^# machine: .'
says '^# cpu: .*, [0-9]+ cores$'
says "^# platform: $gpu\$"
says '^# pes: 2$'
says '^test +scope +bytes +median_us +GB_per_s +Mmsg_per_s +route +emulated$'
says '^# --wide has more: max_us min_us p999_us p99_us$'
says '^put_bw +block +1024 '
says '^# direct: load/store$'
passes "$perf" put_bw --wide -b 1k -e 1k -n 3 --report_msgrate
says '^test +scope +bytes +min_us +median_us +p99_us +p999_us +max_us +GB_per_s +Mmsg_per_s +route +emulated$'
if [ "$gpu" = host ]; then says '^put_bw.* direct +emulated$'; fi
# Columns stand below their heads, also where names are long and only some tests have an op.
passes "$start" -n 2 "$perf" put_lat atomic_lat put_signal_pingpong -e 8 -n 2 -w 0 -a compare_swap,inc
says '^test +op +scope +bytes '
is 'scope does not stand in one column' "$(grep -v '^#' <<<"$out" | awk '{print match($0, /scope|thread/)}' | sort -u | wc -l)" 1
holds "the table is wider than 80 characters: $out" [ "$(grep -v '^#' <<<"$out" | wc -L)" -le 80 ]
passes "$perf" put_lat -e 8 -n 2 -w 0
says '^test +scope +bytes +median_us +p99_us +GB_per_s +route +emulated$'
passes "$start" -n 2 "$perf" alltoall reduce_scatter --sizes 8 -n 2 -w 0
says '^test +op +scope +bytes +mean_us +GB_per_s +bus_GB_per_s$'
passes "$start" -n 2 "$perf" alltoall --sizes 8 -n 2 -w 0 --wide --team 2
says '^test +scope +bytes +min_us +median_us +p99_us +p999_us +max_us +mean_us +GB_per_s +bus_GB_per_s +team +route +emulated$'
if command -v python3 >/dev/null; then
  out=$(timeout -k 5 120 "$start" -n 2 "$perf" put_lat -e 64 -n 5 --format json 2>/dev/null)
  checks=$((checks + 1))
  python3 -c '
import json, sys
all = json.load(sys.stdin)
assert all["platform"] == sys.argv[1] and all["version"] and all["machine"] and all["pes"] == "2", all
rows = all["results"]
assert [r["bytes"] for r in rows] == [8, 16, 32, 64], rows
for r in rows:
    assert r["samples"] == 5 and 0 < r["min_us"] <= r["median_us"] <= r["p99_us"] <= r["p999_us"] <= r["max_us"] and r["route"] == "direct", r
    assert (r["emulated"] == "emulated") == (sys.argv[1] == "host"), r
' "$gpu" <<<"$out" || wrong 'the JSON is not what it has to be'
fi
# What gnuplot is given: sizes as people write them, medians and p99 of times, bandwidths alone.
mkdir "$work/bin"
cat >"$work/bin/gnuplot" <<END
#!/bin/sh
cat >"$work/script"
file=\$(sed -n "s/^set output .\\(.*\\).\$/\\1/p" "$work/script")
echo png >"\$file"
END
chmod +x "$work/bin/gnuplot"
passes env PATH="$work/bin:$PATH" "$perf" put_lat get_lat --sizes 512,4k,1M -n 5 --plot "$work/times.png"
out=$(cat "$work/script")
says "^set xtics \\('512' 512, '4K' 4096, '1M' 1048576\\)\$"
says "title 'put_lat thread, median'.* title 'put_lat thread, p99'.* title 'get_lat thread, p99'"
holds 'not two curves for each test' [ "$(grep -c '^e$' <<<"$out")" = 4 ]
# The ninth series has the first one's colour, and points of its own; a barrier lies over the sizes of the others.
passes env PATH="$work/bin:$PATH" "$perf" barrier put_lat get_lat -s all --sizes 512,4k -n 3 --plot "$work/many.png"
out=$(cat "$work/script")
says "linecolor 1 linewidth 2 pointtype 7 title 'barrier thread, median'"
says "linecolor 1 linewidth 2 pointtype 5 title 'get_lat block, median'.* pointtype 4 dashtype 2 title 'get_lat block, p99'"
holds 'a barrier is drawn at a size' [ "$(awk '/^[0-9]/ {print $1} /^e$/ {exit}' <<<"$out" | xargs)" = '512 4096' ]
passes env PATH="$work/bin:$PATH" "$perf" put_bw --sizes 4k -n 5 --plot "$work/rates.png"
out=$(cat "$work/script")
says "title 'put_bw block'\$"
if command -v gnuplot >/dev/null; then
  passes "$perf" put_lat get_lat -e 1k -n 5 --plot "$work/it's \"one\".png"
  holds '--plot drew no PNG' [ "$(head -c 4 "$work/it's \"one\".png" | tail -c 3)" = PNG ]
else
  echo 'no gnuplot: --plot is not tried'
fi

finish
