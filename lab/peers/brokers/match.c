/* See match.h. */
#include "match.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"

#define MAX_ENDPOINTS 1024
#define QUERY_NS UINT64_C(10000000)

struct side {
  char topic[16]; /* empty: none */
  uint64_t asked_ns;
  int found;
  uint64_t identities[MAX_ENDPOINTS];
};

/* What answers to this agent: readers of what it writes, writers of what it reads. */
static struct side readers, writers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t identity;
static void (*send_text)(const char *);

void match_open(const char *writes, const char *reads, void (*send)(const char *text)) {
  snprintf(readers.topic, sizeof readers.topic, "%s", writes ? writes : "");
  snprintf(writers.topic, sizeof writers.topic, "%s", reads ? reads : "");
  send_text = send;
  identity = agent_now_ns() << 20 | ((uint64_t)getpid() & 0xfffff);
}

static void add(struct side *side, uint64_t who) {
  pthread_mutex_lock(&lock);
  int at = 0;
  while (at < side->found && side->identities[at] != who) at++;
  if (at == side->found && at < MAX_ENDPOINTS) side->identities[side->found++] = who;
  pthread_mutex_unlock(&lock);
}

void match_receive(const char *text, size_t size) {
  char line[96] = "", verb[8], kind[8], topic[16];
  unsigned long long who = 0;
  memcpy(line, text, size < sizeof line ? size : sizeof line - 1);
  if (sscanf(line, "%7s %7s %15s %llu", verb, kind, topic, &who) < 4) return;
  const bool of_readers = !strcmp(kind, "reader");
  if (!strcmp(verb, "have")) {
    struct side *side = of_readers ? &readers : &writers;
    if (!strcmp(side->topic, topic)) add(side, who);
  } else if (!strcmp(of_readers ? writers.topic : readers.topic, topic)) {
    snprintf(line, sizeof line, "have %s %s %llu", kind, topic, (unsigned long long)identity);
    send_text(line);
  }
}

static int found(struct side *side, const char *kind) {
  const uint64_t now_ns = agent_now_ns();
  if (now_ns >= side->asked_ns + QUERY_NS) {
    char line[96];
    side->asked_ns = now_ns;
    snprintf(line, sizeof line, "query %s %s %llu", kind, side->topic,
             (unsigned long long)identity);
    send_text(line);
  }
  pthread_mutex_lock(&lock);
  const int count = side->found;
  pthread_mutex_unlock(&lock);
  return count;
}

int match_readers(void) { return found(&readers, "reader"); }
int match_writers(void) { return found(&writers, "writer"); }
