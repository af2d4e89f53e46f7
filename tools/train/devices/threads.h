/* tools/train/devices/threads.h - the same work in several threads. */
#ifndef CLB_TOOLS_TRAIN_DEVICES_THREADS_H
#define CLB_TOOLS_TRAIN_DEVICES_THREADS_H

/* Calls work(user, k) for all k < n, each in a thread of its own, 0 in this one. The thread of a k
   stays for later calls, of which there is one at a time. */
void threads_run(int n, void (*work)(void *user, int k), void *user);
/* Ends the threads; later calls start others. */
void threads_end(void);

#endif
