// Service of the agent `soap`, for soapcpp2. Payloads are base64Binary, or attachments by MTOM.
#import "xop.h"

//gsoap ns service name: bench
//gsoap ns service style: document
//gsoap ns service encoding: literal
//gsoap ns service namespace: urn:takt-bench
//gsoap ns schema namespace: urn:takt-bench
//gsoap ns schema form: unqualified

struct xsd__base64Binary {
  unsigned char *__ptr;
  int __size;
};

struct ns__Attached {
  struct _xop__Include xop__Include;
};

struct ns__Item {
  char *name 1;
  int number 1;
};
struct ns__Group {
  int __sizeitem;
  struct ns__Item *item;
};
struct ns__Complex {
  int __sizegroup;
  struct ns__Group *group;
};

struct ns__octetsResponse {
  struct xsd__base64Binary data;
};
struct ns__attachedResponse {
  struct ns__Attached data;
};
struct ns__complexResponse {
  struct ns__Complex data;
};

// Round trips.
int ns__octets(struct xsd__base64Binary data, struct ns__octetsResponse *response);
int ns__attached(struct ns__Attached data, struct ns__attachedResponse *response);
int ns__complex(struct ns__Complex data, struct ns__complexResponse *response);
// One way.
int ns__publish(struct xsd__base64Binary data, void);
int ns__publishAttached(struct ns__Attached data, void);
