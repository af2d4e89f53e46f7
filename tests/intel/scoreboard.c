/* tests/intel/scoreboard.c - whether an instruction waits, by what its braces say, for those before
   it that have not finished: arithmetic within a block of instructions without a branch, messages
   along every path.

   Arithmetic of one pipe finishes in order: X@n waits until the n-th last instruction of pipe X
   has. Messages take a token: $n.dst waits until the message that took it has written its result,
   $n.src until it has read its operands; whoever takes the token again waits, too. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/intel/registers.h"

/* So many instructions of a pipe later a result is there without a wait. */
static const int latency[] = {
    [INTEGER_PIPE] = 11, [FLOAT_PIPE] = 11, [LONG_PIPE] = 15, [MATH_PIPE] = 18};
enum { PIPES = MATH_PIPE + 1, RECENT = 18 };

bool intel_is_send(const intel_ins *i) { return !strncmp(i->name, "send.", 5); }

static bool overlap(const intel_range *a, const intel_range *b) {
  return a->from < b->to && b->from < a->to;
}

typedef struct {
  intel_range at[INTEL_RANGES];
  int n;
} uses;

/* Whether a range of b of that kind overlaps one of a of that kind. */
static bool meets(const uses *a, bool a_writes, const uses *b, bool b_writes, uint32_t limit) {
  for (int k = 0; k < a->n; k++)
    for (int j = 0; j < b->n; j++)
      if (a->at[k].writes == a_writes && b->at[j].writes == b_writes && a->at[k].from < limit &&
          overlap(&a->at[k], &b->at[j]))
        return true;
  return false;
}

static uses uses_of(const intel_ins *i) {
  uses u;
  u.n = intel_ranges(i, u.at);
  return u;
}

static bool report(const intel_kernel *k, int before, int now, const char *what, char *error,
                   size_t size) {
  snprintf(error, size,
           "pvc, %s, at 0x%x, \"%s\": it %s at 0x%x, \"%s\", and does not wait for that", k->name,
           k->ins[now].pc, k->ins[now].text, what, k->ins[before].pc, k->ins[before].text);
  return false;
}

/* ---- arithmetic ---- */

typedef struct {
  int ins[PIPES][RECENT]; /* the last first; waited for: -1 */
  int n[PIPES];
} recent;

static void wait_for_pipes(recent *r, const intel_scoreboard *w) {
  if (!w->pipe) return;
  for (int p = INTEGER_PIPE; p < PIPES; p++)
    if (w->pipe == ALL_PIPES || w->pipe == p)
      for (int d = w->distance; d <= r->n[p]; d++) r->ins[p][d - 1] = -1;
}

static void enter(recent *r, int pipe, int now) {
  int n = r->n[pipe] < latency[pipe] ? r->n[pipe] + 1 : latency[pipe];
  memmove(r->ins[pipe] + 1, r->ins[pipe], (size_t)(n - 1) * sizeof(int));
  r->ins[pipe][0] = now;
  r->n[pipe] = n;
}

/* A byte is written together with the other one of its word. */
static bool shares_word(const uses *before, const uses *now) {
  for (int k = 0; k < before->n; k++)
    for (int j = 0; j < now->n; j++) {
      const intel_range *a = &before->at[k], *b = &now->at[j];
      if (a->writes && b->writes && b->bytes && a->from / 2 <= (b->to - 1) / 2 &&
          b->from / 2 <= (a->to - 1) / 2)
        return true;
    }
  return false;
}

/* Accumulators and flags are read after earlier writes without a wait. */
static const char *conflict(const uses *before, const uses *now, bool same_pipe) {
  if (meets(before, true, now, false, INTEL_ACC)) return "reads what is written";
  if (shares_word(before, now)) return "writes a byte of a word that is written";
  if (same_pipe) return NULL;
  if (meets(before, true, now, true, UINT32_MAX)) return "overwrites what is written";
  return meets(before, false, now, true, UINT32_MAX) ? "overwrites what is read" : NULL;
}

/* Whether what stands behind it never follows. */
static bool ends_here(const intel_ins *i) {
  return (i->run == intel_run_jump || i->run == intel_run_goto) && !i->predicate;
}

static bool check_arithmetic(const intel_kernel *k, const uses *all, char *error, size_t size) {
  recent r = {0};
  for (int now = 0; now < k->n_ins; now++) {
    const intel_ins *i = &k->ins[now];
    int pipe = intel_pipe_of(i);
    if (now && ends_here(&k->ins[now - 1])) memset(r.n, 0, sizeof r.n);
    wait_for_pipes(&r, &i->wait);
    for (int p = INTEGER_PIPE; p < PIPES; p++)
      for (int d = 0; d < r.n[p]; d++) {
        int before = r.ins[p][d];
        const char *what = before < 0 ? NULL : conflict(&all[before], &all[now], p == pipe);
        if (what) return report(k, before, now, what, error, size);
      }
    if (pipe) enter(&r, pipe, now);
  }
  return true;
}

/* ---- messages: sets of those whose result is not there (written), and of operands that may still
   be read (read), at the beginning of each block. Bit 2 k is message k and its address, bit 2 k + 1
   its data ---- */

typedef struct {
  const intel_kernel *k;
  const uses *all;
  const bool *begins;
  int n, words;             /* messages with tokens; words of a set */
  int *message;             /* their instructions */
  int *block;               /* of an instruction: the first one of its block */
  int *number;              /* of an instruction, or -1 */
  uint64_t *of_token;       /* sets */
  uint64_t *written, *read; /* a set for each instruction that begins a block */
  uint64_t *now_written, *now_read;
  /* Of a join, on the thread's path: what may stand open where the thread arrives without active
     channels; and what may where it then goes on with those that wait there: what stood open where
     they left, and what was sent on the way from there. */
  uint64_t *idle_written, *idle_read, *left_written, *left_read;
  /* Along the path that the thread takes, for instructions that do not heed the mask; else along
     the path of each channel: what others do in their own branch meets other bytes. */
  bool physical;
  char *error;
  size_t size;
} messages;

static uint64_t *set(const messages *m, uint64_t *sets, int k) {
  return sets + (size_t)k * (size_t)m->words;
}
static void remove_token(const messages *m, int token, uint64_t *from) {
  const uint64_t *s = m->of_token + (size_t)token * (size_t)m->words;
  for (int w = 0; w < m->words; w++) from[w] &= ~s[w];
}

/* Whether a later message of the same unit, for the same channels, reads or overwrites all of what
   the earlier one reads: whoever waits for it then waits for both. */
static bool takes_over(const uses *now, const intel_range *read, const intel_ins *i,
                       const intel_ins *before) {
  bool all = false;
  for (int k = 0; k < now->n; k++)
    all |= now->at[k].from <= read->from && read->to <= now->at[k].to;
  return all && i->predicate == before->predicate && i->inverted == before->inverted &&
         i->all == before->all;
}

/* Whoever waits for a message waits for the reads of those of the same unit before it in its block,
   as one unit reads in order; but not if the wait stands between the two. */
static void remove_earlier(messages *m, int token, int now) {
  const uint64_t *of_token = m->of_token + (size_t)token * (size_t)m->words;
  for (int w = 0; w < m->words; w++)
    for (uint64_t left = m->now_read[w] & of_token[w]; left; left &= left - 1) {
      int number = (64 * w + __builtin_ctzll(left)) / 2, last = m->message[number];
      const intel_ins *i = &m->k->ins[last];
      for (int n = number - 1; !i->predicate && n >= 0; n--) {
        int before = m->message[n];
        if (m->block[before] != m->block[last]) break;
        bool between = m->block[now] == m->block[last] && before < now && now <= last;
        if (!between && !strcmp(m->k->ins[before].name, i->name))
          m->now_read[n / 32] &= ~(3ull << 2 * (n % 32));
      }
    }
}

static bool wait_and_check(messages *m, int now) {
  const intel_ins *i = &m->k->ins[now];
  for (int t = 0; t < INTEL_TOKENS; t++) {
    if (!((i->wait.wait_written | i->wait.wait_read) >> t & 1) && i->wait.token != t) continue;
    remove_earlier(m, t, now);
    bool written = (i->wait.wait_written >> t & 1) || i->wait.token == t;
    if (written) remove_token(m, t, m->now_written);
    remove_token(m, t, m->now_read);
  }
  bool counts = !m->physical || i->all;
  for (int w = 0; w < m->words; w++) {
    for (uint64_t left = counts ? m->now_written[w] : 0; left; left &= left - 1) {
      int before = m->message[(64 * w + __builtin_ctzll(left)) / 2];
      const char *what = NULL;
      if (meets(&m->all[before], true, &m->all[now], false, UINT32_MAX))
        what = "reads what is loaded";
      if (meets(&m->all[before], true, &m->all[now], true, UINT32_MAX))
        what = "overwrites what is loaded";
      if (i->message.kind == SIGNAL && intel_is_send(i) && m->k->ins[before].message.kind == FENCE)
        what = "signals a barrier after the fence";
      if (what) return report(m->k, before, now, what, m->error, m->size);
    }
    for (uint64_t left = m->now_read[w]; left; left &= left - 1) {
      int operand = 64 * w + __builtin_ctzll(left), before = m->message[operand / 2];
      const uses *u = &m->all[before];
      const uses read = {.at = {u->at[operand % 2]}, .n = operand % 2 < u->n};
      if (!strcmp(m->k->ins[before].name, i->name)) { /* one unit reads in order */
        if (takes_over(&m->all[now], &read.at[0], i, &m->k->ins[before]))
          m->now_read[w] &= ~(left & -left);
      } else if (counts && meets(&read, false, &m->all[now], true, UINT32_MAX))
        return report(m->k, before, now, "overwrites what is read", m->error, m->size);
    }
  }
  if (m->number[now] >= 0) {
    int w = m->number[now] / 32, bit = 2 * (m->number[now] % 32);
    m->now_written[w] |= 1ull << bit;
    m->now_read[w] |= 3ull << bit;
  }
  return true;
}

/* Adds what stands open now, of `only` (NULL: all), to the sets of an instruction. */
static bool merge(messages *m, int at, uint64_t *written, uint64_t *read,
                  const uint64_t *only_written, const uint64_t *only_read) {
  uint64_t *w_set = set(m, written, at), *r_set = set(m, read, at);
  bool more = false;
  for (int w = 0; w < m->words; w++) {
    const uint64_t new_written = m->now_written[w] & (only_written ? only_written[w] : ~0ull),
                   new_read = m->now_read[w] & (only_read ? only_read[w] : ~0ull);
    more |= (new_written & ~w_set[w]) || (new_read & ~r_set[w]);
    w_set[w] |= new_written;
    r_set[w] |= new_read;
  }
  return more;
}

/* The instructions that may follow: for a channel those where it goes on, for the thread those
   where it does. */
static int followers(const messages *m, int at, int *to) {
  const intel_ins *i = &m->k->ins[at];
  int n = 0;
  if (intel_is_send(i) && i->message.kind == END) return 0;
  if (!ends_here(i) && at + 1 < m->k->n_ins) to[n++] = at + 1;
  if (i->run == intel_run_goto) /* at the join where they wait, channels come back */
    to[n++] = !m->physical ? i->uip : i->jip == i->uip ? i->jip + 1 : i->jip;
  if (i->run == intel_run_jump || (i->run == intel_run_join && m->physical)) to[n++] = i->jip;
  return n;
}

/* The thread goes from one instruction to another; falls: to the next one. Where it jumps to a join
   at which its own channels do not wait, none is active. */
static bool arrive(messages *m, int at, int to, bool falls) {
  const intel_ins *i = &m->k->ins[at];
  const bool idle = m->physical && !falls && to == i->jip && m->k->ins[to].run == intel_run_join &&
                    (i->run == intel_run_join || (i->run == intel_run_goto && i->uip != to));
  if (!idle) return merge(m, to, m->written, m->read, NULL, NULL);
  const bool more = merge(m, to, m->idle_written, m->idle_read, NULL, NULL);
  return merge(m, to, m->written, m->read, set(m, m->left_written, to), set(m, m->left_read, to)) ||
         more;
}

static void add_idle(messages *m, int at) {
  for (int w = 0; w < m->words; w++) {
    m->now_written[w] |= set(m, m->idle_written, at)[w];
    m->now_read[w] |= set(m, m->idle_read, at)[w];
  }
}

/* Adds the messages on the thread's ways from a goto to the join where its channels wait. */
static bool add_between(messages *m, int from, int to) {
  int next[3], n = 0, *todo = malloc((size_t)m->k->n_ins * sizeof *todo);
  bool *seen = calloc((size_t)m->k->n_ins, sizeof *seen);
  const bool good = todo && seen;
  if (good) todo[n++] = from;
  while (n) {
    const int at = todo[--n];
    for (int f = followers(m, at, next) - 1; f >= 0; f--) {
      if (next[f] == to || seen[next[f]]) continue;
      const int number = m->number[next[f]];
      seen[todo[n++] = next[f]] = true;
      if (number < 0) continue;
      set(m, m->left_written, to)[number / 32] |= 3ull << 2 * (number % 32);
      set(m, m->left_read, to)[number / 32] |= 3ull << 2 * (number % 32);
    }
  }
  free(todo);
  free(seen);
  return good || (snprintf(m->error, m->size, "%s: no memory for its joins", m->k->name), false);
}

static bool find_between(messages *m) {
  for (int at = 0; at < m->k->n_ins; at++)
    if (m->k->ins[at].run == intel_run_goto && !add_between(m, at, m->k->ins[at].uip)) return false;
  return true;
}

/* One pass over all blocks. */
static bool pass(messages *m, bool *changed) {
  int to[3];
  *changed = false;
  for (int at = 0; at < m->k->n_ins; at++) {
    if (m->begins[at]) {
      memcpy(m->now_written, set(m, m->written, at), (size_t)m->words * 8);
      memcpy(m->now_read, set(m, m->read, at), (size_t)m->words * 8);
    }
    if (!wait_and_check(m, at)) return false;
    const intel_ins *i = &m->k->ins[at];
    if (m->physical && i->run == intel_run_goto)
      merge(m, i->uip, m->left_written, m->left_read, NULL, NULL);
    int n = followers(m, at, to);
    for (int f = 0; f < n; f++) {
      const bool falls = !f && to[f] == at + 1 && !ends_here(i);
      if (m->physical && i->run == intel_run_join && !falls) add_idle(m, at);
      if (m->begins[to[f]] && arrive(m, at, to[f], falls)) *changed |= to[f] <= at;
    }
  }
  return true;
}

static bool number_messages(messages *m) {
  const intel_kernel *k = m->k;
  m->number = malloc((size_t)k->n_ins * sizeof *m->number);
  m->message = malloc((size_t)k->n_ins * sizeof *m->message);
  m->block = malloc((size_t)k->n_ins * sizeof *m->block);
  for (int i = 0; m->number && m->message && m->block && i < k->n_ins; i++) {
    m->block[i] = m->begins[i] ? i : m->block[i - 1];
    bool takes = k->ins[i].wait.token >= 0;
    m->number[i] = takes ? m->n : -1;
    if (takes) m->message[m->n++] = i;
  }
  m->words = m->n / 32 + 1;
  size_t row = (size_t)m->words * 8, all = (size_t)k->n_ins;
  m->of_token = calloc(INTEL_TOKENS, row);
  m->written = calloc(all, row);
  m->read = calloc(all, row);
  m->now_written = calloc(1, row);
  m->now_read = calloc(1, row);
  m->idle_written = calloc(all, row);
  m->idle_read = calloc(all, row);
  m->left_written = calloc(all, row);
  m->left_read = calloc(all, row);
  bool good = m->number && m->message && m->block && m->of_token && m->written && m->read &&
              m->now_written && m->now_read && m->idle_written && m->idle_read && m->left_written &&
              m->left_read;
  for (int n = 0; good && n < m->n; n++)
    set(m, m->of_token, k->ins[m->message[n]].wait.token)[n / 32] |= 3ull << 2 * (n % 32);
  return good || (snprintf(m->error, m->size, "%s: no memory for its scoreboard", k->name), false);
}

static bool check_messages(const intel_kernel *k, const uses *all, const bool *begins,
                           bool physical, char *error, size_t size) {
  messages m = {
      .k = k, .all = all, .begins = begins, .physical = physical, .error = error, .size = size};
  bool good = number_messages(&m) && (!physical || find_between(&m)), changed = true;
  while (good && changed) good = pass(&m, &changed);
  free(m.number);
  free(m.message);
  free(m.block);
  free(m.of_token);
  free(m.written);
  free(m.read);
  free(m.now_written);
  free(m.now_read);
  free(m.idle_written);
  free(m.idle_read);
  free(m.left_written);
  free(m.left_read);
  return good;
}

/* ---- the whole ---- */

bool intel_check_scoreboard(const intel_kernel *k, char *error, size_t size) {
  uses *all = calloc((size_t)k->n_ins, sizeof *all);
  bool *begins = calloc((size_t)k->n_ins + 1, sizeof *begins);
  bool good = all && begins;
  if (!good) snprintf(error, size, "%s: no memory for its scoreboard", k->name);
  for (int i = 0; good && i < k->n_ins; i++) {
    const intel_ins *ins = &k->ins[i];
    bool jumps = ins->run == intel_run_jump, leaves = ins->run == intel_run_goto,
         joins = ins->run == intel_run_join;
    all[i] = uses_of(ins);
    if (!jumps && !leaves && !joins) continue;
    begins[i + 1] = begins[ins->jip] = true;
    if (leaves) begins[ins->uip] = true;
    if (joins) begins[i] = true;
  }
  if (good) begins[0] = true;
  good = good && check_arithmetic(k, all, error, size) &&
         check_messages(k, all, begins, false, error, size) &&
         check_messages(k, all, begins, true, error, size);
  free(all);
  free(begins);
  return good;
}
