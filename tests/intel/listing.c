/* tests/intel/listing.c - the disassembler's listing, line by line into instructions:
     (W&~f0.1) cmp (16|M0) (lt)f0.1   null<1>:d     r1.1<0;1,0>:d     0:w      {I@2}  // comment */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/intel/registers.h"

enum { MAX_WORDS = 8 };

/* ---- the parts of a line ---- */

/* f2.1 -> its first bit + 1; 0: no flag. */
static uint8_t flag_of(const char *s) {
  if (s[0] != 'f' || s[1] < '0' || s[1] > '3' || s[2] != '.' || (s[3] != '0' && s[3] != '1') ||
      s[4])
    return 0;
  return (uint8_t)(32 * (s[1] - '0') + 16 * (s[3] - '0') + 1);
}

static bool predicate(intel_ins *i, char *s) {
  if (*s == 'W') {
    i->all = 1;
    s++;
    if (!*s) return true;
    if (*s++ != '&') return false;
  }
  if (*s == '~') i->inverted = 1, s++;
  return (i->predicate = flag_of(s));
}

static bool condition(intel_ins *i, const char *name, const char *flag) {
  static const char *const names[] = {"", "eq", "ne", "lt", "le", "gt", "ge", "eo"};
  for (uint8_t k = EQ; k <= EARLY_OUT; k++)
    if (!strcmp(name, names[k])) {
      i->condition = k;
      return *flag ? (i->flag = flag_of(flag)) != 0 : true; /* sel has no flag */
    }
  return false;
}

static bool token_of(const char *s, intel_scoreboard *w) {
  char *end;
  unsigned long token = strtoul(s, &end, 10);
  if (end == s || token >= INTEL_TOKENS) return false;
  if (!*end) w->token = (int8_t)token;
  else if (!strcmp(end, ".dst")) w->wait_written |= 1u << token;
  else if (!strcmp(end, ".src")) w->wait_read |= 1u << token;
  else return false;
  return true;
}

/* {Compacted,A@1,$0.src} */
static bool braces(intel_ins *i, char *s) {
  static const char pipes[] = " IFLMA";
  for (char *item = strtok(s, ", "); item; item = strtok(NULL, ", ")) {
    const char *pipe = strchr(pipes + 1, item[0]);
    if (!strcmp(item, "Compacted")) continue;
    if (!strcmp(item, "EOT")) {
      if (i->message.kind != END) return false;
    } else if (item[0] == '$') {
      if (!token_of(item + 1, &i->wait)) return false;
    } else if (pipe && item[1] == '@' && isdigit((unsigned char)item[2]) && !item[3]) {
      i->wait.pipe = (uint8_t)(pipe - pipes);
      i->wait.distance = (uint8_t)(item[2] - '0');
    } else return false;
  }
  return true;
}

/* sync.allrd ($0,$3), and without a list all tokens */
static bool sync_tokens(intel_ins *i, char *list) {
  uint32_t all = 0;
  bool read = !strcmp(i->name, "sync.allrd");
  if (!strcmp(list, "null")) all = ~0u;
  else
    for (char *item = strtok(list, "(),"); item; item = strtok(NULL, "(),")) {
      intel_scoreboard w = {.token = -1};
      if (item[0] != '$' || !token_of(item + 1, &w) || w.token < 0) return false;
      all |= 1u << w.token;
    }
  if (read) i->wait.wait_read |= all;
  else i->wait.wait_written |= all;
  return true;
}

/* ---- an instruction ---- */

typedef struct {
  char *word[MAX_WORDS];
  int n;
} words;

/* Takes "(...)" from the front; NULL: there is none. */
static char *bracket(char **s) {
  *s += strspn(*s, " ");
  char *end = **s == '(' ? strchr(*s, ')') : NULL;
  if (!end) return NULL;
  char *inside = *s + 1;
  *end = 0;
  *s = end + 1;
  return inside;
}

static char *next_word(char **s) {
  *s += strspn(*s, " ");
  if (!**s) return NULL;
  char *word = *s;
  *s += strcspn(*s, " ");
  if (**s) *(*s)++ = 0;
  return word;
}

static bool label(const char *s, int32_t *pc) {
  char *end;
  if (*s != 'L') return false;
  *pc = (int32_t)strtol(s + 1, &end, 10);
  return !*end && end != s + 1;
}

/* Targets are addresses until link_up. */
static bool flow(intel_ins *i, const words *w) {
  intel_run *const run = !strcmp(i->name, "jmpi")   ? intel_run_jump
                         : !strcmp(i->name, "goto") ? intel_run_goto
                         : !strcmp(i->name, "join") ? intel_run_join
                                                    : NULL;
  int n = run == intel_run_goto ? 2 : 1;
  if (!run || w->n != n || !label(w->word[0], &i->jip)) return false;
  if (n == 2 && (!label(w->word[1], &i->uip) || i->all)) return false;
  if (run == intel_run_join && (i->predicate || i->all)) return false;
  i->run = run;
  return true;
}

static bool sync(intel_ins *i, const words *w) {
  i->run = intel_run_nothing;
  if (w->n != 1) return false;
  if (!strcmp(i->name, "sync.nop")) return !strcmp(w->word[0], "null");
  if (!strcmp(i->name, "sync.bar")) i->run = intel_run_barrier;
  else if (!strcmp(i->name, "sync.allrd") || !strcmp(i->name, "sync.allwr"))
    return sync_tokens(i, w->word[0]);
  else return false;
  return true;
}

/* bfn.0xD8: bit s0 + 2 s1 + 4 s2 is the result where the sources' bits are those. */
static bool table_of(intel_ins *i, const char *text) {
  char *end;
  unsigned long table = strtoul(text, &end, 16);
  i->table = (uint8_t)table;
  return !*end && table < 256;
}

static bool arithmetic(const intel_kernel *k, intel_ins *i, const words *w) {
  if (w->n < 2 || w->n > 4 || !intel_operand_of(k, w->word[0], i->lanes, true, &i->d)) return false;
  i->n = (uint8_t)(w->n - 1);
  for (int s = 0; s < i->n; s++)
    if (!intel_operand_of(k, w->word[s + 1], i->lanes, false, &i->s[s])) return false;
  intel_set_writes(i);
  return intel_choose(i);
}

/* The part behind the address. false: unknown. */
static bool instruction(const intel_kernel *k, intel_ins *i, char *s) {
  words w = {0};
  char *comment = strstr(s, "//"), *options = NULL, *part = bracket(&s);
  if (comment) *comment = 0, comment += 2;
  if (part && !predicate(i, part)) return false;
  if (!(part = next_word(&s))) return false;
  char *brace = strchr(s, '{');
  if (brace) {
    *brace = 0;
    options = brace + 1;
    options[strcspn(options, "}")] = 0;
  }
  bool bfn = !strncmp(part, "bfn.", 4);
  snprintf(i->name, sizeof i->name, "%s", bfn ? "bfn" : part);
  if (bfn && !table_of(i, part + 4)) return false;
  i->lanes = 1;
  i->wait.token = -1;
  bool is_sync = !strncmp(i->name, "sync.", 5);
  if (!is_sync && (part = bracket(&s))) {
    char *end;
    i->lanes = (uint8_t)strtoul(part, &end, 10);
    if (strcmp(end, "|M0") != 0 || !i->lanes || i->lanes > INTEL_LANES) return false;
  }
  if (!is_sync && (part = bracket(&s))) {
    char *flag = *s == 'f' ? next_word(&s) : (char[]){""};
    if (!condition(i, part, flag)) return false;
  }
  while (w.n < MAX_WORDS && (w.word[w.n] = next_word(&s))) w.n++;
  bool good;
  if (!strncmp(i->name, "send.", 5))
    good = intel_message_of(k, i, w.word, w.n, comment ? comment : "", options ? options : "");
  else if (is_sync) good = sync(i, &w);
  else if (!strcmp(i->name, "goto") || !strcmp(i->name, "join") || !strcmp(i->name, "jmpi"))
    good = flow(i, &w);
  else good = arithmetic(k, i, &w);
  return (!options || braces(i, options)) && good; /* also an unknown instruction waits */
}

/* The address stands in front, as a comment; other lines are labels. */
static bool line(const intel_kernel *k, char *s, intel_ins *i) {
  char work[512], *end;
  if (strncmp(s, "/* [", 4) != 0) return false;
  *i = (intel_ins){.text = s, .pc = (uint32_t)strtoul(s + 4, &end, 16)};
  char *behind = strstr(end, "*/");
  if (!behind) return false;
  for (size_t n = strlen(s); n && s[n - 1] == ' '; n--) s[n - 1] = 0;
  i->text = behind + 2 + strspn(behind + 2, " ");
  snprintf(work, sizeof work, "%s", i->text);
  if (!instruction(k, i, work)) i->run = intel_run_unknown;
  return true;
}

/* ---- the whole ---- */

static int index_of(const intel_kernel *k, int32_t pc) {
  int low = 0, high = k->n_ins;
  while (low < high) {
    int middle = (low + high) / 2;
    if ((int32_t)k->ins[middle].pc < pc) low = middle + 1;
    else high = middle;
  }
  return low < k->n_ins && (int32_t)k->ins[low].pc == pc ? low : -1;
}

/* Divergent loops, which would be gotos backward, are not known here. */
static void link_up(intel_kernel *k) {
  for (int n = 0; n < k->n_ins; n++) {
    intel_ins *i = &k->ins[n];
    bool jumps = i->run == intel_run_jump, leaves = i->run == intel_run_goto;
    if (!jumps && !leaves && i->run != intel_run_join) continue;
    i->jip = index_of(k, i->jip);
    if (leaves) i->uip = index_of(k, i->uip);
    if (i->jip < 0 || (!jumps && i->jip <= n) || (leaves && i->uip <= n))
      i->run = intel_run_unknown;
  }
}

bool intel_decode(intel_kernel *k, char *error, size_t size) {
  int lines = 1;
  for (const char *s = k->listing; *s; s++) lines += *s == '\n';
  k->ins = calloc((size_t)lines, sizeof *k->ins);
  if (!k->ins) return snprintf(error, size, "no memory for %d instructions", lines), false;
  for (char *s = k->listing, *end; s; s = end) {
    end = strchr(s, '\n');
    if (end) *end++ = 0;
    k->n_ins += line(k, s, &k->ins[k->n_ins]);
  }
  if (!k->n_ins) return snprintf(error, size, "%s: the listing is empty", k->name), false;
  link_up(k);
  return true;
}
