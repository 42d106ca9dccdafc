/* What the Rust side asks of C: the sizes of the kit's structures, and flags of an interface. */
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agent.h"

const size_t agent_sizes[3] = {sizeof(struct agent_options), sizeof(struct agent_message),
                               sizeof(struct agent_adapter)};

/* sysfs shows the interfaces of the namespace that mounted it, so the socket is asked. */
bool agent_has_multicast(const char *interface) {
  struct ifreq request = {0};
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  const int failed = ioctl(any, SIOCGIFFLAGS, &request);
  close(any);
  return !failed && (request.ifr_flags & IFF_MULTICAST);
}
