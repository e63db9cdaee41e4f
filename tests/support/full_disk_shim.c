// A library for LD_PRELOAD that simulates a full disk on machines without mounts. While the file named by FULL_DISK
// exists, every call that would make a file in its folder longer fails with ENOSPC, as on a full disk.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

static int rejects(int file, off_t end) {
  const char* flag = getenv("FULL_DISK");
  if (!flag || access(flag, F_OK) != 0) return 0;
  struct stat facts;
  if (fstat(file, &facts) != 0 || !S_ISREG(facts.st_mode) || end <= facts.st_size) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = '\0';
  const size_t folder = (size_t)(strrchr(flag, '/') - flag) + 1;
  return strncmp(path, flag, folder) == 0;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int file, const void* bytes, size_t size) {
  const off_t at = lseek(file, 0, SEEK_CUR);
  if (at >= 0 && rejects(file, at + (off_t)size)) return errno = ENOSPC, -1;
  return REAL(write)(file, bytes, size);
}

ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  if (rejects(file, at + (off_t)size)) return errno = ENOSPC, -1;
  return REAL(pwrite)(file, bytes, size, at);
}

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  if (rejects(file, at + (off_t)size)) return errno = ENOSPC, -1;
  return REAL(pwrite64)(file, bytes, size, at);
}

int posix_fallocate(int file, off_t at, off_t size) {
  if (rejects(file, at + size)) return ENOSPC;
  return REAL(posix_fallocate)(file, at, size);
}
