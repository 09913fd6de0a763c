/* SPDX-License-Identifier: MIT
 *
 * Westwood+: Reno, but a loss sets cwnd by the bandwidth measured once per RTT; for wireless links.
 *
 * Grieco, Mascolo, Performance Evaluation and Comparison of Westwood+, New Reno and Vegas TCP Congestion
 * Control, ACM CCR 34(2), 2004. Segments acknowledged in an RTT, at least 50 ms, make one sample,
 * so that compressed ACKs do no harm (see westwood.bpf.c). A filter of weight 7/8 smooths the samples:
 *	b_k = d_k / D_k				d_k segments in the round of length D_k
 *	B_k = 7/8 * B_(k-1) + 1/8 * b_k
 * On loss:
 *	ssthresh = B * RTT_min			what the path holds without a queue; at most cwnd
 * The kernel's module `westwood` is this algorithm with a second filter of the same kind after the first.
 */
#include "ccplay_cc.h"

#define SHORTEST_ROUND_US 50000

struct westwood {
	u64 estimate; /* B in segments per second, times 256 */
	u64 round_us; /* start of this round */
	u32 round_delivered; /* segments delivered before it */
	u32 rtt_min;
};

SHOWN("westwood_bandwidth_bps westwood_rtt_min_us westwood_holds_segments");

/* B * RTT_min in segments. */
static __always_inline u32 holds(const struct westwood *w)
{
	return (w->estimate * w->rtt_min / 1000000) >> 8;
}

PKTS_ACKED(sk, sample)
{
	struct westwood *w = PRIVATE(sk, struct westwood);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = now_us(tp), passed = now - w->round_us;

	if (sample->rtt_us > 0)
		w->rtt_min = least(w->rtt_min, sample->rtt_us);
	if (w->round_us && passed < max(srtt_us(tp), (u32)SHORTEST_ROUND_US))
		return;
	if (w->round_us) {
		u64 now_is = ((u64)(tp->delivered - w->round_delivered) << 8) * 1000000 / passed;

		w->estimate = w->estimate ? (7 * w->estimate + now_is) / 8 : now_is;
	}
	w->round_us = now;
	w->round_delivered = tp->delivered;
}

CONG_AVOID(sk, ack, acked)
{
	struct westwood *w = PRIVATE(sk, struct westwood);

	reno_cong_avoid(sk, acked);
	SHOW(sk, (w->estimate * tcp_sk(sk)->mss_cache * 8) >> 8, w->rtt_min, holds(w));
}

SSTHRESH(sk)
{
	return max(min(holds(PRIVATE(sk, struct westwood)), tcp_sk(sk)->snd_cwnd), 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL westwood_plus = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
