/* tools/fetch/download.c - downloads by a program that the machine has. */
#define _GNU_SOURCE /* memfd_create */
#include "tools/fetch/download.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/tool.h"

enum { MAX_WORDS = 12, NOT_THERE = 127 };

/* Each writes what is at the address, its last argument, to standard output. */
static const char *const programs[][MAX_WORDS] = {
    {"curl", "--silent", "--show-error", "--fail", "--location", "--connect-timeout", "30",
     "--speed-limit", "1", "--speed-time", "60"},
    {"python3", "-c",
     "import shutil, sys, urllib.request\n"
     "try:\n"
     "  with urllib.request.urlopen(sys.argv[1], timeout=60) as page:\n"
     "    shutil.copyfileobj(page, sys.stdout.buffer)\n"
     "except Exception as e:\n"
     "  sys.exit(f'python3: {e}')\n"},
    {"wget", "--no-verbose", "--timeout=60", "--tries=1", "--output-document=-"}};

static int in_memory(void) {
  const int fd = memfd_create("clebsch_download", MFD_CLOEXEC);
  if (fd < 0) fatal("no memory for a download: %s", strerror(errno));
  return fd;
}

static int64_t size_of(int fd) {
  struct stat about;
  return fstat(fd, &about) ? 0 : (int64_t)about.st_size;
}

/* The child ends when its parent does. */
static pid_t start(const char *const *program, const char *address, int out, int err) {
  char *words[MAX_WORDS + 2] = {0};
  const pid_t parent = getpid();
  int n = 0;
  for (; program[n]; n++) words[n] = (char *)program[n];
  words[n] = (char *)address;
  const pid_t pid = fork();
  if (pid < 0) fatal("%s cannot be started: %s", *program, strerror(errno));
  if (pid) return pid;
  const int none = open("/dev/null", O_RDONLY);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent && none >= 0 && dup2(none, STDIN_FILENO) >= 0 &&
      dup2(out, STDOUT_FILENO) >= 0 && dup2(err, STDERR_FILENO) >= 0)
    execvp(*words, words);
  _exit(NOT_THERE);
}

/* Its exit status, or -1. */
static int wait_for(pid_t pid, const char *name, int fd, int64_t bytes) {
  int status;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    const double done = 1e-6 * (double)size_of(fd);
    if (bytes) progress("%s: %.1f of %.1f MB", name, done, 1e-6 * (double)bytes);
    else progress("%s: %.1f MB", name, done);
    nanosleep(&(struct timespec){0, 100000000}, NULL);
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The last line that is not empty. */
static void last_line(int fd, char line[200]) {
  char text[2000];
  const int64_t size = size_of(fd), most = sizeof text - 1;
  ssize_t n = pread(fd, text, (size_t)most, size > most ? size - most : 0);
  if (n < 0) n = 0;
  while (n && strchr("\r\n ", text[n - 1])) n--;
  text[n] = 0;
  const char *feed = strrchr(text, '\n');
  snprintf(line, 200, "%s", feed ? feed + 1 : text);
}

int download(const char *address, const char *name, int64_t bytes) {
  const int fd = in_memory(), errors = in_memory();
  int status = NOT_THERE;
  char said[200];
  announce("%s: downloading %s", name, address);
  for (size_t i = 0; i < sizeof programs / sizeof *programs && status == NOT_THERE; i++)
    status = wait_for(start(programs[i], address, fd, errors), name, fd, bytes);
  announce_end();
  last_line(errors, said);
  close(errors);
  if (status == NOT_THERE)
    fatal("none of curl, python3 and wget is in PATH: download %s, then `clebsch fetch %s --from "
          "FILE`",
          address, name);
  if (status) fatal("%s: not downloaded: %s", address, *said ? said : "the program was ended");
  return fd;
}
