/* SPDX-License-Identifier: MIT
 *
 * NAME_HERE: say in one sentence what is different about it.
 *
 * A congestion control decides how many segments may be in flight: the congestion window, cwnd.
 * Linux calls the operations below, and this file says what they do. As it stands it is Reno:
 *	slow start		cwnd += 1 for every segment acknowledged
 *	congestion avoidance	cwnd += INCREASE an RTT
 *	loss			ssthresh = cwnd * KEPT
 * Change one thing, save, and watch the effect:
 *	ccplay algorithm check NAME_HERE.bpf.c
 *	ccplay --algorithm NAME_HERE.bpf.c	and choose it for a flow
 *
 * It is compiled by clang to BPF and checked by the kernel before it may run: no endless loops, no
 * invalid pointers, no floating point. It can make a connection slow, but it can't crash anything.
 * ccplay_cc.h has every operation and helper; `ccplay algorithm list` says where it and the others are.
 */
#include "ccplay_cc.h"

#define INCREASE 1 /* segments an RTT */
#define KEPT 512 /* of 1024: what a loss leaves of cwnd */

/* What is kept of each connection, 104 bytes at most; all zero when it begins. */
struct mine {
	u32 base_rtt; /* the least RTT seen, in microseconds */
};

/* Values to be sampled beside cwnd and drawn (key v), with their units; SHOW says what they are. */
SHOWN("my_base_rtt_us");

/* Segments were acknowledged: let cwnd grow. Not called while losses are repaired. An algorithm that paces
 * by a rate of its own, as BBR does, has CONG_CONTROL in place of this.
 */
CONG_AVOID(sk, ack, acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	/* Where the application has too little to send, cwnd must stay. */
	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	/* One segment more for so many acknowledged: a whole window of them is an RTT. To set cwnd
	 * outright, call set_cwnd(tp, cwnd).
	 */
	tcp_cong_avoid_ai(tp, max(tp->snd_cwnd / INCREASE, 1U), acked);
}

/* A loss, or an ECN mark: return the window to fall to. TCP repairs what was lost. */
SSTHRESH(sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max(cwnd * KEPT / 1024, 2U);
}

/* It was no loss after all: return the window to go back to. */
UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

/* An RTT was measured. An algorithm that heeds delay compares it with base_rtt in CONG_AVOID. */
PKTS_ACKED(sk, sample)
{
	struct mine *m = PRIVATE(sk, struct mine);

	if (sample->rtt_us > 0)
		m->base_rtt = least(m->base_rtt, sample->rtt_us);
	SHOW(sk, m->base_rtt);
}

/* What the kernel is to call when. Operations that you add have to be named here too. */
CONGESTION_CONTROL algorithm = {
	.cong_avoid = (void *)cc_cong_avoid,
	.ssthresh = (void *)cc_ssthresh,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
