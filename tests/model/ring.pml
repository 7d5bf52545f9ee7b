/* SPDX-License-Identifier: MIT */
/* The ring (include/xio/device/impl/ring.hpp) by exhaustion: every interleaving of POSTERS waves that post OPS batches of
 * 1 .. SLOTS slots each to a ring of DEPTH slots, and a device that consumes what was rung.
 *
 * Proved: a slot is never filled before its last entry was consumed; a doorbell covers only complete entries, each
 * exactly once; no entry is lost and nobody waits for ever (an entry that is never rung leaves a poster in its last
 * wait, which spin reports as an invalid end state); credits never exceed the depth, and when all posters are done there
 * is no ringer, all tickets were rung for, and the credits are those that the tickets leave.
 *
 * Rings differ in these, each 0 or 1:
 *   LEAF     posting waits for nothing: without room the kernel waits, and posts again (else it waits for credits itself)
 *   FAILS    the device may report a failure, or do nothing any more, and every wait may end by the deadline
 *   SERIAL   ticket and packet number come from one word; both wrap here after WRAP tickets
 *   KEPT     a completion names the first slot of an entry, and the ring keeps how many slots that has
 *   ALONE    one thread posts and waits, without credits and marks (POSTERS is 1)
 *
 * One step here is one atomic access there, under sequential consistency; docs/ordering.md names the judges of acquire
 * and release. A mark's ticket has 8 bits here and 47 there, and neither comes
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
#ifndef LEAF
#define LEAF 1
#endif
#ifndef FAILS
#define FAILS 0
#endif
#ifndef SERIAL
#define SERIAL 0
#endif
#ifndef KEPT
#define KEPT 0
#endif
#ifndef ALONE
#define ALONE 0
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
byte failed = 0; /* 1: the device said so, 2: a deadline has passed */
#if SERIAL
#define WRAP (START + 2)
#define NUMBERS 16
byte serial = START; /* tickets modulo WRAP, and above them numbers modulo NUMBERS */
byte packets = 0;    /* of all tickets so far */
#endif
/* A batch's mark, at its first slot: its ticket + 1, and how many slots it has. */
#if BROKEN == 6 /* 6: a fresh ring looks marked */
byte marked[DEPTH] = START + 1;
byte length[DEPTH] = 1;
#else
byte marked[DEPTH];
byte length[DEPTH];
#endif
#if KEPT
bit kept[DEPTH]; /* it is no mark, but the length of the entry that begins there */
#define IS_MARK(t) (marked[AT(t)] == t + 1 && (BROKEN == 14 || !kept[AT(t)])) /* 14: a length is taken for a mark */
#else
#define IS_MARK(t) (marked[AT(t)] == t + 1)
#endif

/* what the device sees */
byte slots[DEPTH];   /* ticket + 1 of a whole entry; 0: none, or half written */
bit last[DEPTH];     /* the entry asks for a completion */
byte doorbell = START;
byte fence = START;  /* completions, as the device writes them */
byte consumed = START;
bit broken = 0;      /* it has failed, and says so */
#if KEPT
#define COUNTERS (4 * DEPTH) /* a completion's counter is modulo that */
byte entry[DEPTH];           /* at the first slot of an entry: how many slots it has */
byte counter = (START - 1) % COUNTERS;
#endif
byte done = 0;       /* posters */

/* Locals that are dead are set to 0, or equal states would look different. */

/* ring_fail */
inline fail(why) {
  if
  :: failed == 0 -> failed = why
  :: else
  fi
}

#if KEPT
/* mlx5_codec::drain_collapsed: from .. to is complete */
inline look() {
  atomic { /* the oldest entry's length, loaded before it is known whether it is wanted */
    i = marked[AT(from)];
    seen = length[AT(from)]
  };
  atomic {
    bad = broken;
    to = fence; /* which the counter must give */
    t2 = from + ((counter + COUNTERS - (from % COUNTERS)) % COUNTERS)
  };
  if
  :: t2 - from >= COUNTERS - SLOTS -> /* one that was seen before */
    atomic { assert(to == from); t2 = 0; i = 0; seen = 0 }
  :: else ->
    if
#if BROKEN == 13 /* 13: does not ask whose length it is */
    :: t2 == from -> skip
#else
    :: t2 == from && i == t2 + 1 -> skip
#endif
    :: else ->
      atomic {
        if
        :: marked[AT(t2)] == t2 + 1 -> seen = length[AT(t2)]
        :: else -> seen = entry[AT(t2)]
        fi
      }
    fi;
    atomic { assert(to == t2 + seen); t2 = 0; i = 0; seen = 0 }
  fi
}
#else
inline look() {
  atomic { to = fence; bad = broken }
}
#endif

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
    got = 0;
    look();
    if
    :: bad -> atomic { bad = 0; fail(1) }
    :: else
    fi;
    assert(to <= issued); /* what is complete has been taken */
    completed = to;
    atomic {
#if !ALONE
      credits = credits + (to - from);
      assert(credits <= DEPTH);
#endif
      from = 0;
      to = 0
    };
    reaping = 0
  :: else
  fi
}

/* A waiter that drains finds something. */
#define NEWS ((fence != completed || (broken && failed == 0)) && !reaping)

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
    :: atomic { !lone && IS_MARK(to) -> to = to + length[AT(to)] }
    :: atomic { !lone && !IS_MARK(to) -> break }
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

#if BROKEN == 3 /* 3: off by one */
#define HAS_ROOM (credits >= n - 1)
#else
#define HAS_ROOM (credits >= n)
#endif

#if LEAF
/* find_room: bad, if the ring has failed. There was room, but it may be gone. */
inline wait_credits() {
  do
#if BROKEN == 11 /* 11: waits for room alone */
  :: atomic { HAS_ROOM -> break }
  :: atomic { !HAS_ROOM && NEWS -> skip }; reap()
#else
  :: atomic { failed != 0 -> bad = 1; break }
  :: atomic { failed == 0 && HAS_ROOM -> break }
  :: atomic { failed == 0 && !HAS_ROOM && NEWS -> skip }; reap()
#if FAILS
  :: atomic { !HAS_ROOM -> fail(2); bad = 1; break }
#endif
#endif
  od
}
#else
/* ring_wait_credits: takes what it waited for */
inline wait_credits() {
  do
  :: atomic { failed != 0 -> bad = 1; break }
  :: atomic { failed == 0 && HAS_ROOM -> skip };
    atomic {
      had = HAS_ROOM;
      credits = credits - n;
      if
      :: had -> had = 0; break
      :: else
      fi
    }
    credits = credits + n
  :: atomic { failed == 0 && !HAS_ROOM && NEWS -> skip }; reap()
#if FAILS
  :: atomic { !HAS_ROOM -> fail(2); bad = 1; break }
#endif
  od
}
#endif

inline try_turn() {
  atomic {
    mine = (pending == 0);
    if
    :: mine -> pending = 1
    :: else
    fi
  }
}

/* ring_take_credits, and what follows where there are none: credits, and the turn; or bad */
inline take_credits() {
  do
  :: 
#if FAILS
    bad = (failed != 0);
#endif
    atomic { had = HAS_ROOM; credits = credits - n };
#if BROKEN != 7
    try_turn();
#endif
    if
    :: had && !bad -> had = 0; break
    :: else ->
      had = 0;
      credits = credits + n;
#if BROKEN != 9 && BROKEN != 10 /* 9, 10: the ringer waits for credits, or leaves */
      if
      :: mine -> atomic { mine = 0; from = published; to = from }; serve()
      :: else
      fi;
#endif
      if
      :: bad -> break
      :: else -> wait_credits()
      fi;
      if
      :: bad -> break
#if LEAF
      :: else
#else
      :: else -> mine = 0; break
#endif
      fi
    fi
  od
}

/* ring_take_tickets */
inline take_tickets() {
#if SERIAL
  atomic { /* one fetch-add */
    seen = serial;
    before2 = packets;
    serial = (serial + n + p * WRAP) % (WRAP * NUMBERS);
    packets = packets + p
  };
  atomic {
    t = completed + ((seen + WRAP - (completed % WRAP)) % WRAP);
    assert((seen / WRAP + NUMBERS - (t / WRAP) % NUMBERS) % NUMBERS == before2 % NUMBERS);
    seen = 0;
    before2 = 0
  };
#if BROKEN == 12 /* 12: the count is stored, and not raised */
  issued = t + n;
#else
  do
  :: atomic { issued >= t + n -> break }
  :: atomic { issued < t + n -> issued = t + n; break } /* a compare-exchange that failed looks again */
  od;
#endif
#else
  atomic { t = issued; issued = issued + n };
#endif
}

inline mark() {
  atomic {
    marked[AT(t)] = t + 1;
    length[AT(t)] = n
#if KEPT
    ; kept[AT(t)] = 0
#endif
  }
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
#if KEPT
  if
  :: whole = 1
#if SLOTS > 1
  :: n > 1 -> whole = 0 /* an entry for each slot; the last one asks for a completion */
#endif
  fi;
  atomic { /* ring_keep_length */
    i = (whole -> t : t + n - 1);
    marked[AT(i)] = i + 1;
    length[AT(i)] = (whole -> n : 1);
    kept[AT(i)] = 1;
    i = 0
  };
#endif
  atomic {
    slots[AT(t)] = t + 1;
    last[AT(t)] = (n == 1);
    slots[AT(t + n - 1)] = t + n;
    last[AT(t + n - 1)] = 1
#if KEPT
    ;
    entry[AT(t + n - 1)] = 1;
    entry[AT(t)] = (whole -> n : 1);
    if
    :: whole -> last[AT(t)] = 1
    :: else
    fi;
    whole = 0
#endif
  }
}

#if ALONE
/* ring_post_alone */
inline post() {
  atomic { t = issued; bad = (failed != 0) };
  do
  :: bad -> break
#if BROKEN == 15 /* 15: forgets what it is about to take */
  :: !bad && t - completed <= DEPTH -> break
  :: !bad && t - completed > DEPTH ->
#else
  :: !bad && t + n - completed <= DEPTH -> break
  :: !bad && t + n - completed > DEPTH ->
#endif
    if
    :: atomic { failed != 0 -> bad = 1 }
    :: atomic { failed == 0 && NEWS -> skip }; atomic { reaping = 1; from = completed }; look();
      if
      :: bad -> fail(1)
      :: else
      fi;
      completed = to;
      reaping = 0;
      atomic { from = 0; to = 0 }
#if FAILS
    :: atomic { failed == 0 -> fail(2); bad = 1 }
#endif
    fi
  od;
  if
  :: bad
  :: else ->
    fill();
    issued = t + n;
    published = t + n;
    atomic { from = t; to = t + n };
    ring_doorbell();
    atomic { from = 0; to = 0 }
  fi
}
#else
/* ring_post_batch */
inline post() {
  take_credits();
  if
  :: bad
  :: else ->
#if SERIAL
    if
    :: p = 1
    :: p = 2
    fi;
#endif
#if BROKEN == 7 /* 7: the turn begins after the tickets were taken */
    take_tickets();
    try_turn();
    before = published;
#else
    before = published;
    take_tickets();
#endif
#if SERIAL
    p = 0;
#endif
#if BROKEN == 1 /* 1: counts before it marks */
    fill(); count(); mark();
#elif BROKEN == 4 /* 4: marks before it fills */
    mark(); fill(); count();
#else
    fill(); publish();
#endif
  fi
}
#endif

/* OPS batches, and ring_quiet. A batch that is refused ends them. */
active [POSTERS] proctype poster() {
  byte ops = 0, n = 1, t, i, seen, from, to;
  byte before;
#if SERIAL
  byte p, before2;
#endif
#if KEPT
  byte t2;
  bit whole;
#endif
  bit had, got, mine, lone, bad;
  do
  :: ops < OPS ->
    if
    :: n = 1
#if SLOTS > 1
    :: n = 2
#endif
    fi;
    post();
    atomic {
      if
      :: bad -> ops = OPS; bad = 0
      :: else -> ops++
      fi;
      t = 0;
      n = 1
    }
  :: else -> break
  od;
  t = issued;
  do
  :: atomic { completed >= t || failed != 0 -> break }
  :: atomic { completed < t && failed == 0 && NEWS -> skip }; reap()
#if FAILS
  :: atomic { completed < t -> fail(2); break }
#endif
  od;
  atomic {
    done++;
    if
    :: done == POSTERS ->
      assert(pending == 0);        /* nobody left as the ringer */
      assert(doorbell == issued);  /* what was taken was rung for, failure or not */
#if !ALONE
      assert(credits == DEPTH - (issued - completed))
#endif
    :: else
    fi
  }
}

active proctype device() {
  byte at;
end:
  do
  :: consumed != doorbell && !broken ->
    atomic {
      at = AT(consumed);
      assert(slots[at] == consumed + 1);
#if KEPT
      if
      :: last[at] -> counter = consumed % COUNTERS; fence = consumed + entry[at]
      :: else
      fi;
      consumed = consumed + entry[at];
#else
      if
      :: last[at] -> fence = consumed + 1
      :: else
      fi;
      consumed++;
#endif
      at = 0
    }
#if FAILS
  :: consumed != doorbell && !broken -> broken = 1
  :: break /* it does nothing any more, and says nothing */
#endif
  od
}
