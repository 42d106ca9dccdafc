/* Ring in shared memory, one a reader: one writer, one reader, samples in place.
 *
 * notify=poll spins at both ends; notify=waitset waits by futex. A reader makes its ring and holds
 * a lock on the file, so that a writer does not take one that an ended process left behind. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "limit.h"

#define MAX_SAMPLE ((size_t)8 << 20)
#define LEAST_CAPACITY ((size_t)256 << 10)
#define WRAP UINT32_MAX /* length of a record that fills the end of the ring */
#define RECORD 16       /* octets before a sample, and its alignment */

struct shared {
  _Atomic uint32_t ready, attached;
  uint64_t capacity;
  _Alignas(64) _Atomic uint64_t written; /* octets since the start */
  _Atomic uint32_t reader_waits;
  _Alignas(64) _Atomic uint64_t read;
  _Atomic uint32_t writer_waits;
  _Alignas(64) unsigned char octets[];
};

struct ring {
  struct shared *shared;
  uint64_t written, read; /* own position, and the last seen one of the other end */
};

static const struct agent_options *options;
static struct ring outgoing[LIMIT_MAX_READERS], incoming;
static bool attached[LIMIT_MAX_READERS + 1]; /* by id of the reader */
static atomic_int outgoing_count;
static char incoming_name[64];
static const char *writes_topic;

static void ring_name(char *name, size_t size, const char *topic, int id) {
  snprintf(name, size, "/takt-agent-%u-%d-%s-%d", (unsigned)getuid(), options->domain, topic, id);
}

static void futex_wait(_Atomic uint64_t *position, uint64_t seen, int64_t timeout_ns) {
  const struct timespec timeout = {timeout_ns / 1000000000, timeout_ns % 1000000000};
  syscall(SYS_futex, (uint32_t *)position, FUTEX_WAIT, (uint32_t)seen, &timeout, NULL, 0);
}

static void futex_wake(_Atomic uint64_t *position) {
  syscall(SYS_futex, (uint32_t *)position, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void pause_spin(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static const char *ring_check(const struct agent_options *given) {
  if (given->max_size > MAX_SAMPLE)
    return agent_text("size=%zu is above %zu octets of transport=shm", given->max_size,
                      MAX_SAMPLE);
  return NULL;
}

static const char *create_incoming(const char *topic) {
  const int id = strcmp(options->role, "sub") ? 0 : options->id;
  size_t capacity = LEAST_CAPACITY;
  while (capacity < 8 * options->max_size) capacity *= 2;
  ring_name(incoming_name, sizeof incoming_name, topic, id);
  int file = shm_open(incoming_name, O_RDWR, 0);
  if (file >= 0 && flock(file, LOCK_EX | LOCK_NB))
    return agent_text("%s is in use: give each reader of a domain its own id", incoming_name);
  if (file >= 0) close(file);
  shm_unlink(incoming_name);
  file = shm_open(incoming_name, O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0 || flock(file, LOCK_EX | LOCK_NB) ||
      ftruncate(file, (off_t)(sizeof(struct shared) + capacity)))
    return agent_text("create %s: %s", incoming_name, strerror(errno));
  incoming.shared = mmap(NULL, sizeof(struct shared) + capacity, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_POPULATE, file, 0);
  if (incoming.shared == MAP_FAILED)
    return agent_text("map %s: %s", incoming_name, strerror(errno));
  incoming.shared->capacity = capacity;
  incoming.shared->ready = 1;
  return NULL; /* the file stays open: it holds the lock */
}

static const char *ring_open(const struct agent_options *given, const char *writes,
                             const char *reads) {
  options = given;
  writes_topic = writes;
  return reads ? create_incoming(reads) : NULL;
}

/* True if the ring of this reader is there and its reader lives. */
static bool attach(int id) {
  char name[64];
  struct stat status;
  ring_name(name, sizeof name, writes_topic, id);
  const int file = shm_open(name, O_RDWR, 0);
  if (file < 0) return false;
  const bool is_stale = !flock(file, LOCK_EX | LOCK_NB);
  void *mapped = MAP_FAILED;
  if (!is_stale && !fstat(file, &status) && status.st_size > (off_t)sizeof(struct shared))
    mapped = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE,
                  file, 0);
  close(file);
  if (mapped == MAP_FAILED) return false;
  struct shared *shared = mapped;
  if (!shared->ready || shared->attached) {
    munmap(mapped, (size_t)status.st_size);
    return false;
  }
  const int at = outgoing_count;
  outgoing[at].shared = shared;
  outgoing_count = at + 1;
  shared->attached = 1;
  return true;
}

static bool ring_find_peers(void) {
  if (!writes_topic) return false;
  const int expected = limit_expected_readers(options);
  /* Readers may be numbered from 0 or from 1. */
  for (int id = 0; id <= expected && outgoing_count < expected; id++)
    if (!attached[id]) attached[id] = attach(id);
  agent_sleep_ns(2000000);
  return outgoing_count < expected;
}

static int ring_readers(void) { return outgoing_count; }
static int ring_writers(void) { return incoming.shared && incoming.shared->attached; }

static void publish(struct ring *ring) {
  struct shared *shared = ring->shared;
  atomic_store_explicit(&shared->written, ring->written, memory_order_release);
  if (options->notify == AGENT_POLL) return;
  atomic_thread_fence(memory_order_seq_cst);
  if (atomic_load_explicit(&shared->reader_waits, memory_order_relaxed)) {
    shared->reader_waits = 0;
    futex_wake(&shared->written);
  }
}

static bool wait_for_room(struct ring *ring, size_t needed) {
  struct shared *shared = ring->shared;
  const uint64_t end_ns = agent_now_ns() + (uint64_t)AGENT_BLOCKING_NS;
  publish(ring); /* a batch that fills the ring */
  for (uint32_t spins = 1;; spins++) {
    ring->read = atomic_load_explicit(&shared->read, memory_order_acquire);
    if (ring->written + needed - ring->read <= shared->capacity) return true;
    if (!options->reliable || agent_stopping) return false;
    if (options->notify == AGENT_POLL) {
      pause_spin();
      if (spins % 1024) continue;
      sched_yield();
    } else {
      shared->writer_waits = 1;
      if (shared->read == ring->read) futex_wait(&shared->read, ring->read, 10000000);
    }
    if (agent_now_ns() > end_ns) return false;
  }
}

/* Contiguous place for a sample; NULL: the ring is full. */
static void *reserve(struct ring *ring, size_t size) {
  struct shared *shared = ring->shared;
  const size_t record = RECORD + (size + RECORD - 1) / RECORD * RECORD;
  const uint64_t at = ring->written & (shared->capacity - 1);
  const size_t rest = (size_t)(shared->capacity - at);
  const size_t needed = rest < record ? rest + record : record;
  if (ring->written + needed - ring->read > shared->capacity && !wait_for_room(ring, needed))
    return NULL;
  uint32_t length = WRAP;
  if (rest < record) {
    memcpy(shared->octets + at, &length, sizeof length);
    ring->written += rest;
  }
  unsigned char *place = shared->octets + (ring->written & (shared->capacity - 1));
  length = (uint32_t)size;
  memcpy(place, &length, sizeof length);
  ring->written += record;
  return place + RECORD;
}

static enum agent_write ring_write(const void *octets, size_t size) {
  for (int at = 0; at < outgoing_count; at++) {
    void *place = reserve(&outgoing[at], size);
    if (!place) return AGENT_REFUSED;
    memcpy(place, octets, size);
    if (options->batch == 1) publish(&outgoing[at]);
  }
  return AGENT_WRITTEN;
}

static void ring_flush(void) {
  for (int at = 0; at < outgoing_count; at++) publish(&outgoing[at]);
}

/* In place of the first ring; the others get a copy. */
static void *ring_loan(size_t size) {
  return outgoing_count ? reserve(&outgoing[0], size) : NULL;
}

static enum agent_write ring_write_loan(void *loan, size_t size) {
  if (options->batch == 1) publish(&outgoing[0]);
  for (int at = 1; at < outgoing_count; at++) {
    void *place = reserve(&outgoing[at], size);
    if (!place) continue;
    memcpy(place, loan, size);
    if (options->batch == 1) publish(&outgoing[at]);
  }
  return AGENT_WRITTEN;
}

static void wait_for_data(struct shared *shared, int64_t timeout_ns) {
  shared->reader_waits = 1;
  atomic_thread_fence(memory_order_seq_cst);
  if (shared->written == incoming.read) futex_wait(&shared->written, incoming.read, timeout_ns);
}

static void ring_receive(agent_handler handler, void *context, int64_t timeout_ns) {
  struct shared *shared = incoming.shared;
  incoming.written = atomic_load_explicit(&shared->written, memory_order_acquire);
  if (incoming.written == incoming.read) {
    if (timeout_ns) wait_for_data(shared, timeout_ns);
    else pause_spin();
    incoming.written = atomic_load_explicit(&shared->written, memory_order_acquire);
  }
  while (incoming.read != incoming.written) {
    const uint64_t at = incoming.read & (shared->capacity - 1);
    const unsigned char *record = shared->octets + at;
    uint32_t length;
    memcpy(&length, record, sizeof length);
    if (length == WRAP) {
      incoming.read += shared->capacity - at;
      continue;
    }
    if (length > shared->capacity - at)
      agent_fail("the ring has a record of %u octets, above its end", length);
    handler(context, &(struct agent_message){.data = record + RECORD, .size = length});
    incoming.read += RECORD + (length + RECORD - 1) / RECORD * RECORD;
    atomic_store_explicit(&shared->read, incoming.read, memory_order_release);
    if (options->notify == AGENT_POLL) continue;
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&shared->writer_waits, memory_order_relaxed)) {
      shared->writer_waits = 0;
      futex_wake(&shared->read);
    }
  }
}

static void ring_close(void) {
  ring_flush();
  if (*incoming_name) shm_unlink(incoming_name);
}

const struct limit_transport limit_ring = {
    .check = ring_check,
    .open = ring_open,
    .find_peers = ring_find_peers,
    .matched_readers = ring_readers,
    .matched_writers = ring_writers,
    .write = ring_write,
    .flush = ring_flush,
    .loan = ring_loan,
    .write_loan = ring_write_loan,
    .receive = ring_receive,
    .close = ring_close,
};
