/* When DPDK's interrupt thread may run. Why: memif.h. */
#include "memif.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include <rte_alarm.h>

/* How long the interrupt thread has to find what there is to do, and between two looks for ports to stand still for. */
enum { TURN_US = 20, IDLE_US = 10000 };

/* How long we wait for the interrupt thread, and between two looks. */
enum { PATIENCE_MS = 2000, STEP_NS = 10000 };

enum { RUNS = -1 };

/* RUNS while the interrupt thread may be anywhere; else it stands still, and so many of our threads are within. */
static atomic_int within = RUNS;
static atomic_int ports;
static sem_t go_on;

static void stand_still(void *none) {
    do {
        if (atomic_load(&ports) > 0) {
            atomic_store(&within, 0);
            while (sem_wait(&go_on) != 0)
                ;
        }
    } while (rte_eal_alarm_set(atomic_load(&ports) > 0 ? TURN_US : IDLE_US, stand_still, none) != 0);
}

/* Whether nobody was within. */
static int let_run(void) {
    int nobody = 0;
    if (!atomic_compare_exchange_strong(&within, &nobody, RUNS))
        return 0;
    sem_post(&go_on);
    return 1;
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/*
 * Tries until it comes off; sleeps in between, as the interrupt thread may need the processor. Whether it did in time: once it has
 * not, nobody waits again until the thread is back.
 */
static int in_time(int (*attempt)(void)) {
    static atomic_int is_lost;
    const struct timespec step = {0, STEP_NS};
    int64_t until = 0;
    while (!attempt()) {
        if (atomic_load(&is_lost))
            return 0;
        if (until == 0)
            until = now_ms() + PATIENCE_MS;
        if (now_ms() >= until) {
            atomic_store(&is_lost, 1);
            return 0;
        }
        nanosleep(&step, NULL);
    }
    atomic_store(&is_lost, 0);
    return 1;
}

static int enter(void) {
    int count = atomic_load(&within);
    while (count != RUNS)
        if (atomic_compare_exchange_weak(&within, &count, count + 1))
            return 1;
    return 0;
}

int takt_memif_enter(void) {
    return in_time(enter);
}

void takt_memif_leave(void) {
    atomic_fetch_sub(&within, 1);
}

void takt_memif_turn(void) {
    if (let_run() && takt_memif_enter())
        takt_memif_leave();
}

/*
 * It tells connections by the numbers of descriptors, and would take old news of one that was closed for news of the next one
 * with its number: so it handles all that waits first.
 */
int takt_memif_enter_alone(void) {
    return in_time(let_run) && in_time(enter) ? 0 : -EBUSY;
}

int takt_memif_open(void) {
    static int has_begun;
    if (!has_begun) {
        sem_init(&go_on, 0, 0);
        int rc = rte_eal_alarm_set(TURN_US, stand_still, NULL);
        if (rc < 0)
            return rc;
        has_begun = 1;
    }
    atomic_fetch_add(&ports, 1);
    int rc = takt_memif_enter_alone();
    if (rc < 0)
        takt_memif_closed();
    return rc;
}

void takt_memif_closed(void) {
    if (atomic_fetch_sub(&ports, 1) == 1)
        let_run();
}
