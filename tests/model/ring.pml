/* SPDX-License-Identifier: MIT */
/* The ring (include/xio/device/impl/ring.hpp) by exhaustion: every interleaving of POSTERS waves that post OPS batches of
 * 1 .. SLOTS entries each to a ring of DEPTH entries, and a device that consumes what was rung.
 *
 * Proved: a slot is never filled before its last entry was consumed; a doorbell covers only complete entries, each
 * exactly once; no entry is lost and nobody waits for ever (an entry that is never rung leaves a poster in its last
 * wait, which spin reports as an invalid end state); credits never exceed the depth.
 *
 * One step here is one atomic access there, under sequential consistency: that acquire and release suffice is for
 * ThreadSanitizer and tests/unit/ring_stress to say. A mark's ticket has 8 bits here and 47 there, and neither comes
 * round. Marks that are looked at together there are looked at in turn here: all looks come after the count that the
 * ringer compares with, so a wave that it counts is seen in any order. A loop that spins is a wait for what would end it.
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

#define START (2 * DEPTH)
#define AT(t) ((t) % DEPTH)

/* ring_state */
byte issued = START;
short credits = DEPTH;
byte pending = 0;
byte published = START;
bit reaping = 0; /* there the top bit of completed, whose count changes only while it is set */
byte completed = START;
/* A batch's mark, at its first slot: its ticket + 1, and how many slots it has. */
#if BROKEN == 6 /* 6: a fresh ring looks marked */
byte marked[DEPTH] = START + 1;
byte length[DEPTH] = 1;
#else
byte marked[DEPTH];
byte length[DEPTH];
#endif

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

/* ring_publish's first way and ring_serve: [from, to) is complete; lone: no ticket behind it had been taken when the
   turn began, the first way */
inline serve() {
  seen = 1;
  do
  :: if
    :: to != from ->
      ring_doorbell();
      published = to
    :: else
    fi;
    from = to;
    do
    :: atomic { lone -> lone = 0; break }
    :: atomic { !lone && marked[AT(to)] == to + 1 -> to = to + length[AT(to)] }
    :: atomic { !lone && marked[AT(to)] != to + 1 -> break }
    od;
    if
    :: to != from
    :: else ->
      atomic {
        if
#if BROKEN == 2 /* 2: leaves without looking whether somebody came */
        :: true -> pending = 0; seen = 0; from = 0; to = 0; break
#else
        :: pending == seen -> pending = 0; seen = 0; from = 0; to = 0; break
        :: else -> seen = pending
#endif
        fi
      }
    fi
  od
}

/* ring_wait_credits; waits for credits, or for completions that nobody drains */
inline wait_credits() {
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

inline try_turn() {
  atomic {
    mine = (pending == 0);
    if
    :: mine -> pending = 1
    :: else
    fi
  }
}

/* ring_take_credits: credits, and the turn */
inline take_credits() {
  atomic {
    had = (credits >= n);
#if BROKEN == 3
    had = (credits >= n - 1);
#endif
    credits = credits - n
  };
#if BROKEN != 7
  try_turn();
#endif
  if
  :: had -> had = 0
  :: else ->
    credits = credits + n;
#if BROKEN != 9 /* 9: the ringer waits for credits */
    if
    :: mine -> atomic { mine = 0; from = published; to = from }; serve()
    :: else
    fi;
#endif
    wait_credits()
  fi
}

inline mark() {
  atomic { marked[AT(t)] = t + 1; length[AT(t)] = n }
}

/* ring_publish without the mark of a waiter that is not next: serves, or counts and leaves the serving to the ringer. */
inline count() {
  if
  :: mine -> atomic { mine = 0; before = 0; lone = 0; from = published; to = from }; serve()
  :: else ->
    atomic { had = (pending != 0); pending++; before = 0; lone = 0 };
    if
    :: !had -> atomic { from = published; to = from }; serve()
    :: else -> had = 0
    fi
  fi
}

/* ring_publish */
inline publish() {
  if
#if BROKEN == 8 /* 8: the ringer does not ask what is before its own batch */
  :: mine ->
#else
  :: mine && before == t ->
#endif
    /* the first way */
    atomic { lone = 1; mine = 0; before = 0; from = t; to = t + n };
    serve()
  :: else -> mark(); count()
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

/* ring_post_batch, OPS times, and ring_quiet */
active [POSTERS] proctype poster() {
  byte ops = 0, n = 1, t, i, seen, from, to;
  byte before;
  bit had, got, mine, lone;
  do
  :: ops < OPS ->
    if
    :: n = 1
#if SLOTS > 1
    :: n = 2
#endif
    fi;
    take_credits();
#if BROKEN == 7 /* 7: the turn begins after the tickets were taken */
    atomic { t = issued; issued = issued + n };
    try_turn();
    before = published;
#else
    before = published;
    atomic { t = issued; issued = issued + n };
#endif
#if BROKEN == 1 /* 1: counts before it marks */
    fill(); count(); mark();
#elif BROKEN == 4 /* 4: marks before it fills */
    mark(); fill(); count();
#else
    fill(); publish();
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
