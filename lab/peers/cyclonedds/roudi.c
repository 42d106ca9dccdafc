/* RouDi, shared by the agents of a user. The first agent starts it, the last one ends it: RouDi
 * terminates every client that is left when it ends. A RouDi of somebody else is left alone. */
#include "roudi.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

#define READY "ready for clients"
enum { STARTING, USERS }; /* octets of the lock file */

static int lock_file = -1;
static char log_path[64];

static bool lock(int octet, short kind, bool wait) {
  struct flock request = {.l_type = kind, .l_whence = SEEK_SET, .l_start = octet, .l_len = 1};
  return !fcntl(lock_file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &request);
}

static bool is_ready(void) {
  char text[4096];
  const int log = open(log_path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = log < 0 ? -1 : read(log, text, sizeof text - 1);
  if (log >= 0) close(log);
  if (length <= 0) return false;
  text[length] = 0;
  return strstr(text, READY) != NULL;
}

static void run_daemon(void) {
  setsid();
  const int log = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0600);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execlp("iox-roudi", "iox-roudi", "--monitoring-mode", "off", (char *)NULL);
  _exit(127);
}

static const char *start_daemon(void) {
  unlink(log_path);
  const pid_t child = fork();
  if (child < 0) return agent_text("fork: %s", strerror(errno));
  if (!child) run_daemon();
  const uint64_t end_ns = agent_now_ns() + UINT64_C(10000000000);
  int status = 0;
  while (!is_ready()) {
    if (waitpid(child, &status, WNOHANG) == child) {
      if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        return "iox-roudi is missing: apt-get install iceoryx";
      return NULL; /* another RouDi runs; CycloneDDS says if it is of no use */
    }
    if (agent_now_ns() > end_ns || agent_stopping) {
      kill(child, SIGKILL);
      return "iox-roudi is not ready after 10 s";
    }
    agent_sleep_ns(10000000);
  }
  char text[16];
  const int length = snprintf(text, sizeof text, "%d\n", (int)child);
  if (ftruncate(lock_file, 0) || pwrite(lock_file, text, (size_t)length, 0) != length)
    return agent_text("write the lock file of RouDi: %s", strerror(errno));
  return NULL;
}

/* The RouDi that an agent started, if it runs; 0: none. */
static pid_t running_daemon(void) {
  char text[16] = "", path[64], name[32] = "";
  if (pread(lock_file, text, sizeof text - 1, 0) <= 0) return 0;
  const pid_t pid = (pid_t)strtol(text, NULL, 10);
  snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
  FILE *comm = pid > 1 ? fopen(path, "r") : NULL;
  if (!comm) return 0;
  const bool named = fgets(name, sizeof name, comm) != NULL;
  fclose(comm);
  return named && !strcmp(name, "iox-roudi\n") ? pid : 0;
}

static void stop_daemon(void) {
  if (!lock(STARTING, F_WRLCK, true) || !lock(USERS, F_WRLCK, false)) return;
  const pid_t pid = running_daemon();
  if (pid) kill(pid, SIGTERM);
  for (int wait = 0; pid && wait < 150 && running_daemon() == pid; wait++) {
    waitpid(pid, NULL, WNOHANG); /* if it is a child of this process */
    agent_sleep_ns(10000000);
  }
  if (pid && running_daemon() == pid) kill(pid, SIGKILL);
}

const char *roudi_start(void) {
  char path[64];
  snprintf(path, sizeof path, "/tmp/takt-roudi-%u.lock", (unsigned)getuid());
  snprintf(log_path, sizeof log_path, "/tmp/takt-roudi-%u.log", (unsigned)getuid());
  lock_file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock_file < 0 || !lock(STARTING, F_WRLCK, true))
    return agent_text("%s: %s", path, strerror(errno));
  /* Runs after the destructors of iceoryx, which is loaded later: RouDi waits for its clients. */
  atexit(stop_daemon);
  const char *why = lock(USERS, F_WRLCK, false) ? start_daemon() : NULL;
  if (!why && !lock(USERS, F_RDLCK, true)) why = agent_text("%s: %s", path, strerror(errno));
  lock(STARTING, F_UNLCK, false);
  return why;
}
