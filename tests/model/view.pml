/* SPDX-License-Identifier: MIT
 * How the members of a world decide on the next view (src/bootstrap/view.hpp): no two that live decide differently.
 * N members; BALLOTS ballots, which the members L0, L1, L2 lead. A message is a bit that stays set, so any may arrive
 * late, twice or never; a member may die at any point, and a leader has proofs of any part of the deaths.
 * BROKEN=1..3 are mistakes: 1 is found in two seconds, 3 in twenty; for 2, two and a half minutes were not enough. */
#ifndef N
#define N 4
#endif
#ifndef BALLOTS
#define BALLOTS 2
#endif
#ifndef L0
#define L0 1
#endif
#ifndef L1
#define L1 2
#endif
#ifndef L2
#define L2 0
#endif
#ifndef BROKEN
#define BROKEN 0
#endif
#define ALL ((1 << N) - 1)
#define has(s, p) (((s) >> (p)) & 1)
#define count(s) (has(s, 0) + has(s, 1) + has(s, 2) + has(s, 3))
#define quorum(s, b) ((((s) | dead(b)) == ALL) || 2 * count(s) > N || (2 * count(s) == N && has(s, 0)))

#if BROKEN == 1 /* proofs that came after the prepare count, too */
#define dead(b) (ALL & ~alive)
#else
#define dead(b) proven[b]
#endif
#if BROKEN == 2 /* a decision counts also for one that has promised a later ballot */
#define may_decide(p, b) true
#define leader_accepted(b) true
#else
#define may_decide(p, b) (promised[p] <= b + 1)
#define leader_accepted(b) (has(accepts[b], leader[b]))
#endif
#if BROKEN == 3 /* late messages of the proven dead are still heard */
#define hears(p, b) true
#else
#define hears(p, b) (!has(fence[p], leader[b]))
#endif

byte alive = ALL;
byte leader[BALLOTS], started[BALLOTS], proven[BALLOTS], promises[BALLOTS], accepts[BALLOTS];
byte proposed[BALLOTS];                /* 0: nothing yet */
byte best[BALLOTS], best_value[BALLOTS]; /* of the promises: the last ballot with a value, 99 for one that is decided */
byte promised[N], accepted[N], value[N], decided[N], fence[N]; /* ballots count from 1, 0 is none */
byte p, q, b, d;

inline check_all_alike() {
  p = 0;
  do
  :: p < N ->
     q = p + 1;
     do
     :: q < N ->
        assert(!(has(alive, p) && has(alive, q) && decided[p] && decided[q]) || decided[p] == decided[q]);
        q++
     :: else -> break
     od;
     p++
  :: else -> break
  od;
  q = 0
}

init {
  leader[0] = L0;
  leader[1] = L1;
#if BALLOTS > 2
  leader[2] = L2;
#endif
  do
  :: atomic { /* one dies */
       select(p : 0 .. N - 1);
       if
       :: has(alive, p) && alive != (1 << p) -> alive = alive & ~(1 << p)
       :: else
       fi;
       p = 0
     }
  :: atomic { /* prepare */
       select(b : 0 .. BALLOTS - 1);
       if
       :: has(alive, leader[b]) && !started[b] ->
          started[b] = 1; d = 0; p = 0;
          do
          :: p < N -> if :: !has(alive, p) -> d = d | (1 << p) :: true fi; p++
          :: else -> break
          od;
          proven[b] = d; d = 0
       :: else
       fi;
       p = 0; b = 0
     }
  :: atomic { /* promise */
       select(b : 0 .. BALLOTS - 1);
       select(p : 0 .. N - 1);
       if
       :: started[b] && has(alive, p) && promised[p] < b + 1 && hears(p, b) ->
          promised[p] = b + 1;
          fence[p] = fence[p] | proven[b];
          promises[b] = promises[b] | (1 << p);
          if
          :: decided[p] -> best[b] = 99; best_value[b] = decided[p]
          :: !decided[p] && accepted[p] > best[b] -> best[b] = accepted[p]; best_value[b] = value[p]
          :: else
          fi
       :: else
       fi;
       p = 0; b = 0
     }
  :: atomic { /* propose */
       select(b : 0 .. BALLOTS - 1);
       if
       :: has(alive, leader[b]) && started[b] && !proposed[b] && has(promises[b], leader[b]) && quorum(promises[b], b) ->
          if
          :: best[b] -> proposed[b] = best_value[b]
          :: else -> proposed[b] = promises[b]
          fi
       :: else
       fi;
       b = 0
     }
  :: atomic { /* accept */
       select(b : 0 .. BALLOTS - 1);
       select(p : 0 .. N - 1);
       if
       :: proposed[b] && has(alive, p) && promised[p] <= b + 1 && !has(accepts[b], p) && hears(p, b) ->
          promised[p] = b + 1; accepted[p] = b + 1; value[p] = proposed[b];
          accepts[b] = accepts[b] | (1 << p)
       :: else
       fi;
       p = 0; b = 0
     }
  :: atomic { /* the leader decides */
       select(b : 0 .. BALLOTS - 1);
       if
       :: proposed[b] && has(alive, leader[b]) && !decided[leader[b]] && quorum(accepts[b], b) &&
          may_decide(leader[b], b) && leader_accepted(b) ->
          decided[leader[b]] = proposed[b];
          check_all_alike();
          p = 0
       :: else
       fi;
       b = 0
     }
  :: atomic { /* its word arrives, from it or from another one that has it */
       select(b : 0 .. BALLOTS - 1);
       select(p : 0 .. N - 1);
       if
       :: proposed[b] && decided[leader[b]] == proposed[b] && quorum(accepts[b], b) && has(alive, p) && !decided[p] &&
          may_decide(p, b) && hears(p, b) ->
#if BROKEN != 2
          promised[p] = b + 1; accepted[p] = b + 1; value[p] = proposed[b];
#endif
          decided[p] = proposed[b];
          check_all_alike()
       :: else
       fi;
       p = 0; b = 0
     }
  od
}
