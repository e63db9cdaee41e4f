// A library for LD_PRELOAD that changes the wall clock of running programs. The file named by CLOCK_OFFSET contains the
// offset in microseconds, as a 64-bit number. Steady clocks are unchanged.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t* offset;

__attribute__((constructor)) static void map_offset(void) {
  const char* name = getenv("CLOCK_OFFSET");
  const int file = name ? open(name, O_RDONLY) : -1;
  if (file < 0) return;
  void* found = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) offset = found;
  close(file);
}

int gettimeofday(struct timeval* restrict now, void* restrict zone) {
  static int (*real)(struct timeval*, void*);
  if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, "gettimeofday");
  const int done = real(now, zone);
  if (done != 0 || !offset) return done;
  const int64_t us = (int64_t)now->tv_sec * 1000000 + now->tv_usec + *offset;
  now->tv_sec = us / 1000000;
  now->tv_usec = us % 1000000;
  return done;
}
