/* tools/train/devices/threads.h - the same work in several threads. */
#ifndef CLB_TOOLS_TRAIN_DEVICES_THREADS_H
#define CLB_TOOLS_TRAIN_DEVICES_THREADS_H

/* Calls work(user, k) for all k < n, each in a thread of its own, 0 in this one. */
void threads_run(int n, void (*work)(void *user, int k), void *user);

#endif
