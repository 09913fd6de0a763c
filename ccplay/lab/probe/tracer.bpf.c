/* SPDX-License-Identifier: MIT
 *
 * Tells what the kernel knows of chosen connections at each segment that their sender receives.
 *
 * It runs at two of the kernel's tracepoints (include/trace/events/tcp.h):
 *	tcp_probe		a segment has come to an established connection and has no effect yet
 *	tcp_cong_state_set	the connection goes into another state, for an ACK or because a timer fired
 * The segments of a connection are dealt with one after the other, so its records are in order, and their
 * moments never go back.
 *
 * Each also says how many segments the kernel has counted, so that what is not told is known.
 *
 * perf_event_open(2) hears the same tracepoints. But there are kernels that tell it nothing of what
 * happens while a CPU idles, and that is where most ACKs of a light load come in.
 */
#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))

/* As the kernel asks before it lends its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

static void *(*map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*ktime_get_ns)(void) = (void *)5;
static u64 (*get_socket_cookie)(void *sk) = (void *)46;
static long (*probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*ringbuf_submit)(void *record, u64 flags) = (void *)132;
static struct tcp_sock *(*skc_to_tcp_sock)(void *sk) = (void *)137;

#define WAKE_NOBODY 1 /* BPF_RB_NO_WAKEUP: the lab looks at every sweep */

/* Who sends what is to be told of: a port of a network namespace. The lab writes it. */
struct sender {
	u32 namespace; /* the number of its file in /proc/PID/ns/ */
	u32 port;
};

struct {
	int (*type)[BPF_MAP_TYPE_HASH];
	int (*map_flags)[BPF_F_NO_PREALLOC];
	int (*max_entries)[65536];
	struct sender *key;
	u8 *value;
} senders SEC(".maps");

struct told {
	u64 ns; /* of CLOCK_MONOTONIC */
	u64 cookie; /* of the socket */
	u32 cwnd;
	u32 ssthresh;
	u32 snd_wnd;
	u32 srtt_us;
	u32 segs_in; /* all that have come, also those that wait for the socket: ACKs may be merged there */
	u16 segments; /* that have come as one; 0 where only the state changes */
	u8 ca_state;
};

struct {
	int (*type)[BPF_MAP_TYPE_RINGBUF];
	int (*max_entries)[1 << 20];
} ring SEC(".maps");

/* As tcp_segs_in() of include/net/tcp.h counts them. */
static inline __attribute__((always_inline)) u16 segments_in(struct sk_buff *skb)
{
	struct skb_shared_info *shared = (void *)skb->head + skb->end;
	u16 segments = 0;

	probe_read_kernel(&segments, sizeof(segments), &shared->gso_segs);
	return segments ? segments : 1;
}

static inline __attribute__((always_inline)) void tell(struct sock *sk, struct sk_buff *skb, u8 ca_state)
{
	struct sender sender = {
		.namespace = sk->__sk_common.skc_net.net->ns.inum,
		.port = sk->__sk_common.skc_num,
	};
	struct tcp_sock *tp;
	struct told *told;

	/* When either side has ended, tcp_probe tells nothing any more: then neither is told. */
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED || !map_lookup_elem(&senders, &sender))
		return;
	tp = skc_to_tcp_sock(sk);
	if (!tp)
		return;
	told = ringbuf_reserve(&ring, sizeof(*told), 0);
	if (!told)
		return;
	told->ns = ktime_get_ns();
	told->cookie = get_socket_cookie(sk);
	told->cwnd = tp->snd_cwnd;
	told->ssthresh = tp->snd_ssthresh;
	told->snd_wnd = tp->snd_wnd;
	told->srtt_us = tp->srtt_us >> 3;
	told->segs_in = tp->segs_in;
	told->segments = skb ? segments_in(skb) : 0;
	told->ca_state = skb ? tp->inet_conn.icsk_ca_state : ca_state;
	ringbuf_submit(told, WAKE_NOBODY);
}

/* The kernel passes arguments as an array of 64-bit words. */
SEC("tp_btf/tcp_probe")
int tcp_probe(u64 *words)
{
	tell((struct sock *)words[0], (struct sk_buff *)words[1], 0);
	return 0;
}

SEC("tp_btf/tcp_cong_state_set")
int tcp_cong_state_set(u64 *words)
{
	tell((struct sock *)words[0], 0, words[1]);
	return 0;
}
