/* Receives the dump of all TCP sockets that the probe asks for, and does nothing with it.
 *
 * What it takes is the kernel's own share: no reader in any language can be faster. Prints the
 * microseconds of each of N dumps, one a line: ./receive N
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];

static int dump(int reader)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 wanted;
	} request = {
		.head = {
			.nlmsg_len = sizeof(request),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			.nlmsg_seq = 1,
		},
		.wanted = {
			.sdiag_family = AF_INET,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1),
			.idiag_states = STATES,
		},
	};
	struct nlmsghdr *first = (struct nlmsghdr *)buffer;

	if (send(reader, &request, sizeof(request), 0) != sizeof(request))
		return -1;
	do {
		/* The end of a dump is a message of its own, in a datagram of its own. */
		if (recv(reader, buffer, sizeof(buffer), 0) < (ssize_t)sizeof(*first))
			return -1;
	} while (first->nlmsg_type == SOCK_DIAG_BY_FAMILY);
	return first->nlmsg_type == NLMSG_DONE ? 0 : -1;
}

int main(int count, char **words)
{
	int reader = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
	int times = count > 1 ? atoi(words[1]) : 1;

	for (int n = 0; n < times; n++) {
		struct timespec began, ended;

		clock_gettime(CLOCK_MONOTONIC, &began);
		if (dump(reader) < 0) {
			perror("dump");
			return 1;
		}
		clock_gettime(CLOCK_MONOTONIC, &ended);
		printf("%.1f\n", (ended.tv_sec - began.tv_sec) * 1e6 +
					 (ended.tv_nsec - began.tv_nsec) / 1e3);
	}
	return 0;
}
