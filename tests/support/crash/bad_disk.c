// Loaded into a server with LD_PRELOAD: reading, writing and syncing of files below a directory fail with EIO while a
// file exists. BAD_DISK is the directory, BAD_DISK_FILE the file; its first letters say what fails:
// r (read), w (write), s (sync).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, char what) {
    const char *directory = getenv("BAD_DISK"), *control = getenv("BAD_DISK_FILE");
    int before = errno;
    if (!directory || !control) return 0;
    // Raw system calls: our own functions below would come back here.
    int handle = syscall(SYS_openat, AT_FDCWD, control, O_RDONLY);
    if (handle < 0) { errno = before; return 0; }
    char kinds[8] = "";
    syscall(SYS_read, handle, kinds, sizeof kinds - 1);
    syscall(SYS_close, handle);
    errno = before;
    if (!strchr(kinds, what)) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    // SQLite's files alone: db.sqlite, wakeful.sqlite, and those with -wal and -shm beside them.
    if (strncmp(path, directory, strlen(directory)) != 0 || !strstr(path, ".sqlite")) { errno = before; return 0; }
    errno = EIO;
    return 1;
}

#define NEXT(name) static __typeof__(name) *next; if (!next) next = dlsym(RTLD_NEXT, #name)

ssize_t pread(int fd, void *to, size_t size, off_t at) { NEXT(pread); return fails(fd, 'r') ? -1 : next(fd, to, size, at); }
ssize_t pread64(int fd, void *to, size_t size, off64_t at) { NEXT(pread64); return fails(fd, 'r') ? -1 : next(fd, to, size, at); }
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) { NEXT(pwrite); return fails(fd, 'w') ? -1 : next(fd, from, size, at); }
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) { NEXT(pwrite64); return fails(fd, 'w') ? -1 : next(fd, from, size, at); }
int fsync(int fd) { NEXT(fsync); return fails(fd, 's') ? -1 : next(fd); }
int fdatasync(int fd) { NEXT(fdatasync); return fails(fd, 's') ? -1 : next(fd); }
