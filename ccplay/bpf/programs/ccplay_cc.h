/* SPDX-License-Identifier: MIT
 *
 * The basis of every algorithm: the kernel's types, some functions of TCP, and macros for the operations
 * of struct tcp_congestion_ops (include/net/tcp.h).
 *
 *	INIT(sk)		a connection starts to use the algorithm
 *	RELEASE(sk)		a connection stops using it
 *	SSTHRESH(sk)		congestion: return the new slow start threshold
 *	CONG_AVOID(sk, ack, acked)  `acked` segments were acknowledged up to `ack`: let cwnd grow
 *	UNDO_CWND(sk)		the reduction was spurious: return the cwnd to restore
 *	PKTS_ACKED(sk, sample)	segments were acknowledged: sample->pkts_acked; ->rtt_us is below 0 without an RTT
 *	SET_STATE(sk, state)	Open, Disorder, CWR, Recovery, Loss
 *	CWND_EVENT(sk, event)	see enum tcp_ca_event
 *	IN_ACK_EVENT(sk, flags)	an ACK arrived and is not yet processed; see enum tcp_ca_ack_event_flags
 *	CONG_CONTROL(sk, rate)	instead of CONG_AVOID, as in BBR: after every ACK, also during recovery, set
 *				cwnd and, if you like, the pacing rate; rate->delivered segments arrived in
 *				the last rate->interval_us (below 1: unknown)
 *
 * SSTHRESH(sk) defines the function cc_ssthresh, INIT(sk) cc_init, and so on. SSTHRESH, UNDO_CWND and
 * either CONG_AVOID or CONG_CONTROL are required. PRIVATE(sk, struct mine) holds the connection's state, up
 * to 104 bytes. A program may read the whole socket and write cwnd, ssthresh and the pacing rate.
 */
#ifndef CCPLAY_CC_H
#define CCPLAY_CC_H

#include "vmlinux.h"

#define SEC(name) __attribute__((section(name), used))
#define __always_inline inline __attribute__((always_inline))

/* Required by the kernel for the use of its functions. */
char _license[] SEC("license") = "Dual MIT/GPL";

/* --- functions of the kernel, net/ipv4/tcp_cong.c ------------------------------------------ */

/* cwnd += acked, up to ssthresh; return the rest of `acked`. */
extern u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) __attribute__((section(".ksyms")));

/* cwnd += acked / w. The kernel divides by w unchecked; 0 would crash the machine, hence the macro.
 */
extern void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
	__attribute__((section(".ksyms")));
#define tcp_cong_avoid_ai(tp, w, acked) tcp_cong_avoid_ai(tp, max(w, 1U), acked)

/* --- the operations ------------------------------------------------------------------------ */

/* The kernel passes arguments as an array of 64-bit words, the socket first. */
#define OPERATION(name, parameters, ...)                                 \
	static __always_inline void name##_body parameters;              \
	SEC("struct_ops/" #name) void name(u64 *words)                   \
	{                                                                \
		struct windows before = windows_of(words[0]);            \
                                                                         \
		name##_body((struct sock *)words[0], ##__VA_ARGS__);     \
		bound_what_changed(words[0], before);                    \
	}                                                                \
	static __always_inline void name##_body parameters

#define WINDOW_OPERATION(name, sk, greatest)                             \
	static __always_inline u32 name##_body(struct sock *sk);         \
	SEC("struct_ops/" #name) u32 name(u64 *words)                    \
	{                                                                \
		struct windows before = windows_of(words[0]);            \
		u32 window = name##_body((struct sock *)words[0]);       \
                                                                         \
		bound_what_changed(words[0], before);                    \
		return bounded(window, greatest);                        \
	}                                                                \
	static __always_inline u32 name##_body(struct sock *sk)

#define INIT(sk) OPERATION(cc_init, (struct sock *sk))
#define RELEASE(sk) OPERATION(cc_release, (struct sock *sk))
#define SSTHRESH(sk) WINDOW_OPERATION(cc_ssthresh, sk, INFINITE_SSTHRESH)
#define UNDO_CWND(sk) WINDOW_OPERATION(cc_undo_cwnd, sk, LARGEST_CWND)
#define CONG_AVOID(sk, ack, acked) \
	OPERATION(cc_cong_avoid, (struct sock *sk, u32 ack, u32 acked), words[1], words[2])
#define PKTS_ACKED(sk, sample)                                                    \
	OPERATION(cc_pkts_acked, (struct sock *sk, const struct ack_sample *sample), \
		  (const struct ack_sample *)words[1])
#define SET_STATE(sk, state) OPERATION(cc_set_state, (struct sock *sk, u8 state), words[1])
#define CWND_EVENT(sk, event) \
	OPERATION(cc_cwnd_event, (struct sock *sk, enum tcp_ca_event event), words[1])
#define IN_ACK_EVENT(sk, flags) OPERATION(cc_in_ack_event, (struct sock *sk, u32 flags), words[1])
#define CONG_CONTROL(sk, rate)                                                      \
	OPERATION(cc_cong_control, (struct sock *sk, const struct rate_sample *rate), \
		  (const struct rate_sample *)words[RATE_ARGUMENT])

/* Since Linux 6.10 two more arguments come before the last of cong_control(). */
#define RATE_ARGUMENT                                                                \
	(__builtin_types_compatible_p(                                               \
		 typeof(((struct tcp_congestion_ops *)0)->cong_control),             \
		 void (*)(struct sock *, const struct rate_sample *)) ? 1 : 3)

/* The table of operations, exactly one per file. ccplay fills in the name when it loads the file. */
#define CONGESTION_CONTROL SEC(".struct_ops") struct tcp_congestion_ops
#define NAME "ccplay.cc.name."

/* --- exported variables -------------------------------------------------------------------- */

/*
 * SHOWN("my_w_max_segments my_gain_1000");	names up to eight variables: algorithm, quantity, unit
 * SHOW(sk, m->w_max, m->gain)			sets their values, which are sampled with cwnd
 *
 * Units are _us, _bps, _segments, or the number that stands for 1: my_gain_1000 = 250 means 0.25.
 */
struct shown {
	u64 values[8];
};

#define SHOWN(names)                                                          \
	const char shown_names[] SEC("ccplay.shown") = "ccplay.shown:" names; \
	struct {                                                              \
		int (*type)[BPF_MAP_TYPE_LRU_HASH];                           \
		int (*max_entries)[4096];                                     \
		u64 *key;                                                     \
		struct shown *value;                                          \
	} shown SEC(".maps")

/* The key is the socket's cookie, which exists once the socket has been sampled. */
#define SHOW(sk, ...)                                                  \
	do {                                                           \
		u64 cookie = (sk)->__sk_common.skc_cookie.counter;     \
		struct shown now = { { __VA_ARGS__ } };                \
		struct shown *kept;                                    \
                                                                       \
		if (!cookie)                                           \
			break;                                         \
		kept = bpf_map_lookup_elem(&shown, &cookie);           \
		if (kept)                                              \
			*kept = now;                                   \
		else                                                   \
			bpf_map_update_elem(&shown, &cookie, &now, 0); \
	} while (0)

static void *(*bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)2;

/* --- reading and writing the socket -------------------------------------------------------- */

/* The connection's private state; initially zero. */
#define PRIVATE(sk, type)                                                                     \
	({                                                                                    \
		_Static_assert(sizeof(type) <= 104, "a connection's state has 104 bytes");    \
		(type *)inet_csk(sk)->icsk_ca_priv;                                           \
	})
#define INFINITE_SSTHRESH 0x7fffffff
#define LARGEST_CWND (1U << 25) /* more than any path holds; ccplay warns at half of it */
#define NEEDS_ECN 2 /* a flag: TCP_CONG_NEEDS_ECN */

#define min(a, b) ((a) < (b) ? (a) : (b))
#define max(a, b) ((a) > (b) ? (a) : (b))

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

/* Whether sequence number `a` follows `b`, modulo 2^32. */
static __always_inline bool after(u32 a, u32 b)
{
	return (s32)(b - a) < 0;
}

static __always_inline bool in_slow_start(const struct tcp_sock *tp)
{
	return tp->snd_cwnd < tp->snd_ssthresh;
}

/* is_cwnd_limited of struct tcp_sock: a bit whose place depends on the kernel. */
static __always_inline bool window_was_full(const struct tcp_sock *tp)
{
	const void *at = (const void *)tp + __builtin_preserve_field_info(tp->is_cwnd_limited, 0);
	u64 bits = 0;

	switch (__builtin_preserve_field_info(tp->is_cwnd_limited, 1)) {
	case 1:
		bits = *(const u8 *)at;
		break;
	case 2:
		bits = *(const u16 *)at;
		break;
	case 4:
		bits = *(const u32 *)at;
		break;
	case 8:
		bits = *(const u64 *)at;
		break;
	}
	bits <<= __builtin_preserve_field_info(tp->is_cwnd_limited, 4);
	return bits >> __builtin_preserve_field_info(tp->is_cwnd_limited, 5);
}

/* Whether cwnd limits the sender. If not, cwnd must not grow (RFC 7661). */
static __always_inline bool cwnd_limited(const struct tcp_sock *tp)
{
	if (window_was_full(tp))
		return true;
	return in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The smoothed RTT in microseconds; the kernel stores it times 8. */
static __always_inline u32 srtt_us(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

/* The time of this ACK in microseconds, on a monotonic clock. */
static __always_inline u64 now_us(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp;
}

static __always_inline void set_cwnd(struct tcp_sock *tp, u32 cwnd)
{
	tp->snd_cwnd = max(min(cwnd, tp->snd_cwnd_clamp), 1U);
}

/* Set the pacing rate in bit/s. Call it from CONG_CONTROL only: after CONG_AVOID the kernel sets the rate
 * from cwnd and RTT.
 */
static __always_inline void set_pacing_rate(struct sock *sk, u64 bps)
{
	if (sk->sk_pacing_status == SK_PACING_NONE)
		sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_pacing_rate = bps / 8;
}

/* Return a window that is safe for the kernel, which may divide by it or read it as signed. */
static __always_inline u32 bounded(u32 window, u32 greatest)
{
	return window > LARGEST_CWND ? greatest : max(window, 1U);
}

struct windows {
	u32 cwnd, ssthresh;
};

static __always_inline struct windows windows_of(u64 sk)
{
	struct tcp_sock *tp = tcp_sk((struct sock *)sk);

	return (struct windows){tp->snd_cwnd, tp->snd_ssthresh};
}

/* Bound what the operation itself wrote. Other values stay: some kernels skip a call now and then, and
 * the effect must remain visible.
 */
static __always_inline void bound_what_changed(u64 sk, struct windows before)
{
	struct tcp_sock *tp = tcp_sk((struct sock *)sk);

	if (tp->snd_cwnd != before.cwnd)
		tp->snd_cwnd = bounded(tp->snd_cwnd, LARGEST_CWND);
	if (tp->snd_ssthresh != before.ssthresh)
		tp->snd_ssthresh = bounded(tp->snd_ssthresh, INFINITE_SSTHRESH);
}

/* --- rounds, RTTs and fractions ------------------------------------------------------------- */

/* Whether `ack` ends a round: all data in flight at its start has been acknowledged. *end is the sequence
 * number at which the round ends.
 */
static __always_inline bool round_ended(const struct tcp_sock *tp, u32 ack, u32 *end)
{
	if (*end && !after(ack, *end))
		return false;
	*end = tp->snd_nxt;
	return true;
}

/* The minimum of `known`, where 0 means unknown, and `seen`. */
static __always_inline u32 least(u32 known, u32 seen)
{
	return known && known < seen ? known : seen;
}

/* Segments of `cwnd` that wait in the queue: cwnd * (RTT - BaseRTT) / RTT, Vegas' estimate.
 */
static __always_inline u32 queued(u32 cwnd, u32 rtt, u32 base_rtt)
{
	return rtt > base_rtt ? (u64)cwnd * (rtt - base_rtt) / rtt : 0;
}

/* Grow by `amount` billionths of a segment; *rest keeps the fraction. */
static __always_inline void grow_by(struct tcp_sock *tp, u32 *rest, u64 amount)
{
	u64 total = *rest + amount;

	set_cwnd(tp, tp->snd_cwnd + total / 1000000000);
	*rest = total % 1000000000;
}

/* Grow by `amount` thousandths of a segment per RTT: cwnd += amount * acked / cwnd / 1000.
 */
static __always_inline void grow(struct tcp_sock *tp, u32 *rest, u64 amount, u32 acked)
{
	grow_by(tp, rest, amount * 1000000 * acked / tp->snd_cwnd);
}

/* --- parts of Reno, which other algorithms reuse (RFC 5681) -------------------------------- */

/* Do slow start below ssthresh. Return what is left of `acked` for congestion avoidance: 0 if cwnd must
 * not grow.
 */
static __always_inline u32 slow_start(struct tcp_sock *tp, u32 acked)
{
	if (!cwnd_limited(tp))
		return 0;
	return in_slow_start(tp) ? tcp_slow_start(tp, acked) : acked;
}

/* Slow start, then cwnd += 1 per RTT: 1/cwnd per segment acknowledged. */
static __always_inline void reno_cong_avoid(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	acked = slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

/* ssthresh = cwnd / 2, at least 2 segments. */
static __always_inline u32 reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd >> 1, 2U);
}

/* The cwnd from before the reduction, which the kernel keeps, or the current one if larger. */
static __always_inline u32 reno_undo_cwnd(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	return max(tp->snd_cwnd, tp->prior_cwnd);
}

/* --- a receiver that reports exactly which segments were marked (RFC 8257, section 3.2) ------- */

#define DEMAND_CWR 4 /* TCP_ECN_DEMAND_CWR: acknowledgements carry the echo, ECE */

struct echo {
	u32 ce; /* whether the last segment had CE */
	u32 received; /* rcv_nxt after that segment; begin with rcv_nxt */
};

static long (*bpf_tcp_send_ack)(void *tp, u32 rcv_nxt) = (void *)116;

/* Set or clear ECE in the receiver's acknowledgements. */
static __always_inline void set_echo(struct tcp_sock *tp, u32 marked)
{
	tp->ecn_flags = marked ? tp->ecn_flags | DEMAND_CWR : tp->ecn_flags & ~DEMAND_CWR;
}

/* Call it from CWND_EVENT: when the CE state changes, earlier segments are acknowledged with the old one. */
static __always_inline void echo_marks(struct sock *sk, u32 event, struct echo *e)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 marked = event == CA_EVENT_ECN_IS_CE;

	if (event != CA_EVENT_ECN_IS_CE && event != CA_EVENT_ECN_NO_CE)
		return;
	if (marked != e->ce) {
		/* Segments that await a delayed ACK are acknowledged with the old state. */
		if (icsk->icsk_ack.pending & ICSK_ACK_TIMER) {
			set_echo(tp, e->ce);
			bpf_tcp_send_ack(tp, e->received);
		}
		icsk->icsk_ack.pending |= ICSK_ACK_NOW;
	}
	e->received = tp->rcv_nxt;
	e->ce = marked;
	set_echo(tp, marked);
}

#endif
