// SPDX-License-Identifier: MIT
// What a ctx is in memory: the structures that the host fills (src/ctx, src/transport) and device code
// reads. Plain data, the same layout for every compiler; sizes and offsets are asserted. No functions.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xio::dev {

// --- The ring ----------------------------------------------------------------------------------------

enum class ring_kind : std::uint32_t {
  none = 0,
  mlx5 = 1,
  sdma = 2,
  nvme = 3,
  bnxt = 4,
  ionic = 5,
  ernic = 6,
  proxy = 7
};

// Words that the device changes. Each group on lines of its own, so that posters, the ringer, the reaper and
// readers of errors do not fight over one. Tickets have 62 bits and never wrap; slot = ticket & (depth-1).
struct alignas(128) ring_state {
  alignas(128) std::uint64_t issued;  // next ticket to hand out
  std::uint64_t serial;               // bnxt: next ticket and next PSN in one word, see bnxt.hpp
  std::uint64_t first;                // nvme: requests of tickets below are of a storage that was here before
  alignas(128) std::int64_t credits;  // free slots; may dip below 0 for a moment
  alignas(
      128) std::uint32_t pending;  // 0: nobody rings; else 1 for the ringer and 1 for each batch since, see ring.hpp
  struct wait_note* note;          // where waits for it are noted, or null
  alignas(128) std::uint64_t published;  // every ticket below was covered by a doorbell; ringer only
  std::uint64_t doorbells;               // doorbells rung; ringer only
  alignas(128) std::uint64_t completed;  // every ticket below is complete; and two flags, see below
  std::uint64_t cq_head;                 // CQEs consumed (rings with a CQ of their own index)
  std::uint64_t cq_announced;            // last CQ head told to the device
  std::uint64_t cq_doorbells;            // how often its doorbell register was written
  std::uint64_t granted;                 // nvme: tickets below may be taken, credits were given for them; reaper only
  std::uint32_t kept_back;               // nvme: free slots that are not credits yet, see nvme.hpp; reaper only
  alignas(128) std::uint32_t failed;     // 0, or the xio_status of the first failure: the ring refuses work
  std::uint32_t vendor;                  // the device's own code of that failure
  std::uint64_t failed_ticket;           // the op that failed; later ones were flushed. nvme: the last that failed
  std::uint64_t failed_at;               // wall_clock() of that; 0 where the host has stopped the ring
  alignas(128) std::uint64_t ops;        // user ops posted (statistics)
  std::uint64_t bytes;                   // payload bytes posted (statistics)
  std::uint64_t op_errors;               // ops that completed with an error of their own (rings out of order)
};
static_assert(sizeof(ring_state) == 7 * 128);
// The bits of ring_state::completed that are no part of the count: somebody drains; and nvme's, see nvme.hpp.
constexpr std::uint64_t k_reaping = std::uint64_t{1} << 63;
constexpr std::uint64_t k_even = std::uint64_t{1} << 62;

// Where a drive's addresses mean something: software drives have a space of their own, and so has each IOMMU domain,
// numbered as drives are opened (src/ctx/engines.hpp).
enum class bus_space : std::uint16_t { software = 0, first = 1 };
constexpr std::uint32_t k_bus_spaces = 14;
constexpr std::uint32_t k_usual_spaces = 2;  // of which kernels load the addresses with the rest of a row

// --- What an engine's rings have besides the head ---
// Addresses are as kernels see them, unless the field says otherwise. A word that the device reads or writes is named
// in the format of its codec (mlx5.hpp, sdma.hpp, nvme.hpp ...), which is the only one that touches it.

// The atomics that a NIC has besides 8-byte compare-swap and fetch-add. The others are done by compare-swap in a loop.
enum nic_atomics : std::uint16_t {
  nic_masked = 1,        // 8-byte masked forms: or, and, xor, set in one entry
  nic_native_4 = 2,      // 4-byte masked forms
  nic_four_in_eight = 4  // 4-byte ops may be a compare-swap of the 8 bytes around: nobody's change of the other half
                         // can be lost
};

// ConnectX (mlx5.hpp).
struct mlx5_ring {
  std::uint32_t* doorbell_record;  // the send queue's word of it; null: the queue pair has none
};
// Broadcom (bnxt.hpp).
struct bnxt_ring {
  std::uint64_t* msn_table;    // depth << table_log2 entries: the packet numbers of each entry
  std::uint64_t* cq_doorbell;  // register for the CQ's consumer index
  std::uint32_t cq_id;         // the CQ's number, of 20 bits
  std::uint16_t path_mtu;      // payload bytes of one packet, a power of two
  std::uint8_t unit;  // what doorbells and MSN entries count for an entry: 1 in static mode, 8 in variable mode
  std::uint8_t table_log2;
};
// AMD Pensando (ionic.hpp).
struct ionic_ring {
  std::uint64_t* cq_doorbell;  // register for the CQ's consumer index; null with the collapsed CQE
  std::uint32_t cq_id;         // the CQ's number, of 24 bits
  std::uint32_t version;       // of the firmware's interface: 1 or 2
};
// AMD's emulated NIC (ernic.hpp).
struct ernic_ring {
  std::uint32_t* indices;    // head and tail of the send queue, which the doorbell says to read
  std::uint32_t slots_lkey;  // of the slots themselves, out of which the NIC takes what travels in an entry
};

// A queue pair that is made when the first op goes there, see dormant.hpp.
struct dormant_pair {
  std::uint32_t* ask;      // a word in host memory, see there
  struct ring_view* ring;  // null; the queue pair's own view once it is connected
  struct ctx_view* ctx;
};

// A queue pair to one peer. Entries of the proxy (proxy.hpp) need nothing else.
struct rdma_ring {
  std::uint64_t remote_heap;   // address of the peer's heap, as its NIC sees it
  std::uint32_t remote_key;    // its rkey
  std::uint32_t scratch_lkey;  // of ctx_view::scratch, where results of fetching ops go
  std::uint32_t inline_bytes;  // most bytes that one lane's put carries in its entry
  std::uint32_t gather_bytes;  // most bytes that a wave's merged put carries in one entry; 0: none are merged
  std::uint32_t depth_log2;    // of ring_view::depth, for entries and doorbells that name their lap
  std::uint16_t nic;           // which of region_view::lkey
  std::uint16_t atomics;       // bits of nic_atomics
  std::uint64_t* doorbell;     // register of the send queue; ernic: its low 32 bits alone; proxy: none
  unsigned char* completions;  // the completion queue; or the one entry, or words, that each completion overwrites
  std::uint32_t cq_depth;      // entries of the completion queue, a power of two; 0: there is none
  std::uint32_t cq_depth_log2;
  union {
    std::uint64_t family_words[3];  // all of the below, to be cleared or copied
    mlx5_ring mlx5;
    bnxt_ring bnxt;
    ionic_ring ionic;
    ernic_ring ernic;
    dormant_pair dormant;
  };
};
static_assert(sizeof(rdma_ring) == 80);

// A queue of a copy engine (sdma.hpp).
struct sdma_completion;
struct sdma_ring {
  std::uint64_t* doorbell;       // register for the write pointer, in bytes since the queue was made
  std::uint64_t* write_pointer;  // the same in memory, for the firmware
  sdma_completion* completion;   // where FENCE packets write
  std::uint32_t generation;      // of the engine's packets, see wire/sdma.hpp
  std::uint16_t granule;         // what addresses and lengths of copies are multiples of: 1 or 4 bytes; loads and
                                 // stores move the rest
  std::uint16_t least_slots;     // slots that are posted at least at once: 1 or 4
};

// A submission queue of a drive's namespace with its completion queue (nvme.hpp). Commands complete out of order.
struct nvme_ring {
  std::uint32_t* sq_doorbell;  // register for the SQ's tail; null where a host thread writes it
  std::uint32_t* cq_doorbell;  // where the CQ's head is written: the register, or the word that the host thread watches
  std::uint32_t* shadow_tail;  // the SQ's tail in memory; null where the registers are written directly
  std::uint32_t* tail_event;   // the tail from which on the drive wants its register written; null where nobody says so
  unsigned char* completions;  // the CQ
  std::uint64_t* op_words;     // one per command id, and behind them those of what failed
  unsigned char* list_pages;   // room for the longest PRP list per command id, or null where SGLs name the data
  std::uint64_t list_pages_bus;  // its address as the drive sees it
  std::uint32_t name_space;      // the namespace's id
  std::uint32_t cq_depth;        // entries of the CQ, a power of two
  std::uint32_t op_count;        // command ids, a power of two, >= 4 * depth
  std::uint8_t cq_depth_log2, op_count_log2;
  bus_space space;  // in which the drive's addresses mean something
};
static_assert(sizeof(nvme_ring) == 80);

// A ring: first what ring*.hpp needs of every one, then the engine's part, by `kind`. Two lines of 64 bytes.
struct alignas(64) ring_view {
  ring_state* state;
  std::uint64_t* marks;  // per slot: which batch begins there and is complete, see ring_mark_of
  unsigned char* slots;  // the entries, which the device reads; how long one is says the codec
  std::uint32_t depth;   // slots, a power of two
  ring_kind kind;
  std::uint32_t id;     // the number by which its device, and messages, name it
  std::uint32_t index;  // place in the ctx's ring table, for xio_req_t
  std::uint32_t chunk;  // most payload bytes of one entry
  std::uint32_t alone;  // 1: one thread at a time posts and waits here; see ring_post_alone
  union {
    std::uint64_t engine_words[10];  // all of the below, to be cleared
    rdma_ring rdma;                  // mlx5, bnxt, ionic, ernic, proxy
    sdma_ring sdma;
    nvme_ring nvme;
  };
};
static_assert(sizeof(ring_view) == 128);
static_assert(offsetof(ring_view, rdma) == 48 && offsetof(ring_view, nvme) == 48);

// --- Peers, memory, storage --------------------------------------------------------------------------

// Ways from `excluded` on are none: the host has taken the PE out (xio_exclude). Bulk copies have the one above it, so
// that fences take the row for one of several ways, and look closer.
enum class route : std::uint8_t { none = 0, direct = 1, rdma = 2, sdma = 3, excluded = 4, excluded_bulk = 5 };

// One per PE of the world. The host changes the ways of a PE that is excluded, and where queue pairs lie that are made
// at first use, and nothing else, under kernels that run.
struct peer_view {
  unsigned char* direct;     // the peer's heap in this address space, or null
  route small;               // blocking, scalar and fetching ops
  route bulk;                // non-blocking copies of at least ctx_view::bulk_bytes
  route atomic;              // atomics and signals
  std::uint8_t by_engine;    // 1: `small` is an engine's, or was before the PE was excluded
  std::uint16_t rdma_count;  // queue pairs to that PE, a power of two; the workgroup chooses
  std::uint16_t sdma_count;  // copy queues for that PE, likewise
  ring_view* rdma;           // the first of them, or null
  ring_view* sdma;           // the first of them, or null
};
static_assert(sizeof(peer_view) == 32);

constexpr std::uint32_t k_max_nics = 4;

// Memory in several parts has no bus address of its own: this bit, which no bus address has, and below it an offset in
// a table, see bus_rows.hpp.
constexpr std::uint64_t k_in_runs = std::uint64_t{1} << 63;

// Local memory that engines may reach: the heap and what xio_mem_register added.
struct region_view {
  std::uint64_t base;
  std::uint64_t bytes;
  // Address of base as NVMe controllers of each space see it, or k_in_runs and an offset; 0: they do not see it.
  std::uint64_t bus[k_usual_spaces];
  std::uint32_t lkey[k_max_nics];
  std::uint32_t live;  // 0: empty row
  std::uint32_t unused;
  std::uint64_t rows;  // of bus[1], where it has k_in_runs: the word of its table
  // The same of the other spaces.
  std::uint64_t more_bus[k_bus_spaces - k_usual_spaces];
  std::uint64_t more_rows[k_bus_spaces - k_usual_spaces];
};
static_assert(sizeof(region_view) == 256);

// The abilities of a storage besides reading, writing and flushing whole blocks.
enum storage_feature : std::uint32_t {
  storage_compares = 1,
  storage_zeroes = 2,
  storage_apart = 4,    // no command: its members are of several spaces, each of its rings names its own
  storage_of_bytes = 8  // it takes wire::nvme::of_bytes: offsets, lengths and addresses are multiples of nothing
};

// One namespace, or several of equal shape with stripes that go round: stripe s lies on member s % members.
struct storage_view {
  ring_view* queues;          // of the first member, then of the next; every member has as many
  std::uint32_t queue_count;  // of all members together; the workgroup chooses among those of a member
  std::uint32_t members;
  std::uint64_t bytes;        // of all members together; the host lets it grow under kernels that run
  std::uint32_t block_bytes;  // a power of two
  std::uint32_t block_log2;
  std::uint32_t transfer_bytes;  // most bytes of one command (MDTS)
  std::uint32_t page_bytes;      // CC.MPS
  std::uint32_t slot;            // place in world_view::storages
  std::uint32_t live;            // the low half of the handle that is open here; 0: none
  std::uint16_t read_only;
  bus_space space;              // of the first member
  std::uint32_t features;       // bits of storage_feature, of every member
  std::uint32_t member_queues;  // queue_count / members
  std::uint32_t stripe_log2;    // of the bytes of a stripe, a multiple of the block; of one member any
};
static_assert(sizeof(storage_view) == 64);

constexpr std::uint32_t k_max_regions = 64;
constexpr std::uint32_t k_max_storages = 16;
constexpr std::uint32_t k_max_storage_queues = 64;
constexpr std::uint32_t k_max_storage_members = 8;
constexpr std::uint32_t k_barrier_rounds = 32;

// How what other devices wrote into this GPU's memory becomes visible to its kernels, see hdp.hpp.
enum class hdp_way : std::uint32_t { none = 0, device = 1, host = 2, sdma = 3, rdma_read = 4, readback = 5 };

struct hdp_view {
  std::uint32_t* flush;  // device: the flush register as kernels may store to it
  std::uint64_t* asked;  // host, readback: in host memory; kernels store the newest number that they have taken
  std::uint64_t* done;   // likewise; written by the progress thread: every number up to this is served
  hdp_way way;
  hdp_way storage;  // after writes of drives; differs from `way` where that works by a NIC
};
static_assert(sizeof(hdp_view) == 32);

// --- Calls that failed --------------------------------------------------------------------------------

// A call of a kernel, as xio_ctx_error names it. One kind stands for all forms of a call (_nbi, _wave, _wg).
enum class call_kind : std::uint32_t {
  none = 0,
  put,
  get,
  put_value,
  get_value,
  put_tile,
  get_tile,
  put_strided,
  get_strided,
  put_signal,
  signal_op,
  signal_fetch,
  put_counter,
  put_signal_counter,
  put_packet,
  test_packet,
  put_imm,
  test_imm,
  storage_read,
  storage_write,
  storage_compare,
  storage_write_zeroes,
  storage_sync,
  fence_pe,
  quiet_pe,
  ctx_create_wg,
  ctx_destroy_wg,
  test_until,
  team_call,  // of a team that is refused: see team_refusal.hpp
  // Waits, which can end by the deadline.
  wait_until,
  wait_until_all,
  wait_until_any,
  wait_until_some,
  signal_wait_until,
  wait_counter,
  wait_packet,
  imm_wait,
  team_wait,
  sync_all,
  queue_wait,  // of notes alone: a queue's own record says more
  // Of atomics: this and the amo, and 16 more where the old value is fetched.
  atomic = 64
};
constexpr std::uint32_t k_call_fetches = 16;

constexpr std::uint32_t k_no_pe = 0x80000000;  // PEs that calls name may be negative by mistake

// The last call of a ctx that failed. It stays until the next one.
struct call_record {
  std::uint64_t number;   // odd while a lane writes the rest; 0: no call has failed
  std::uint64_t clock;    // wall_clock() of the failure
  std::uint32_t status;   // an xio_status
  std::uint32_t kind;     // a call_kind
  std::uint32_t pe;       // the PE that the call named, or whose flag a barrier waited for; k_no_pe: none;
                          // of transfers: the low half of the storage's handle
  std::uint32_t compare;  // of waits: XIO_CMP_*, and k_compares_signed or k_compares_float
  std::uint64_t address;  // what the call named as symmetric, or the first word that was waited for; of transfers: the
                          // offset in the storage
  std::uint64_t local;    // the local buffer, 0 if there is none
  std::uint64_t bytes;    // of the copy, or of each word that was waited for
  std::uint64_t words;    // of waits: how many words
  std::uint64_t wanted;   // of waits: the value; of barriers: their number
  std::uint64_t found;    // of waits: what the first word held in the end; of barriers: the last number that came
                          // calls of teams: see team_refusal.hpp
};
static_assert(sizeof(call_record) == 80);
constexpr std::uint32_t k_compares_signed = 0x100;
constexpr std::uint32_t k_compares_float = 0x200;  // wanted and found are doubles

// --- Waits that last -----------------------------------------------------------------------------------

// A wait of a lane, which writes this down in each beat of the clock while it waits: see wait_note.hpp.
struct alignas(64) wait_note {
  std::uint32_t kind;       // a call_kind
  std::uint32_t pe;         // the PE that has to come, k_no_pe: it is not known
  std::uint32_t workgroup;  // of the lane
  std::uint32_t compare;    // as in call_record; of a queue: ring_view::index
  std::uint64_t since;      // deadline_clock() when the wait began
  std::uint64_t now;        // and when it was last written: a wait that has ended is not
  std::uint64_t address;    // as in call_record; of a queue: its ring_kind, and below that its id
  std::uint64_t wanted;     // as in call_record; of a queue: the ticket below which all have to be complete
  std::uint64_t found;      // likewise
  std::uint64_t check;      // now ^ address ^ k_note_mark: lanes that share a place may mix
};
static_assert(sizeof(wait_note) == 64);
constexpr std::uint64_t k_note_mark = 0x58494f2077616974;  // "XIO wait"
constexpr std::uint32_t k_wait_notes = 64;                 // places for them; a power of two
constexpr std::uint32_t k_queue_notes = 192;               // behind these: of queues, which have no check

// --- World and ctx -----------------------------------------------------------------------------------

// At the start of every PE's heap, before what xio_malloc hands out. Offsets are the same on every PE.
struct alignas(128) heap_head {
  // Dissemination barrier: in round r PE p writes the epoch to PE (p + 2^r) mod n.
  std::uint64_t barrier[k_barrier_rounds];
  // Flushes of the HDP read or write this line, see hdp.hpp. It holds no data.
  alignas(128) unsigned char hdp_line[128];
};

// Behind xio_world_shrink: the PEs among which barriers of all are now, by their numbers, and the words of the
// barrier's rounds in every heap. A later view has other words: a PE that was left out may still store to these.
struct living_view {
  std::uint64_t epoch;  // of the last barrier
  std::uint64_t words;  // offset in every heap
  const std::uint32_t* pes;
  std::uint32_t n, place;  // how many they are, and this PE's place among them
};

// Shared by every ctx of a world.
struct alignas(128) world_view {
  std::uint32_t my_pe;
  std::uint32_t n_pes;
  unsigned char* heap;  // own heap
  std::uint64_t heap_bytes;
  std::uint64_t ticks_per_ms;          // of wall_clock()
  std::uint64_t timeout_ticks;         // 0 = none
  const std::uint32_t* pe_states;      // in host memory, an xio_pe_life_t for each PE
  wait_note* waits;                    // in memory that other processes may read; null: there is none
  region_view regions[k_max_regions];  // row 0 is the heap
  storage_view storages[k_max_storages];
  hdp_view hdp;
  alignas(128) std::uint64_t barrier_epoch;
  living_view* living;                     // null until PEs have left, and when more have been excluded since
  alignas(128) std::uint64_t hdp_numbers;  // of requests to the HDP's progress thread, handed out so far
};

// Words of ctx_view::used. The last bit of the first one says that another word is not 0, so that one word tells
// whether any ring was used.
constexpr std::uint32_t k_used_words = 32, k_more_used = 31;

struct alignas(128) ctx_view {
  world_view* world;
  peer_view* peers;  // n_pes rows
  ring_view* rings;  // every RDMA and SDMA ring of this ctx
  std::uint32_t ring_count;
  std::uint32_t scratch_count;  // a power of two, or 0
  std::uint64_t* scratch;       // results of fetching RDMA ops, 8 bytes each, registered
  std::uint64_t* scratch_used;  // one bit per scratch word
  std::uint64_t bulk_bytes;     // non-blocking copies from here on take peer_view::bulk
  ctx_view* pool;               // contexts for xio_ctx_create_wg, or null
  std::uint64_t* pool_used;     // one bit per pool context
  std::uint32_t pool_count;
  std::uint32_t pool_index;          // place in the parent's pool; ~0 for a ctx created by the host
  std::uint64_t inboxes;             // offset in every heap of n_pes inboxes, by sender; shared with the pool
  std::uint32_t inbox_entries;       // of each; 0: there are none
  std::uint32_t flush_ring_count;    // of flush_rings
  ring_view* flush_rings;            // to oneself, for hdp_way::sdma (one) and rdma_read (one by each NIC at least)
  std::uint32_t ring_first;          // index of rings[0]: not 0 in a ctx that was recovered
  alignas(128) std::uint32_t error;  // first device-side error since the last quiet, an xio_status
  std::uint32_t storages_used;       // bit per slot of storage_errors that was ever not 0: quiet looks at one word
  // By storage: 0, or 1 + its failed ops that were reported to this ctx, or that were there before its first op on it.
  std::uint32_t storage_errors[k_max_storages];
  std::uint32_t
      stream_failed;      // 0, or the xio_status of the first call on a stream that failed: later ones end with it
  std::uint32_t one_way;  // 1: no PE has queues that ops to it could overtake each other on, so fences wait for none
  // A bit per ring, once anything was posted to it: waits visit no others. Where there are more rings than bits, those
  // at the end share the last word. The first word lies with `error`, for a quiet looks at both.
  std::uint32_t used[k_used_words];
  alignas(128) call_record failed_call;
};
static_assert(sizeof(ctx_view) == 512);

// ctx_view::ring_first of a ctx that was destroyed, or whose world was finalized: no request has a ring of that number.
// Its rings are two that refuse work with XIO_ERR_STATE, and its peers have no routes (src/ctx/graveyard.hpp).
constexpr std::uint32_t k_gone = 0x7fffffff;

// Bits of xio_ctx::flags.
enum ctx_flags : std::uint32_t {
  ctx_flushes_hdp = 1,  // world_view::hdp has a way
  ctx_all_mapped = 2,   // loads and stores are the way of all but bulk copies, to every PE
  ctx_has_holes = 4,    // a PE was excluded
};
// Above these bits: how long a wait for other PEs takes at most, in ms, where a call has a deadline of its own (calls
// on a stream); 0: the world's timeout, k_no_timeout: for ever. Queues keep the world's: one that times out stays
// failed.
constexpr std::uint32_t k_own_timeout_shift = 8;
constexpr std::uint32_t k_no_timeout = 0xffffff;

// A copy engine queue of xio/sdma.h. Of `world` only the clock and the timeout are set.
struct sdma_queue_view {
  ring_view ring;
  world_view* world;
};
static_assert(sizeof(sdma_queue_view) == 192);

}  // namespace xio::dev
