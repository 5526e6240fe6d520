/**
 * Writes the functions in C that divide the work of a module among threads. They do what those of `graph/wasm/slices.ts` do,
 * with POSIX's threads, since C cannot wake threads that wait in WebAssembly. The slices are the same, and so are the bits.
 *
 * `start_threads` starts helpers, and `stop_threads` ends them and waits for them. Without helpers, or before they have begun,
 * the thread that runs a program computes all slices.
 */
import { countBits, type Division } from "../graph/wasm/slices.ts"

/** Returns the functions, for a module whose coordinating memory is zeros when the first program runs. */
export const threadsIn = (division: Division): string =>
  [`#define CONTROL ${division.control}`, definitions, distributing(division), helping].join("\n")

const definitions = String.raw`
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#define COUNT_MASK ${(1 << countBits) - 1}u
#define SPINS 15000
#if defined(__x86_64__)
#define pause_briefly() __builtin_ia32_pause()
#else
#define pause_briefly() __asm__ volatile("" ::: "memory")
#endif

/* The helpers of one memory. All waiting threads wait for "changed". */
typedef struct { pthread_mutex_t lock; pthread_cond_t changed; int count; pthread_t threads[64]; } Team;
typedef struct { unsigned char *m; u32 number; } Helper;

/* Numbers in the memory, each with a cache line of its own. */
#define line(i) (m + CONTROL + 64 * (i))
#define ticket ((u64 *)line(0))
#define finished ((u32 *)line(1))
#define waiting ((u32 *)line(2))
#define sleepers ((u32 *)line(3))
#define ended ((u32 *)line(4))
#define queued ((u32 *)line(5))
#define team_of (*(Team **)line(6))
#define get(a) __atomic_load_n(a, __ATOMIC_SEQ_CST)
#define put(a, b) __atomic_store_n(a, b, __ATOMIC_SEQ_CST)
#define plus(a, b) __atomic_fetch_add(a, b, __ATOMIC_SEQ_CST)

/* Waits for a change as long as a condition holds; "count" tells other threads that one is asleep. */
#define sleep_while(team, count, condition) do { \
    pthread_mutex_lock(&(team)->lock); \
    plus(count, 1); \
    while (condition) pthread_cond_wait(&(team)->changed, &(team)->lock); \
    plus(count, -1); \
    pthread_mutex_unlock(&(team)->lock); \
  } while (0)

static void wake(Team *team) {
  pthread_mutex_lock(&team->lock);
  pthread_cond_broadcast(&team->changed);
  pthread_mutex_unlock(&team->lock);
}
`

const distributing = ({ awaitTurn, endTurn, fork, slice }: Division): string => String.raw`
/* Takes slices by decreasing their number in the ticket until none is left. */
static void take_slices(unsigned char *const m, u32 number) {
  for (;;) {
    u64 seen = get(ticket);
    const u32 left = (u32)seen & COUNT_MASK;
    if (left == 0) return;
    const u32 index = ((u32)seen >> ${countBits}) + left - 1;
    if (!__atomic_compare_exchange_n(ticket, &seen, seen - 1, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
    f${slice}(m, index, number);
    plus(finished, 1);
    if (get(waiting)) wake(team_of);
  }
}

static void f${fork}(unsigned char *const m, u32 group) {
  const u32 count = group & COUNT_MASK;
  Team *const team = team_of;
  put(finished, 0);
  put(ticket, ((get(ticket) >> 32) + 1) << 32 | group);
  if (get(sleepers)) wake(team);
  take_slices(m, 0);
  for (int tries = SPINS; tries > 0 && get(finished) != count; tries--) pause_briefly();
  if (get(finished) != count) sleep_while(team, waiting, get(finished) != count);
}

static void f${awaitTurn}(unsigned char *const m, u32 at, u32 turn) {
  u32 *const now = (u32 *)(m + at);
  for (int tries = SPINS; tries > 0 && get(now) != turn; tries--) pause_briefly();
  if (get(now) != turn) sleep_while(team_of, queued, get(now) != turn);
}

static void f${endTurn}(unsigned char *const m, u32 at, u32 next) {
  put((u32 *)(m + at), next);
  if (get(queued)) wake(team_of);
}
`

const helping = String.raw`
static void *help(void *given) {
  const Helper helper = *(Helper *)given;
  unsigned char *const m = helper.m;
  free(given);
  while (!get(ended)) {
    take_slices(m, helper.number);
    for (int tries = SPINS; tries > 0 && ((u32)get(ticket) & COUNT_MASK) == 0; tries--) pause_briefly();
    if (((u32)get(ticket) & COUNT_MASK) == 0)
      sleep_while(team_of, sleepers, ((u32)get(ticket) & COUNT_MASK) == 0 && !get(ended));
  }
  return NULL;
}

__attribute__((visibility("default"))) int start_threads(void *memory, int helpers) {
  unsigned char *const m = memory;
  Team *const team = calloc(1, sizeof(Team));
  if (team == NULL) return 0;
  pthread_mutex_init(&team->lock, NULL);
  pthread_cond_init(&team->changed, NULL);
  team_of = team;
  /* Signals are the business of other threads. */
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (int i = 0; i < helpers && i < 64; i++) {
    Helper *const helper = malloc(sizeof(Helper));
    if (helper == NULL) break;
    *helper = (Helper){m, (u32)i + 1};
    if (pthread_create(&team->threads[team->count], NULL, help, helper) == 0) team->count++;
    else { free(helper); break; }
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return team->count;
}

__attribute__((visibility("default"))) int stop_threads(void *memory) {
  unsigned char *const m = memory;
  Team *const team = team_of;
  if (team == NULL) return 0;
  put(ended, 1);
  wake(team);
  for (int i = 0; i < team->count; i++) pthread_join(team->threads[i], NULL);
  team_of = NULL;
  put(ended, 0);
  pthread_mutex_destroy(&team->lock);
  pthread_cond_destroy(&team->changed);
  free(team);
  return 0;
}
`
