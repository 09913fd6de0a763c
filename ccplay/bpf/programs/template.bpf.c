/* SPDX-License-Identifier: MIT
 *
 * NAME_HERE: describe in one sentence what is different about it.
 *
 * A congestion control decides how many segments may be in flight: the congestion window, cwnd.
 * Linux calls the operations below; this file defines what they do. Unchanged, it is Reno:
 *	slow start		cwnd += 1 for every segment acknowledged
 *	congestion avoidance	cwnd += INCREASE per RTT
 *	loss			ssthresh = cwnd * KEPT
 * Change one thing, save, and watch the effect:
 *	ccplay algorithm check NAME_HERE.bpf.c
 *	ccplay --algorithm NAME_HERE.bpf.c	then choose it for a flow
 *
 * clang compiles it to BPF, and the kernel verifies it before it runs: no endless loops, no invalid
 * pointers, no floating point. It can make a connection slow, but it can't crash anything. ccplay_cc.h has
 * every operation and helper; `ccplay algorithm list` shows where it and the other algorithms are.
 */
#include "ccplay_cc.h"

#define INCREASE 1 /* segments per RTT */
#define KEPT 512 /* share of cwnd that a loss leaves, times 1024 */

/* State of a connection, at most 104 bytes; initially zero. */
struct mine {
	u32 base_rtt; /* minimum RTT in microseconds */
};

/* Variables sampled with cwnd and plotted (key v), with their units; SHOW sets their values. */
SHOWN("my_base_rtt_us");

/* Segments were acknowledged: let cwnd grow. Not called during loss recovery. An algorithm with its own
 * pacing rate, such as BBR, defines CONG_CONTROL instead.
 */
CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* If the application sends too little, cwnd must not grow. */
	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* cwnd += 1 for this many segments acknowledged; an RTT acknowledges cwnd of them. To set cwnd
	 * directly, call set_cwnd(tp, cwnd).
	 */
	tcp_cong_avoid_ai(tp, max(tp->snd_cwnd / INCREASE, 1U), acked);
}

/* A loss or an ECN mark: return the new ssthresh. TCP retransmits what was lost. */
SSTHRESH(sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max(cwnd * KEPT / 1024, 2U);
}

/* The loss was spurious: return the cwnd to restore. */
UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

/* An RTT was measured. Delay-based algorithms compare it with base_rtt in CONG_AVOID. */
PKTS_ACKED(sk, sample)
{
	struct mine *m = PRIVATE(sk, struct mine);

	if (sample->rtt_us > 0)
		m->base_rtt = least(m->base_rtt, sample->rtt_us);
	SHOW(sk, m->base_rtt);
}

/* The operations that the kernel calls. Name those that you add here too. */
CONGESTION_CONTROL algorithm = {
	.cong_avoid = (void *)cc_cong_avoid,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
