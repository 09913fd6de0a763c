/* SPDX-License-Identifier: MIT
 *
 * Veno: Reno that separates random loss from congestion by Vegas' estimate of the queue; for wireless.
 *
 * Fu, Liew, TCP Veno: TCP Enhancement for Transmission over Wireless Access Networks, IEEE JSAC 21(2),
 * 2003, with N = cwnd * (RTT - BaseRTT) / RTT the segments in the queue and beta = 3:
 *	growth	N < beta: cwnd += 1 per RTT;    else: cwnd += 1 every other RTT
 *	loss	N < beta: random, ssthresh = 4/5 cwnd;    else: congestion, ssthresh = 1/2 cwnd
 */
#include "ccplay_cc.h"

#define BETA 3

struct veno {
	u32 base_rtt;
	u32 rtt; /* minimum of this round */
	u32 last_rtt; /* minimum of the last round */
	u32 round_end;
};

SHOWN("veno_base_rtt_us veno_queued_segments");

static __always_inline u32 backlog(const struct tcp_sock *tp, const struct veno *v)
{
	return queued(tp->snd_cwnd, v->last_rtt, v->base_rtt);
}

PKTS_ACKED(sk, sample)
{
	struct veno *v = PRIVATE(sk, struct veno);

	if (sample->rtt_us <= 0)
		return;
	v->base_rtt = least(v->base_rtt, sample->rtt_us);
	v->rtt = least(v->rtt, sample->rtt_us);
	SHOW(sk, v->base_rtt, backlog(tcp_sk(sk), v));
}

CONG_AVOID(sk, ack, acked)
{
	struct veno *v = PRIVATE(sk, struct veno);
	struct tcp_sock *tp = tcp_sk(sk);

	if (round_ended(tp, ack, &v->round_end) && v->rtt) {
		v->last_rtt = v->rtt;
		v->rtt = 0;
	}
	acked = slow_start(tp, acked);
	if (!acked)
		return;
	/* One segment per 2 cwnd acknowledged is half of Reno's growth. */
	tcp_cong_avoid_ai(tp, backlog(tp, v) < BETA ? tp->snd_cwnd : 2 * tp->snd_cwnd, acked);
}

SSTHRESH(sk)
{
	struct veno *v = PRIVATE(sk, struct veno);
	struct tcp_sock *tp = tcp_sk(sk);

	if (backlog(tp, v) < BETA)
		return max(tp->snd_cwnd * 4 / 5, 2U);
	return max(tp->snd_cwnd / 2, 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL veno = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
