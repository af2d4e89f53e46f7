/* tools/cli/announce.c - what takes long is said where no progress is shown, too. */
#define _GNU_SOURCE
#include "tools/cli/tool.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include "src/base/text.h"

static struct {
  pthread_mutex_t lock;
  pthread_cond_t ended;
  pthread_t thread;
  clb_text line;
  bool waits, over;
} now = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Of a clock that nobody sets. */
static void make_condition(void) {
  pthread_condattr_t about;
  pthread_condattr_init(&about);
  pthread_condattr_setclock(&about, CLOCK_MONOTONIC);
  pthread_cond_init(&now.ended, &about);
  pthread_condattr_destroy(&about);
}

static void *wait_and_say(void *unused) {
  enum { PATIENCE = 3 }; /* seconds */
  struct timespec end;
  int e = 0;
  (void)unused;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += PATIENCE;
  pthread_mutex_lock(&now.lock);
  while (!now.over && !e) e = pthread_cond_timedwait(&now.ended, &now.lock, &end);
  if (!now.over) fprintf(stderr, "clebsch: %s\n", now.line.s);
  pthread_mutex_unlock(&now.lock);
  return NULL;
}

void announce(const char *format, ...) {
  sigset_t all, before;
  va_list args;
  announce_end();
  va_start(args, format);
  clb_text_vadd(&now.line, format, args);
  va_end(args);
  clb_text_quote(&now.line, 0);
  if (now.line.failed) return;
  progress("%s", now.line.s);
  if (isatty(STDERR_FILENO)) return;
  now.over = false;
  make_condition();
  sigfillset(&all); /* signals are for the first thread */
  pthread_sigmask(SIG_SETMASK, &all, &before);
  now.waits = !pthread_create(&now.thread, NULL, wait_and_say, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void announce_end(void) {
  if (now.waits) {
    pthread_mutex_lock(&now.lock);
    now.over = true;
    pthread_cond_signal(&now.ended);
    pthread_mutex_unlock(&now.lock);
    pthread_join(now.thread, NULL);
    pthread_cond_destroy(&now.ended);
  }
  now.waits = false;
  clb_text_free(&now.line);
  progress(NULL);
}
