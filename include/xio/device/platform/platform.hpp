// SPDX-License-Identifier: MIT
// What HIP, CUDA and the host say in different words, one file each: scoped atomics, fences, lanes of a wave, where a
// thread is, clock, pause, wide stores. Everything above is written once, in these words.
//
// Macros.
//   XIO_DEVICE          before a function of a GPU: always inlined
//   XIO_CONVERGENT      the same, where it depends on which lanes came together
//   XIO_HOST_DEVICE     of both
//   XIO_OUT_OF_LINE     for what is long and called from many places, and waits for an engine anyway: one copy per
//                       program
//   XIO_IN_LINE_BY_NEW  in line by compilers that keep large kernels right, out of line by others
//   XIO_LEAF            a function out of line that calls nothing: it has no frame
//   XIO_SLOW_PATH       for what an op does when it cannot be done by loads and stores
//   XIO_GIVEN(type)     a structure that a function out of line takes
//   XIO_INLINE_LAMBDA   for lambdas that go into such calls
//   XIO_SHARED(T, x)    memory of a workgroup: XIO_SHARED(int, total); then use total
//   XIO_UNROLL          before a loop whose arrays must stay in registers
//   XIO_ROLLED          before one whose copies would only take room
//   XIO_HAS_BULK_COPY   set where there is a bulk copy unit (bulk::copy)
//   XIO_HOST_PASS       set while code for the host is made, also of device code
#pragma once
#if __cplusplus <= 201703L
#error "XIO's device headers need C++20: compile with -std=c++20"
#endif

#include "xio/device/platform/words.hpp"
#include "xio/status.h"

#if defined(__HIPCC__) || defined(__HIP__)
#define XIO_ON_HIP 1
#elif defined(__CUDACC__)
#define XIO_ON_CUDA 1
#else
#define XIO_ON_HOST 1
#endif
#include "xio/device/platform/macros.hpp"

#if !defined(__HIP_DEVICE_COMPILE__) && !defined(__CUDA_ARCH__)
#define XIO_HOST_PASS 1
#endif

namespace xio::dev {

// --- Scoped atomics ----------------------------------------------------------------------------------
// Of agent and system scope on memory of the device; of workgroup scope on any.

template <scope S, order O, class T>
XIO_DEVICE T load(const T* p);
template <scope S, order O, class T>
XIO_DEVICE void store(T* p, T value);
template <scope S, order O, class T>
XIO_DEVICE T exchange(T* p, T value);
// Compares bit patterns. On failure `expected` becomes the value found.
template <scope S, order O, class T>
XIO_DEVICE bool compare_exchange(T* p, T& expected, T desired);
template <scope S, order O, class T>
XIO_DEVICE T fetch_add(T* p, T value);
template <scope S, order O, class T>
XIO_DEVICE T fetch_and(T* p, T value);
template <scope S, order O, class T>
XIO_DEVICE T fetch_or(T* p, T value);
template <scope S, order O, class T>
XIO_DEVICE T fetch_xor(T* p, T value);
// Adds, and nobody waits for what was there: a fetch_add where that makes no difference.
template <scope S, order O, class T>
XIO_DEVICE void add(T* p, T value);

template <scope S, order O>
XIO_DEVICE void fence();
// Several accesses that share one fence: loads, then fence_after_loads; fence_before_stores, then stores. They have the
// orders k_acquire_by_fence and k_release_by_fence, which are relaxed where the fence orders them.
template <scope S>
XIO_DEVICE void fence_after_loads();
template <scope S>
XIO_DEVICE void fence_before_stores();

// --- Doorbells ---------------------------------------------------------------------------------------

// Writes a register of a device, of 4 or 8 bytes, behind all that the thread has written or seen before (a release of
// system scope). Each call arrives at the device once, and those of a thread in their order, though other lanes ring
// the same register at the same time. A store does not promise that: those of one instruction to one address are one
// write of one lane's value, and those of one compute unit may be merged until it waits (docs/ordering.md, Doorbells).
// On AMD the promise is for the lanes of a wave: waves that may ring at the same time want registers of their own.
template <class T>
XIO_DEVICE void ring_doorbell(T* at, T value);
// Behind an entry that no doorbell announces. On the host platform it wakes a device of software that sleeps, as
// ring_doorbell does; on GPUs it is nothing, since no store of theirs wakes a thread, and such devices do not sleep.
XIO_DEVICE void wake_devices();

// --- Registers and addresses -------------------------------------------------------------------------

// The same pointer, and the compiler may know that it is neither to memory of a workgroup nor of a thread. Accesses
// that could be to any need more instructions, atomics above all.
template <class T>
XIO_DEVICE T* in_device_memory(T* p);
// Whether it is such a pointer, where that costs one instruction and a copy by a function that does not know it
// takes 1.4 to 1.7 times as long (H200). Elsewhere false.
XIO_DEVICE bool lies_in_device_memory(const void* p);
// The same address of a word to which one lane of a wave adds, and the compiler does not know that lanes share it. LLVM
// would add up first what the lanes add to an address that they have in common, by a loop of a dozen instructions that
// brings a lone lane nothing.
template <class T>
XIO_DEVICE T* lone_word(T* p);
// A field of a view that the host wrote before the kernel began, and that all lanes that are here read at one address.
template <class T>
XIO_DEVICE T view_field(const T& at);
// The same address, or value, for all lanes that are here, where they have the same, and the compiler may know.
template <class T>
XIO_DEVICE const T& uniform(const T& at);
XIO_DEVICE u32 uniform_value(u32 value);
// In a leaf, from its beginning on: the address to which it returns stays in its registers. A compiler that uses these
// for other things, too, keeps the address in memory meanwhile. Crowded: the leaf needs nearly all scalar registers.
template <bool Crowded = false>
class return_kept;
// The same address, of which the compiler may not know: what lies there is read again. All lanes have the same.
template <class T>
XIO_DEVICE const T& again(const T& at);
// Whether the caller has come with the first lane's address; everywhere true where lanes go by themselves. Behind such
// a branch uniform() is what all have: if the compiler saw the comparison itself, it would put each lane's own address
// in its place.
template <class T>
XIO_DEVICE bool is_first_lanes(const T& at);
// Bit i of a mask; of 32 and above none is set.
XIO_DEVICE bool bit_of(u32 mask, u32 i);
// Keeps the compiler from using the loaded value, and so from waiting for it, before this point of the program.
XIO_DEVICE void not_before(u32& loaded);
// Keeps the compiler from making the value later than here, where that is worth something.
XIO_DEVICE void not_after(u64& value);

// How an op holds what it reads many times: held<T>, by value or by reference.

// --- Where am I --------------------------------------------------------------------------------------

// Linear index of the calling thread in its workgroup, the workgroup's size, and its index in the grid.
XIO_DEVICE u32 thread_in_workgroup();
XIO_DEVICE u32 workgroup_size();
XIO_DEVICE u32 workgroup_index();
XIO_DEVICE void sync_workgroup();
// The same, and whether any of its threads said true; k_barrier_votes where that costs no more.
XIO_DEVICE bool sync_workgroup_any(bool mine);
// Before a barrier of the workgroup behind which one wave releases, at system scope, what all of them wrote.
XIO_DEVICE void before_shared_release();

// --- Waves -------------------------------------------------------------------------------------------

XIO_DEVICE u32 lane_id();
XIO_DEVICE u32 wave_size();
XIO_DEVICE u32 popcount(u64 bits);
// Index of the lowest set bit; bits must not be 0.
XIO_DEVICE u32 lowest_bit(u64 bits);

// lanes.hpp is made of these. The lanes of a mask are of one wave; all of them call.
XIO_DEVICE void sync_lanes(u64 mask);
XIO_DEVICE u64 ballot_of(u64 mask, bool predicate);
XIO_DEVICE u64 shuffle_in(u64 mask, u64 value, u32 from);
XIO_DEVICE u64 first_in(u64 mask, u64 value);                  // the value of the mask's lowest lane
XIO_DEVICE u32 lanes_before(u64 mask);                         // how many lanes of the mask are below the caller
XIO_CONVERGENT u64 converged_mask();                           // the lanes that are here with the caller
XIO_CONVERGENT u64 same_key_mask(u64 key);                     // and gave the same key
XIO_CONVERGENT bool group_mask(u64 key, u32 kind, u64* mask);  // see joins_group
XIO_DEVICE u64 wave_mask();                                    // all of the wave
// Where k_keys_take_turns, groups of different keys run one after another; found by the value that a lane holds.
XIO_DEVICE u64 value_of_lane(u64 value, u32 from);

// --- Time --------------------------------------------------------------------------------------------

// A clock that runs at the same rate everywhere on the device; its rate is in the ctx (ticks per ms).
XIO_DEVICE u64 wall_clock();
// The same for deadlines: on the host platform it leaves out what wall_clock() counts while the process is stopped.
XIO_DEVICE u64 deadline_clock();
// One turn of a waiting loop: gives the memory system and the other waves some air.
XIO_DEVICE void pause();
// Before a look at what others change, in a loop of the caller's own perhaps: lets the lanes run that share the
// caller's thread, which would not come to their part of it by themselves. Nothing where the machine's lanes do
// (docs/ordering.md, Loops of one's own).
XIO_DEVICE void give_way();
// The same after a wait of `waited`; k_pauses_grow where that makes a difference.
XIO_DEVICE void pause_after(u64 waited, u64 now);

// --- Wide moves --------------------------------------------------------------------------------------

// By 16-byte stores, where the platform has them (vec16).
XIO_DEVICE void store_entry(void* slot, const entry64& e);

// Where `good` only: words of system scope, relaxed where fences order them; 0 for what is not loaded. By predicates
// where the platform has them (k_has_predicates), so that nothing waits for a branch.
XIO_DEVICE void store_word_if(bool good, u64* at, u64 value);
template <class T>
XIO_DEVICE T load_word_if(bool good, const T* at);
// An ordinary load of 8 bytes, of any memory.
XIO_DEVICE u64 load_any_if(bool good, const void* at);

// Memory of any type as a Word: the compiler must not assume that a Word and a float never overlap.
template <class Word>
XIO_DEVICE Word load_as(const unsigned char* p);
template <class Word>
XIO_DEVICE void store_as(unsigned char* p, Word v);
// Likewise what a peer may have changed, past the caches that do not see that; and N words, `stride` bytes apart, of
// which k_past_caches_together are under way at once.
template <class Word>
XIO_DEVICE Word load_past_caches(const unsigned char* p);
template <u32 N, class Word>
XIO_DEVICE void load_words_past_caches(Word (&v)[N], const unsigned char* p, u64 stride);

// Two words side by side, 16-byte aligned, each of them whole; in one access where there is one (k_has_pairs).
XIO_DEVICE void store_pair(u64* at, u64 a, u64 b);
XIO_DEVICE void store_pair_if(bool good, u64* at, u64 a, u64 b);
XIO_DEVICE void load_pair(const u64* at, u64& a, u64& b);

// --- Numbers of two bytes ----------------------------------------------------------------------------

// IEEE binary16; to the nearest, ties to even.
XIO_DEVICE float float_of_half(u16 bits);
XIO_DEVICE u16 half_of_float(float value);

// --- What suits the machine --------------------------------------------------------------------------
//   k_stores_follow_loads   no store is made before a load or an atomic on which it depends has returned: a thread that
//                           passes on what it has loaded needs no release
//   k_lone_lanes_apart      what lanes do together is dear for a lane that is alone: it has code of its own
//   k_splits_copies         the threads of a group share a copy, word by word; else one of them does it all
//   k_in_flight             loads of a copy that are under way before the first store needs its value
//                           (docs/performance.md); k_odd_in_flight of what is not aligned,
//                           k_alone_in_flight of one thread where a function copies for it
//   k_looks_together        words that one look takes, where there are many to look at
//   k_watches_by_fence      words that peers change are watched by relaxed loads and one fence; else each load acquires
//   k_connects_late         the host may make queue pairs while kernels run (XIO_CONNECT)
//   k_has_hdp               kernels may have to flush a host data path
//   k_pauses_at_once        even the first turns of a waiting loop must give way
//   k_beat_log2             of the ticks of wall_clock() between two notes of a wait that lasts, 30 to 45 ms;
//                           k_noted_log2: of those at the beginning of each in which a wait for a queue is noted
//   k_wave_ops_sync         finding the whole wave, and votes and shuffles of it, sync its lanes besides
//   k_lanes_fence_as_one    a fence by all lanes of a wave takes as long as one lane's
//   k_adds_floats           there is fetch_add_float(T* at, T operand), of system scope
//   k_indexes_arguments     a kernel's arguments can be indexed without a copy of them in memory
//   k_reads_bytes_by_words  aligned words around bytes are read, rather than the bytes one by one
//   k_looks_under_way       loads of a flag that are under way in turn
//   k_polls_in_line         looks at a flag in front of the loops, for what is one look: a flag that comes over a link
//                           comes within eight. Without a loop around them nothing counts, yields or jumps between two
//                           looks, nor on the way out (docs/performance.md)

}  // namespace xio::dev

// That of the platform says something, the others nothing.
#include "xio/device/platform/cuda.hpp"
#include "xio/device/platform/hip.hpp"
#include "xio/device/platform/host.hpp"
#include "xio/device/platform/plain.hpp"
