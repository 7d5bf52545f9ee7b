/* SPDX-License-Identifier: MIT */
/* Completions in any order (include/xio/device/impl/nvme.hpp) by exhaustion: POSTERS threads that post OPS commands each
 * to a queue of DEPTH slots with IDS command ids, and a drive that completes what it has fetched in any order, and lets
 * at most FAULTS commands fail; eight commands at most. How entries come into the ring and are rung for is ring.pml's matter, and one step here.
 *
 * Proved: a slot is not written before the drive has fetched its last entry; a command id is not taken again before its
 * last completion was retired (the drain keeps credits back for that); a completion is counted for the ticket that it is
 * of; the low mark passes complete commands only; no command is reported as well that failed, nor as failed that was
 * well, unless the error log has forgotten a failure of its row; the drive always has room in the completion queue in
 * the end, and nobody waits for ever.
 *
 * One step is one atomic access, under sequential consistency. -DBROKEN=n makes a mistake that the proof must find. */

#ifndef DEPTH
#define DEPTH 3
#endif
#ifndef IDS
#define IDS 3
#endif
#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef OPS
#define OPS 3
#endif
#ifndef FAULTS
#define FAULTS 1
#endif
#ifndef BROKEN
#define BROKEN 0
#endif
#define CQ 4 /* entries of the completion queue */

#define ID(t) ((t) % IDS)
#define WORD(t, bad) (((t) / IDS + 1) * 2 + (bad)) /* nvme_codec::done_word */
#define IS_DONE(t, word) ((word) / 2 == (t) / IDS + 1)

/* ring_state */
byte issued = 0;
byte credits = DEPTH - 1;
bit reaping = 0;
byte low = 0; /* with `even` the rest of ring_state::completed */
bit even = 1;
byte cq_head = 0;
byte granted = DEPTH - 1;
byte kept_back = 0;
byte op_errors = 0;
byte op_word[IDS];

/* failure_word, of as many rows as ids, which names one lap before the last: lap + 1, or 0; that lap; something forgotten */
byte log_lap[IDS];
bit log_before[IDS];
bit log_forgotten[IDS];

/* the drive, and what only the proof knows */
byte fetched = 0;
byte cq_ticket[CQ];
bit cq_bad[CQ];
byte cq_tail = 0;
byte announced = 0; /* the drive may write entries below announced + CQ */
bit busy[IDS];
bit is_complete[8];
bit is_bad[8];
bit retired[8];
#define IS_WITH_DRIVE(t) (t < fetched && !is_complete[t])
byte faults = 0;

/* slots_owed::give */
inline give() { /* in an atomic step: the words are the draining thread's, but for the credits */
#if BROKEN == 1 /* 1: keeps nothing back */
    credits = credits + count;
    count = 0;
#else
    k = (count < room -> count : room);
    credits = credits + k;
    count = count - k;
    room = room - k;
    k = 0;
#endif
    assert(credits <= DEPTH - 1)
}

/* record_failure; failure_word::with */
inline record() {
  atomic {
    if
    :: log_lap[ID(at)] != 0 ->
      if
      :: at / IDS == log_lap[ID(at)] -> /* the lap before */
#if BROKEN != 5 /* 5: forgets without a trace */
        log_forgotten[ID(at)] = log_forgotten[ID(at)] | log_before[ID(at)];
#endif
        log_before[ID(at)] = 1
      :: else ->
        log_forgotten[ID(at)] = (BROKEN != 5);
        log_before[ID(at)] = 0
      fi
    :: else
    fi;
    log_lap[ID(at)] = at / IDS + 1
  };
  op_errors++
}

/* nvme_codec::poll; ends the turn */
inline drain() {
  atomic {
    issue = issued;
    if
    :: even -> head = low; count = 0; room = IDS - (DEPTH - 1); well = 1
    :: else -> head = cq_head; count = kept_back; room = low + IDS - granted; well = (op_errors == 0)
    fi;
    first = head;
    known = 1
  };
  if
  /* one command alone, which was well: it leaves no op word */
  :: atomic { even && issue - low == 1 && cq_tail != head && !cq_bad[head % CQ] && cq_ticket[head % CQ] == low &&
              (head + 1) % (CQ / 2) != 0 ->
      assert(is_complete[low]);
      busy[ID(low)] = 0;
      retired[low] = 1;
      credits++
    };
    low = low + 1
  :: else ->
    do
    :: atomic { cq_tail != head && head - first < CQ ->
        at = low + ((ID(cq_ticket[head % CQ]) + IDS - ID(low)) % IDS);
        bad = cq_bad[head % CQ];
        assert(at == cq_ticket[head % CQ]); /* ticket_of */
        assert(!IS_DONE(at, op_word[ID(at)]));
        known = known && at < issue;
        well = well && !bad
      };
      if
#if BROKEN == 3 /* 3: nothing in the error log */
      :: bad -> op_errors++
#else
      :: bad -> record()
#endif
      :: else
      fi;
      atomic { op_word[ID(at)] = WORD(at, bad); busy[ID(at)] = 0; retired[at] = 1 };
      atomic {
        count++;
        give();
        head++;
        if
        :: head % (CQ / 2) == 0 -> announced = head
        :: else
        fi;
        at = 0;
        bad = 0
      }
    :: else -> break
    od;
    if
    :: head == first
    :: else ->
      atomic { /* only the thread that drains has these */
        cq_head = head;
        if
#if BROKEN == 4 /* 4: does not ask of which tickets the completions are */
        :: issue - low == head - first -> at = issue
#else
        :: known && issue - low == head - first -> at = issue
#endif
        :: else ->
#if BROKEN == 2 /* 2: counts completions of any order */
          at = low + head - first
#else
          at = low;
          do
          :: IS_DONE(at, op_word[ID(at)]) -> at++
          :: else -> break
          od
#endif
        fi;
        room = room + at - low;
        if
        :: count != 0 -> give()
        :: else
        fi;
        kept_back = count;
        granted = at + IDS - room
      };
      atomic {
        even = (well && head == at);
        low = at
      }
    fi
  fi;
  atomic { head = 0; first = 0; count = 0; room = 0; well = 0; known = 0; issue = 0; at = 0; reaping = 0 }
}

/* nvme_codec::wait, of ticket t */
inline await() {
  do
  ::
    atomic { got = !reaping; reaping = 1; mark = low };
    seen = op_word[ID(t)];
    if
    :: t < mark && !IS_DONE(t, seen) -> seen = op_word[ID(t)] /* it may have been loaded before the low mark */
    :: else
    fi;
    if
    :: IS_DONE(t, seen) -> verdict = 1 + seen % 2
    :: !IS_DONE(t, seen) && t < mark ->
      /* failure_in */
      if
      :: op_errors == 0 -> verdict = 1
      :: else ->
        atomic {
          if
          :: log_lap[ID(t)] <= t / IDS -> verdict = 1
          :: log_lap[ID(t)] == t / IDS + 1 -> verdict = 2
          :: log_lap[ID(t)] == t / IDS + 2 -> verdict = 1 + log_before[ID(t)]
          :: log_lap[ID(t)] > t / IDS + 2 -> verdict = (log_forgotten[ID(t)] -> 3 : 1)
          fi
        }
      fi
    :: else
    fi;
    if
    :: verdict != 0 ->
      atomic {
        assert(retired[t]);                    /* it is complete, and was taken off */
        assert(verdict != 1 || !is_bad[t]);    /* no failure is lost */
        assert(verdict != 2 || is_bad[t]);     /* none is made up; 3: not known */
        verdict = 0;
        mark = 0;
        seen = 0;
        if
        :: got -> reaping = 0
        :: else
        fi;
        got = 0
      };
      break
    :: else
    fi;
    mark = 0;
    seen = 0;
    if
    :: got -> got = 0; drain()
    :: else
    fi;
    atomic { (cq_tail != cq_head || even && cq_tail != low || t < low || IS_DONE(t, op_word[ID(t)])) && !reaping -> skip }
  od
}

active [POSTERS] proctype poster() {
  byte ops = 0, t, mine = 255;
  byte issue, head, first, count, room, at, k, mark, seen, verdict;
  bit got, well, known, bad;
  do
  :: ops < OPS ->
    do
    :: atomic { credits > 0 -> credits--; break }
    :: atomic { credits == 0 && !reaping && cq_tail != (even -> low : cq_head) -> reaping = 1 }; drain()
    od;
    atomic {
      t = issued;
      assert(t - fetched < DEPTH); /* its slot has been fetched */
      assert(!busy[ID(t)]);        /* its id is idle */
      busy[ID(t)] = 1;
      issued++;
      ops++
    };
    if
    :: mine == 255 -> mine = t /* asks later */
    :: await()
    fi;
    t = 0
  :: else -> break
  od;
  if
  :: mine != 255 -> t = mine; await()
  :: else
  fi
}

active proctype drive() {
  byte t;
end:
  do
  :: atomic { fetched < issued -> fetched++ }
  :: atomic { cq_tail < fetched && cq_tail - announced < CQ ->
      if
      :: IS_WITH_DRIVE(0) -> t = 0
      :: IS_WITH_DRIVE(1) -> t = 1
      :: IS_WITH_DRIVE(2) -> t = 2
      :: IS_WITH_DRIVE(3) -> t = 3
      :: IS_WITH_DRIVE(4) -> t = 4
      :: IS_WITH_DRIVE(5) -> t = 5
      :: IS_WITH_DRIVE(6) -> t = 6
      :: IS_WITH_DRIVE(7) -> t = 7
      fi;
      is_complete[t] = 1;
      if
      :: true
      :: faults < FAULTS -> faults++; is_bad[t] = 1
      fi;
      cq_ticket[cq_tail % CQ] = t;
      cq_bad[cq_tail % CQ] = is_bad[t];
      cq_tail++;
      t = 0
    }
  od
}
