/* backends/cpu/folder.c - a folder for one compilation, removed however the process that made it
   ends. A watcher, a shell started before the folder is made, reads from a socket whose other end
   only this process has: if that is closed without a message, it kills the compiler and removes the
   folder. If the watcher was killed as well, the folder's lock is free, and the next process that
   sweeps removes it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"

static const char prefix[] = "clebsch-cc-";
enum { DIGITS = 16 };  /* after the prefix: a random number */
enum { SETTLED = 10 }; /* age in seconds from which a folder without a lock is abandoned */

static const char *place(void) {
  const char *temporary = getenv("TMPDIR");
  return temporary && *temporary ? temporary : "/tmp";
}

/* ---- the watcher ---- */

static const char script[] =
    "read -r group; read -r over && exit 0\n"
    "[ -z \"$group\" ] || kill -9 \"-$group\" 2>/dev/null\n"
    "for i in 1 2 3 4 5 6 7 8 9 10; do rm -rf \"$1\" 2>/dev/null && exit 0; sleep 0.1; done";

/* In its own process group, so that signals from the terminal do not reach it. */
static bool spawn_watcher(clb_cpu_folder *f, int from) {
  const char *const argv[] = {"sh", "-c", script, "sh", f->path.s, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  if (posix_spawn_file_actions_init(&actions)) return false;
  int e = posix_spawnattr_init(&attributes);
  if (e) goto no_attributes;
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setsigmask(&attributes, &none);
  e = posix_spawn_file_actions_adddup2(&actions, from, 0);
  if (!e) e = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  if (!e) e = posix_spawn_file_actions_adddup2(&actions, 1, 2);
  if (!e)
    e = posix_spawn(&f->watcher, "/bin/sh", &actions, &attributes, (char *const *)(uintptr_t)argv,
                    environ);
  posix_spawnattr_destroy(&attributes);
no_attributes:
  posix_spawn_file_actions_destroy(&actions);
  return !e;
}

/* Failure is harmless: a watcher is only needed if this process is killed. */
static void watch(clb_cpu_folder *f) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) return;
  const bool good = spawn_watcher(f, ends[0]);
  close(ends[0]);
  if (good) f->lifeline = ends[1];
  else close(ends[1]);
}

static void say(const clb_cpu_folder *f, const char *word) {
  if (f->lifeline >= 0) send(f->lifeline, word, strlen(word), MSG_NOSIGNAL);
}

void clb_cpu_folder_compiler(clb_cpu_folder *f, pid_t group) {
  char word[32];
  f->told = true;
  snprintf(word, sizeof word, "%ld\n", (long)group);
  say(f, word);
}

static void end_watch(clb_cpu_folder *f) {
  if (f->lifeline < 0) return;
  say(f, f->told ? "over\n" : "\nover\n");
  close(f->lifeline);
  while (waitpid(f->watcher, NULL, 0) < 0 && errno == EINTR) {
  }
  f->lifeline = -1;
}

/* ---- folders ---- */

/* Removes its files first; it contains no folders. */
static void remove_folder(int fd, const char *path) {
  const int again = dup(fd);
  DIR *d = again < 0 ? NULL : fdopendir(again);
  for (struct dirent *e; d && (e = readdir(d));)
    if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) unlinkat(fd, e->d_name, 0);
  if (d) closedir(d);
  else if (again >= 0) close(again);
  rmdir(path);
}

/* Removes a folder left by a process that was killed with its whole group. */
static void sweep_one(const char *path) {
  struct stat about;
  const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  const bool ours =
      !fstat(fd, &about) && about.st_uid == geteuid() && time(NULL) - about.st_mtime >= SETTLED;
  if (ours && !flock(fd, LOCK_EX | LOCK_NB)) remove_folder(fd, path);
  close(fd);
}

void clb_cpu_folders_sweep(void) {
  DIR *d = opendir(place());
  for (struct dirent *e; d && (e = readdir(d));) {
    clb_text path = {0};
    if (strncmp(e->d_name, prefix, sizeof prefix - 1)) continue;
    if (strlen(e->d_name) != sizeof prefix - 1 + DIGITS) continue;
    clb_text_add(&path, "%s/%s", place(), e->d_name);
    if (!path.failed) sweep_one(path.s);
    clb_text_free(&path);
  }
  if (d) closedir(d);
}

clb_status clb_cpu_folder_make(clb_cpu_folder *f, const char *kernel, clb_error_sink *error) {
  uint64_t number;
  *f = (clb_cpu_folder){.fd = -1, .lifeline = -1};
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    return clb_fail(error, CLB_ERROR_DRIVER, "%s: no random bytes to name a folder", kernel);
  clb_text_add(&f->path, "%s/%s%0*" PRIx64, place(), prefix, DIGITS, number);
  if (f->path.failed) return clb_fail(error, CLB_ERROR_MEMORY, "%s: no memory", kernel);
  watch(f);
  if (mkdir(f->path.s, 0700)) {
    clb_status s =
        clb_fail(error, CLB_ERROR_DRIVER,
                 "%s: cannot make the folder %s: %s; TMPDIR may name a place for such folders",
                 kernel, f->path.s, strerror(errno));
    end_watch(f);
    clb_text_free(&f->path);
    return s;
  }
  f->fd = open(f->path.s, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (f->fd >= 0) flock(f->fd, LOCK_EX | LOCK_NB);
  return CLB_OK;
}

void clb_cpu_folder_remove(clb_cpu_folder *f) {
  if (f->path.s) {
    if (f->fd >= 0) remove_folder(f->fd, f->path.s);
    else rmdir(f->path.s);
  }
  end_watch(f);
  if (f->fd >= 0) close(f->fd);
  clb_text_free(&f->path);
}
