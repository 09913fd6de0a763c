/* SPDX-License-Identifier: MIT
 *
 * YeAH: Scalable TCP while the queue is short, Reno once it grows; drains the queue in advance.
 *
 * Baiocchi, Castellani, Vacirca, YeAH-TCP: Yet Another Highspeed TCP, PFLDnet 2007. Once per RTT, with
 * RTT_q = RTT - RTT_base, the minimum of the round:
 *	Q = RTT_q * cwnd / RTT		segments in the queue
 *	L = RTT_q / RTT_base		level of congestion
 *	fast mode: Q < Q_max = 80 and L < 1/8	cwnd += 0.01 per ACK, as in Scalable TCP
 *	slow mode: else				cwnd += 1 per RTT, as in Reno; if Q > Q_max, cwnd -= Q
 *		(precautionary decongestion), by at most half, and never below Reno's window
 * On loss: if slow mode has lasted fewer than 16 RTTs, no Reno flow competes, and cwnd is reduced by Q, at
 * least an eighth and at most half; else by half, as in Reno.
 */
#include "ccplay_cc.h"

#define Q_MAX 80
#define PHI 8
#define STCP_ACKS 100
#define RHO 16
#define ZETA 50

struct yeah {
	u32 base_rtt;
	u32 rtt;
	u32 round_end;
	u32 queue; /* Q of the last round */
	u32 slow; /* consecutive rounds in slow mode */
	u32 fast; /* consecutive rounds in fast mode */
	u32 reno; /* estimate of Reno's window */
};

SHOWN("yeah_queued_segments yeah_base_rtt_us yeah_slow_rounds");

PKTS_ACKED(sk, sample)
{
	struct yeah *y = PRIVATE(sk, struct yeah);

	if (sample->rtt_us <= 0)
		return;
	y->base_rtt = least(y->base_rtt, sample->rtt_us);
	y->rtt = least(y->rtt, sample->rtt_us);
}

/* Once per round: choose the mode; drain the queue if necessary. */
static __always_inline void judge(struct tcp_sock *tp, struct yeah *y)
{
	u32 cwnd = tp->snd_cwnd;

	if (!y->rtt)
		return;
	y->queue = queued(cwnd, y->rtt, y->base_rtt);
	if (y->queue > Q_MAX || y->rtt - y->base_rtt > y->base_rtt / PHI) {
		y->slow++;
		y->fast = 0;
		if (y->queue > Q_MAX && cwnd > y->reno) {
			set_cwnd(tp, max(cwnd - min(y->queue, cwnd / 2), y->reno));
			tp->snd_ssthresh = tp->snd_cwnd;
		}
		y->reno = y->reno <= 2 ? max(tp->snd_cwnd / 2, 2U) : y->reno + 1;
	} else {
		y->fast++;
		if (y->fast > ZETA) {
			/* No Reno flow competes any more. */
			y->reno = 2;
			y->fast = 0;
		}
		y->slow = 0;
	}
	y->rtt = 0;
}

CONG_AVOID(sk, ack, acked)
{
	struct yeah *y = PRIVATE(sk, struct yeah);
	struct tcp_sock *tp = tcp_sk(sk);

	if (round_ended(tp, ack, &y->round_end))
		judge(tp, y);
	SHOW(sk, y->queue, y->base_rtt, y->slow);
	acked = slow_start(tp, acked);
	if (!acked)
		return;
	if (!y->slow)
		tcp_cong_avoid_ai(tp, min(tp->snd_cwnd, (u32)STCP_ACKS), acked);
	else
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

SSTHRESH(sk)
{
	struct yeah *y = PRIVATE(sk, struct yeah);
	u32 cwnd = tcp_sk(sk)->snd_cwnd, cut = cwnd / 2;

	if (y->slow < RHO)
		cut = max(min(y->queue, cwnd / 2), cwnd / 8);
	y->fast = 0;
	y->reno = max(y->reno / 2, 2U);
	return max(cwnd - cut, 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL yeah = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
