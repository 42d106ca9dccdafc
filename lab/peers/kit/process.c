/* Clock, usage of CPU and memory, output, payloads and files of times. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

uint64_t agent_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sleep_until_ns(uint64_t at_ns) {
  const struct timespec at = {(time_t)(at_ns / 1000000000u), (long)(at_ns % 1000000000u)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR && !agent_stopping) {
  }
}

void agent_sleep_ns(uint64_t ns) { sleep_until_ns(agent_now_ns() + ns); }

struct agent_usage usage_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const double micros = (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
  return (struct agent_usage){
      .cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + 1e-6 * micros,
      .at_ns = agent_now_ns(),
      .nvcsw = usage.ru_nvcsw,
      .nivcsw = usage.ru_nivcsw,
  };
}

struct agent_usage usage_since(const struct agent_usage *start) {
  struct agent_usage now = usage_now();
  now.cpu_s -= start->cpu_s;
  now.at_ns -= start->at_ns;
  now.nvcsw -= start->nvcsw;
  now.nivcsw -= start->nivcsw;
  return now;
}

/* The sum of the lines of a file of /proc that start with one of two words. */
static long proc_kib(const char *path, const char *word, const char *other) {
  FILE *file = fopen(path, "r");
  if (!file) return 0;
  char line[256];
  long sum = 0;
  while (fgets(line, sizeof line, file)) {
    const char *colon = strchr(line, ':');
    if (!colon) continue;
    const size_t length = (size_t)(colon - line);
    if ((strlen(word) == length && !memcmp(line, word, length)) ||
        (strlen(other) == length && !memcmp(line, other, length)))
      sum += strtol(colon + 1, NULL, 10);
  }
  fclose(file);
  return sum;
}

struct agent_memory memory_now(void) {
  return (struct agent_memory){
      .resident_kib = proc_kib("/proc/self/status", "VmRSS", ""),
      .peak_kib = proc_kib("/proc/self/status", "VmHWM", ""),
      .private_kib = proc_kib("/proc/self/smaps_rollup", "Private_Clean", "Private_Dirty"),
  };
}

void say(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  flockfile(stdout);
  vprintf(format, arguments);
  putchar('\n');
  fflush(stdout);
  funlockfile(stdout);
  va_end(arguments);
}

const char *agent_text(const char *format, ...) {
  static char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return text;
}

void agent_fail(const char *format, ...) {
  char text[512], escaped[1100];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  size_t length = 0;
  for (const char *at = text; *at; at++) {
    if (*at == '"' || *at == '\\') escaped[length++] = '\\';
    escaped[length++] = (unsigned char)*at < 32 ? ' ' : *at;
  }
  escaped[length] = 0;
  say("{\"ev\":\"error\",\"what\":\"%s\"}", escaped);
  /* Threads of the system may still run: destructors would race with them. */
  _exit(1);
}

/* Every second octet is pseudo-random, so that nothing compresses the payload. */
unsigned char *octets_new(size_t size) {
  unsigned char *payload = malloc(size < 16 ? 16 : size);
  if (!payload) agent_fail("no memory for a payload of %zu octets", size);
  uint32_t random = 0x2545f491u;
  for (size_t at = 0; at < size; at++) {
    random = random * 1664525u + 1013904223u;
    payload[at] = at & 1 ? (unsigned char)(random >> 24) : 0x5a;
  }
  return payload;
}

void octets_stamp(void *payload, size_t size, uint64_t sequence, uint64_t sent_ns) {
  if (size < 16) {
    const uint32_t narrow = (uint32_t)sequence;
    memcpy(payload, &narrow, sizeof narrow);
  } else {
    memcpy(payload, &sequence, sizeof sequence);
    memcpy((char *)payload + 8, &sent_ns, sizeof sent_ns);
  }
}

uint64_t octets_sequence(const void *payload, size_t size) {
  uint64_t sequence = 0;
  uint32_t narrow = 0;
  if (size >= 16) {
    memcpy(&sequence, payload, sizeof sequence);
    return sequence;
  }
  memcpy(&narrow, payload, size < 4 ? size : 4);
  return narrow;
}

uint64_t octets_sent_ns(const void *payload) {
  uint64_t sent_ns;
  memcpy(&sent_ns, (const char *)payload + 8, sizeof sent_ns);
  return sent_ns;
}

struct agent_complex complex_shape(size_t size) {
  if (size >= 32)
    return (struct agent_complex){(uint32_t)(size / 32), 8, 23};
  return (struct agent_complex){1, 8, size > 9 ? (uint32_t)size - 9 : 0};
}

void agent_item_name(char *name, uint32_t index, uint32_t name_length) {
  for (uint32_t at = 0; at < name_length; at++) {
    index = index * 1664525u + 1013904223u;
    name[at] = (char)('a' + (index >> 24) % 26);
  }
  name[name_length] = 0;
}

void touch_read(enum agent_touch touch, const void *data, size_t size) {
  if (touch == AGENT_TOUCH_NONE) return;
  const size_t step = touch == AGENT_TOUCH_LINES ? 64 : 1;
  const volatile unsigned char *octets = data;
  unsigned sum = 0;
  for (size_t at = 0; at < size; at += step) sum += octets[at];
  (void)sum;
}

void touch_write(enum agent_touch touch, void *loan, const void *payload, size_t size) {
  memcpy(loan, payload, touch == AGENT_TOUCH_ALL || size < 16 ? size : 16);
  if (touch == AGENT_TOUCH_LINES)
    for (size_t at = 64; at < size; at += 64)
      ((volatile unsigned char *)loan)[at] = ((const unsigned char *)payload)[at];
}

void times_open(struct agent_times *times, uint64_t capacity) {
  *times = (struct agent_times){.ns = calloc(capacity, sizeof(uint64_t)), .capacity = capacity};
  if (!times->ns) agent_fail("no memory for %llu times", (unsigned long long)capacity);
}

void times_append(const struct agent_times *times, const char *path) {
  if (!path) return;
  FILE *file = fopen(path, "ab");
  bool written = file != NULL;
  for (uint64_t at = 0; written && at < times->count; at++) {
    unsigned char little[8];
    for (int octet = 0; octet < 8; octet++)
      little[octet] = (unsigned char)(times->ns[at] >> (8 * octet));
    written = fwrite(little, sizeof little, 1, file) == 1;
  }
  if (file && fclose(file)) written = false;
  if (!written) agent_fail("out=%s: %s", path, strerror(errno));
}
