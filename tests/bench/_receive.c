/* Receives the dump of all TCP sockets, or of all queues, that the probe asks for, and does
 * nothing with it.
 *
 * What it takes is the kernel's own share: no reader in any language can be faster. Prints the
 * microseconds of each of N dumps, one a line: ./receive N sockets, ./receive N queues
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];

static const struct {
	struct nlmsghdr head;
	struct inet_diag_req_v2 wanted;
} sockets = {
	.head = {
		.nlmsg_len = sizeof(sockets),
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

static const struct {
	struct nlmsghdr head;
	struct tcmsg wanted;
} queues = {
	.head = {
		.nlmsg_len = sizeof(queues),
		.nlmsg_type = RTM_GETQDISC,
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
		.nlmsg_seq = 1,
	},
};

static int dump(int reader, const void *request, size_t size, int answer)
{
	struct nlmsghdr *first = (struct nlmsghdr *)buffer;

	if (send(reader, request, size, 0) != (ssize_t)size)
		return -1;
	do {
		/* The end of a dump is a message of its own, in a datagram of its own. */
		if (recv(reader, buffer, sizeof(buffer), 0) < (ssize_t)sizeof(*first))
			return -1;
	} while (first->nlmsg_type == answer);
	return first->nlmsg_type == NLMSG_DONE ? 0 : -1;
}

int main(int count, char **words)
{
	int times = count > 1 ? atoi(words[1]) : 1, of_queues = count > 2 && *words[2] == 'q';
	int reader = socket(AF_NETLINK, SOCK_RAW, of_queues ? NETLINK_ROUTE : NETLINK_SOCK_DIAG);

	for (int n = 0; n < times; n++) {
		struct timespec began, ended;

		clock_gettime(CLOCK_MONOTONIC, &began);
		if (of_queues ? dump(reader, &queues, sizeof(queues), RTM_NEWQDISC) :
				dump(reader, &sockets, sizeof(sockets), SOCK_DIAG_BY_FAMILY)) {
			perror("dump");
			return 1;
		}
		clock_gettime(CLOCK_MONOTONIC, &ended);
		printf("%.1f\n", (ended.tv_sec - began.tv_sec) * 1e6 +
					 (ended.tv_nsec - began.tv_nsec) / 1e3);
	}
	return 0;
}
