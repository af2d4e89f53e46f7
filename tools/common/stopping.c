/* tools/common/stopping.c - SIGINT and SIGTERM ask a long run to end after its current step. */
#define _GNU_SOURCE
#include "tools/common/stopping.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stopped; /* the signal */

static void stop(int signal_number) { stopped = signal_number; }

void stopping_begin(void) {
  const struct sigaction action = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
}

bool stopping(void) { return stopped; }
