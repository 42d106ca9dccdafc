/* Many participants, to be found and to be weighed: `crowd`. One that finds them: `seek`. One of
 * many processes that find one another: `mesh`. */
#include <stdio.h>
#include <string.h>

#include "kit.h"

#define MATCH_LIMIT_NS UINT64_C(50000000000)
/* Between two looks at what was found. Many processes that look often take the processor from one
 * another. */
#define SEEK_STEP_NS 200000
#define MESH_STEP_NS 5000000

static void check(const struct agent_options *options) {
  if (options->instances) agent_fail("instances=%d: a crowd of this agent has none", options->instances);
}

static void succeed(const char *why) {
  if (why) agent_fail("%s", why);
}

static const char *topic_of(int endpoint) {
  static char name[32];
  snprintf(name, sizeof name, "Data%d", endpoint);
  return name;
}

void run_crowd(const struct agent_adapter *adapter, const struct agent_options *options) {
  check(options);
  const long bare_kib = memory_now().resident_kib;
  for (int at = 0; at < options->participants; at++) succeed(adapter->join(options));
  const long joined_kib = memory_now().resident_kib;
  for (int at = 0; at < options->participants; at++)
    for (int endpoint = 0; endpoint < options->endpoints; endpoint++)
      succeed(adapter->add_writer(at, topic_of(endpoint)));
  const long open_kib = memory_now().resident_kib;
  say("{\"ev\":\"ready\"}");
  sleep_until_ns(agent_now_ns() + (uint64_t)(options->warm_s * 1e9));
  if (agent_stopping) return;
  const struct agent_memory memory = memory_now();
  say("{\"ev\":\"result\",\"role\":\"crowd\",\"bare_kib\":%ld,\"participants_kib\":%ld,"
      "\"endpoints_kib\":%ld,\"resident_kib\":%ld,\"private_kib\":%ld}",
      bare_kib, joined_kib - bare_kib, open_kib - joined_kib, memory.resident_kib,
      memory.private_kib);
  while (!agent_stopping) sleep_until_ns(agent_now_ns() + UINT64_C(3600000000000));
}

static void find(const struct agent_adapter *adapter, int wanted, int64_t step_ns,
                 uint64_t main_ns, uint64_t open_ns, uint64_t t0) {
  int found;
  while ((found = adapter->found_writers()) < wanted && !agent_stopping) {
    if (agent_now_ns() > main_ns + MATCH_LIMIT_NS)
      agent_fail("%d of %d writers were found within 50 s", found, wanted);
    agent_sleep_ns(step_ns);
  }
  if (agent_stopping) return;
  const uint64_t matched_ns = agent_now_ns();
  say("{\"ev\":\"matched\",\"main_ms\":%.3f,\"init_ms\":%.3f,\"match_ms\":%.3f}",
      1e-6 * (double)(int64_t)(main_ns - t0), 1e-6 * (double)(int64_t)(open_ns - t0),
      1e-6 * (double)(int64_t)(matched_ns - t0));
  while (!agent_stopping) sleep_until_ns(agent_now_ns() + UINT64_C(3600000000000));
}

void run_seek(const struct agent_adapter *adapter, const struct agent_options *options,
              uint64_t main_ns) {
  check(options);
  const uint64_t t0 = options->t0 ? options->t0 : main_ns;
  succeed(adapter->join(options));
  for (int endpoint = 0; endpoint < options->endpoints; endpoint++)
    succeed(adapter->add_reader(0, topic_of(endpoint)));
  const uint64_t open_ns = agent_now_ns();
  say("{\"ev\":\"ready\"}");
  const int wanted = options->participants * options->endpoints;
  find(adapter, wanted, SEEK_STEP_NS, main_ns, open_ns, t0);
}

void run_mesh(const struct agent_adapter *adapter, const struct agent_options *options,
              uint64_t main_ns) {
  check(options);
  const uint64_t t0 = options->t0 ? options->t0 : main_ns;
  succeed(adapter->join(options));
  for (int endpoint = 0; endpoint < options->endpoints; endpoint++) {
    succeed(adapter->add_writer(0, topic_of(endpoint)));
    succeed(adapter->add_reader(0, topic_of(endpoint)));
  }
  const uint64_t open_ns = agent_now_ns();
  say("{\"ev\":\"ready\"}");
  const int wanted = options->participants * options->endpoints;
  find(adapter, wanted, MESH_STEP_NS, main_ns, open_ns, t0);
}
