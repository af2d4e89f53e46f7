/* tests/drivers/sub_devices.c - PoCL 3.1 crashes, about once in some hundred times, when a
   sub-device is released whose work is done. clFinish has returned, queue and context are released;
   a thread of the driver still releases the event of the last kernel and uses what releasing the
   device has freed. Each child should end by itself; some are killed by signal 11, in
   POclReleaseEvent. The workaround: sub-devices are kept until the process ends. (Clebsch makes
   none; a program that has it adopt one should keep it.) */
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/drivers/driver.h"

enum { CHILDREN = 6, TURNS = 15, N = 64 };

static const char text[] =
    "__kernel void twice(__global float *y) { int i = get_global_id(0); y[i] = y[i] * 2 + 1; }\n";

/* A kernel on the second half of a device; the status of this process. */
static int half_a_device(const char *platform, bool releases) {
  const intptr_t how[] = {0x1086 /* CL_DEVICE_PARTITION_EQUALLY */, 1, 0};
  driver whole;
  driver_open(&whole, platform);
  for (int t = 0; t < TURNS; t++) {
    driver part = whole;
    void *half[2];
    unsigned n = 0;
    int status = 0;
    float y[N];
    if (whole.clCreateSubDevices(whole.device, how, 0, NULL, &n) || n != 2) return DRIVER_ABSENT;
    driver_check(whole.clCreateSubDevices(whole.device, how, 2, half, NULL), "clCreateSubDevices");
    part.context = whole.clCreateContext(NULL, 2, half, NULL, NULL, &status);
    driver_check(status, "clCreateContext");
    part.device = half[1];
    part.queue = whole.clCreateCommandQueue(part.context, half[1], 0, &status);
    driver_check(status, "clCreateCommandQueue");
    for (int i = 0; i < N; i++) y[i] = (float)i;
    driver_run(&part, text, "", "twice", 2, N / 2, (driver_buffer[]){{y, sizeof y}}, 1);
    for (int i = 0; i < N; i++)
      if (y[i] != (float)(2 * i + 1)) return 1;
    driver_close(&part);
    for (int i = 0; i < 2 && releases; i++) whole.clReleaseDevice(half[i]);
  }
  driver_close(&whole);
  return 0;
}

/* How many children did not exit with 0; -1: there is no such device, or it cannot be halved. */
static int wrong(const char *platform, bool releases) {
  int bad = 0, status;
  for (int i = 0; i < CHILDREN; i++) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) _exit(half_a_device(platform, releases));
    if (child < 0 || waitpid(child, &status, 0) != child) exit(2);
    if (WIFEXITED(status) && WEXITSTATUS(status) == DRIVER_ABSENT) return -1;
    if (!WIFEXITED(status) || WEXITSTATUS(status)) bad++;
    if (WIFSIGNALED(status))
      printf("child %d: right is that it ends by itself, signal %d came\n", i, WTERMSIG(status));
  }
  printf("parts of devices are %s: %d of %d children died\n", releases ? "released" : "kept", bad,
         CHILDREN);
  return bad;
}

int main(int n, char **argument) {
  const char *platform = n > 1 ? argument[1] : "Portable";
  int plain = wrong(platform, true), kept = plain < 0 ? -1 : wrong(platform, false);
  return kept < 0 ? DRIVER_ABSENT : driver_verdict(plain, kept, 0); /* it is a matter of luck */
}
