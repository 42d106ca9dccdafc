/* What the Rust side asks of C: flags of an interface. */
#include <net/if.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>


/* sysfs shows the interfaces of the namespace that mounted it, so the socket is asked. */
bool agent_has_multicast(const char *interface) {
  struct ifreq request = {0};
  const int any = socket(AF_INET, SOCK_DGRAM, 0);
  strncpy(request.ifr_name, interface, sizeof request.ifr_name - 1);
  const int failed = ioctl(any, SIOCGIFFLAGS, &request);
  close(any);
  return !failed && (request.ifr_flags & IFF_MULTICAST);
}
