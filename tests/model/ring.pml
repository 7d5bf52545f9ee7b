/* SPDX-License-Identifier: MIT */
/* The ring (include/xio/device/ring.hpp) by exhaustion: every interleaving of POSTERS waves that post OPS batches of
 * 1 .. SLOTS entries each to a ring of DEPTH entries, and a device that consumes what was rung.
 *
 * Proved: a slot is never filled before its last entry was consumed; a doorbell covers only complete entries, each
 * exactly once; no entry is lost and nobody waits for ever (an entry that is never rung leaves a poster in its last
 * wait, which spin reports as an invalid end state); credits never exceed the depth.
 *
 * One step here is one atomic access there, under sequential consistency: that acquire and release suffice is for
 * ThreadSanitizer and tests/unit/ring_stress to say. A lap's mark is one bit here and 32 bits there: if one bit that
 * wraps all the time is enough, 32 are. A loop that spins is a wait for what would end it.
 *
 * -DBROKEN=n makes a mistake that the proof must find; ring_pml.sh checks that it does. */

#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef POSTERS
#define POSTERS 3
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef SLOTS
#define SLOTS 1
#endif
#ifndef BROKEN
#define BROKEN 0
#endif

/* Marks start as 0; the first lap's is 1. */
#if BROKEN == 6 /* 6: the marks of a fresh ring look like this lap's */
#define START DEPTH
#else
#define START (2 * DEPTH)
#endif
#define LAP(t) ((((t) / DEPTH) + 1) % 2)
#define AT(t) ((t) % DEPTH)

/* ring_state */
byte issued = START;
short credits = DEPTH;
byte pending = 0;
byte published = START;
bit reaping = 0;
byte completed = START;
bit sequence[DEPTH];

/* what the device sees */
byte slots[DEPTH];   /* ticket + 1 of a whole entry; 0: none, or half written */
bit last[DEPTH];     /* the entry asks for a completion */
byte doorbell = START;
byte fence = START;  /* completions, as the device writes them */
byte consumed = START;

/* Locals that are dead are set to 0, or equal states would look different. */

/* ring_reap */
inline reap() {
  atomic {
#if BROKEN == 5 /* 5: everybody drains */
    got = 1;
#else
    got = !reaping;
#endif
    if
    :: got -> reaping = 1; from = completed
    :: else
    fi
  }
  if
  :: got ->
    atomic { to = fence; got = 0 };
    completed = to;
    atomic {
      credits = credits + (to - from);
      assert(credits <= DEPTH);
      from = 0;
      to = 0
    };
    reaping = 0
  :: else
  fi
}

/* ring_take_credits; waits for credits, or for completions that nobody drains */
inline take_credits() {
  do
  :: atomic {
      had = (credits >= n);
#if BROKEN == 3 /* 3: off by one */
      had = (credits >= n - 1);
#endif
      credits = credits - n;
      if
      :: had -> had = 0; break
      :: else
      fi
    }
    credits = credits + n;
    atomic {
      (credits >= n || (fence != completed && !reaping));
      had = (fence != completed)
    };
    if
    :: had -> had = 0; reap()
    :: else
    fi
  od
}

/* sdma_codec::announce and the like */
inline ring_doorbell() {
  atomic {
    assert(doorbell == from); /* none twice, none left out */
    assert(to - from <= DEPTH);
    i = from;
    do
    :: i < to ->
      assert(slots[AT(i)] == i + 1); /* complete, and of this lap */
      i++
    :: else -> break
    od;
    doorbell = to;
    i = 0
  }
}

/* ring_announce */
inline announce() {
  atomic { had = (pending != 0); pending++ }
  if
  :: !had ->
    seen = 1;
    do
    :: atomic { from = published; to = from };
      do
      :: atomic { sequence[AT(to)] == LAP(to) -> to++ }
      :: atomic { sequence[AT(to)] != LAP(to) -> break }
      od;
      if
      :: to != from ->
        ring_doorbell();
        published = to
      :: else
      fi;
      atomic {
        from = 0;
        to = 0;
        if
#if BROKEN == 2 /* 2: leaves without looking whether somebody came */
        :: true -> pending = 0; seen = 0; break
#else
        :: pending == seen -> pending = 0; seen = 0; break
        :: else -> seen = pending
#endif
        fi
      }
    od
  :: else -> had = 0
  fi
}

/* Private slots until they are marked: one step in the middle is enough. */
inline fill() {
  atomic {
    assert(consumed + DEPTH > t + n - 1); /* the slots are free */
    slots[AT(t)] = 0;
    slots[AT(t + n - 1)] = 0
  };
  atomic {
    slots[AT(t)] = t + 1;
    last[AT(t)] = (n == 1);
    slots[AT(t + n - 1)] = t + n;
    last[AT(t + n - 1)] = 1
  }
}

inline mark() {
  sequence[AT(t)] = LAP(t);
  if
  :: n == 2 -> sequence[AT(t + 1)] = LAP(t + 1)
  :: else
  fi
}

/* ring_post_batch, OPS times, and ring_quiet */
active [POSTERS] proctype poster() {
  byte ops = 0, n = 1, t, i, seen, from, to;
  bit had, got;
  do
  :: ops < OPS ->
    if
    :: n = 1
#if SLOTS > 1
    :: n = 2
#endif
    fi;
    take_credits();
    atomic { t = issued; issued = issued + n };
#if BROKEN == 1 /* 1: counts before it marks */
    fill(); announce(); mark();
#elif BROKEN == 4 /* 4: marks before it fills */
    mark(); fill(); announce();
#else
    fill(); mark(); announce();
#endif
    atomic { ops++; t = 0; n = 1 }
  :: else -> break
  od;
  t = issued;
  do
  :: atomic { completed >= t -> break }
  :: atomic { completed < t && fence != completed && !reaping -> skip }; reap()
  od
}

active proctype device() {
  byte at;
end:
  do
  :: consumed != doorbell ->
    atomic {
      at = AT(consumed);
      assert(slots[at] == consumed + 1);
      if
      :: last[at] -> fence = consumed + 1
      :: else
      fi;
      consumed++
    }
  od
}
