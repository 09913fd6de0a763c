/* SPDX-License-Identifier: MIT
 *
 * Vegas: keeps 2 to 4 segments in the queue, judged by RTT alone; yields to flows that fill it.
 *
 * Brakmo, Peterson, TCP Vegas: End to End Congestion Avoidance on a Global Internet, IEEE JSAC 13(8),
 * 1995, section 3. Once per RTT, with BaseRTT the minimum RTT and RTT that of this round:
 *	Diff = (cwnd / BaseRTT - cwnd / RTT) * BaseRTT: the segments in the queue
 *	avoidance:  Diff < alpha  cwnd += 1;   Diff > beta  cwnd -= 1;   else unchanged
 *	slow start: doubles every other RTT; ends when Diff > gamma
 * alpha = 2, beta = 4, gamma = 1 segments. A loss halves cwnd, as in Reno.
 *
 * As in Linux, RTT is the minimum of the round, so that delayed ACKs do not count as a queue, and slow
 * start ends with cwnd at what the path holds plus 1. The paper takes the mean, and reduces cwnd by an
 * eighth. If the path becomes longer, Vegas takes the difference for a queue: BaseRTT only falls.
 */
#include "ccplay_cc.h"

#define ALPHA 2
#define BETA 4
#define GAMMA 1
#define ENOUGH 3 /* RTT samples in a round; fewer may all come from delayed ACKs */

struct vegas {
	u32 base_rtt;
	u32 round_rtt;
	u32 round_end;
	u32 samples;
	u32 holds; /* slow start: whether cwnd is held in this round */
};

/* The kernel module's names, so that the two can be compared. */
SHOWN("vegas_minrtt_us vegas_rtt_us vegas_queued_segments");

PKTS_ACKED(sk, sample)
{
	struct vegas *v = PRIVATE(sk, struct vegas);

	if (sample->rtt_us <= 0)
		return;
	v->base_rtt = least(v->base_rtt, sample->rtt_us);
	v->round_rtt = least(v->round_rtt, sample->rtt_us);
	v->samples++;
}

CONG_AVOID(sk, ack, acked)
{
	struct vegas *v = PRIVATE(sk, struct vegas);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tp->snd_cwnd, diff;

	if (!round_ended(tp, ack, &v->round_end)) {
		if (!v->holds)
			slow_start(tp, acked);
		return;
	}
	diff = queued(cwnd, v->round_rtt, v->base_rtt);
	if (v->samples < ENOUGH) {
		reno_cong_avoid(sk, acked);
	} else if (in_slow_start(tp)) {
		v->holds = !v->holds;
		if (diff > GAMMA) {
			/* Reduce to what the path holds; congestion avoidance follows. */
			set_cwnd(tp, max(cwnd - diff + 1, 2U));
			tp->snd_ssthresh = max(min(tp->snd_ssthresh, tp->snd_cwnd - 1), 2U);
		}
	} else if (diff < ALPHA && cwnd_limited(tp)) {
		set_cwnd(tp, cwnd + 1);
	} else if (diff > BETA) {
		set_cwnd(tp, max(cwnd - 1, 2U));
		tp->snd_ssthresh = max(min(tp->snd_ssthresh, tp->snd_cwnd - 1), 2U);
	}
	SHOW(sk, v->base_rtt, v->round_rtt, diff);
	v->round_rtt = 0;
	v->samples = 0;
}

SSTHRESH(sk)
{
	return reno_ssthresh(sk);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

/* Samples from before a pause or a loss do not apply to the round after it. */
static __always_inline void begin_round(struct vegas *v)
{
	v->round_end = 0;
	v->round_rtt = 0;
	v->samples = 0;
}

CWND_EVENT(sk, event)
{
	if (event == CA_EVENT_CWND_RESTART || event == CA_EVENT_TX_START)
		begin_round(PRIVATE(sk, struct vegas));
}

SET_STATE(sk, state)
{
	if (state == TCP_CA_Open)
		begin_round(PRIVATE(sk, struct vegas));
}

CONGESTION_CONTROL vegas = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.cwnd_event = (void *)cc_cwnd_event,
	.set_state = (void *)cc_set_state,
	.name = NAME,
};
