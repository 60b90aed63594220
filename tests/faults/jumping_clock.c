/* LD_PRELOAD: the clock of a process plus the seconds in the file JUMPING_CLOCK, which is read at every look. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long seconds(void) {
    static int file = -1;
    static long last = 0;
    char text[32];
    if (file < 0) file = open(getenv("JUMPING_CLOCK"), O_RDONLY | O_CLOEXEC);
    ssize_t length = pread(file, text, sizeof text - 1, 0);
    if (length > 0) {
        text[length] = 0;
        last = atol(text);
    }
    return last;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += seconds();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
