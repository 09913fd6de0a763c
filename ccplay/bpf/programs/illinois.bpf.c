/* SPDX-License-Identifier: MIT
 *
 * Illinois: Reno with growth and reduction set by queueing delay: loss decides when, delay how much.
 *
 * Liu, Basar, Srikant, TCP-Illinois: A Loss and Delay-Based Congestion Control Algorithm for High-Speed
 * Networks, VALUETOOLS 2006. With da the mean queueing delay of the last RTT and dm the maximum so far:
 *	alpha = 10					da <= d1 = 0.01 dm
 *	      = k1 / (k2 + da)				else: from 10 at d1 down to 0.3 at dm
 *	beta  = 1/8					da <= d2 = 0.1 dm
 *	      = 1/2					da >= d3 = 0.8 dm; linear in between
 *	avoidance	cwnd += alpha per RTT
 *	loss		ssthresh = (1 - beta) cwnd
 * Below 15 segments, or while no queueing delay has been measured, it behaves as Reno. alpha returns to 10
 * only after 5 RTTs with a delay below d1. A timeout resets alpha and beta, as in Linux.
 */
#include "ccplay_cc.h"

#define ALPHA_MAX 10000ULL /* thousandths */
#define ALPHA_MIN 300ULL
#define BETA_MIN 125ULL
#define BETA_MAX 500ULL
#define WINDOW_MIN 15
#define THETA 5

struct illinois {
	u64 sum; /* of the RTT samples of this round */
	u32 samples;
	u32 round_end;
	u32 base_rtt;
	u32 most_rtt;
	u32 low; /* consecutive rounds with a delay below d1 */
	u32 alpha; /* 0: unknown */
	u32 beta;
	u32 da;
	u32 dm;
	u32 rest; /* fraction of a segment, see grow() */
};

SHOWN("illinois_alpha_1000 illinois_beta_1000 illinois_da_us illinois_dm_us");

PKTS_ACKED(sk, sample)
{
	struct illinois *i = PRIVATE(sk, struct illinois);

	if (sample->rtt_us <= 0)
		return;
	i->base_rtt = least(i->base_rtt, sample->rtt_us);
	i->most_rtt = max(i->most_rtt, (u32)sample->rtt_us);
	i->sum += sample->rtt_us;
	i->samples++;
}

static __always_inline u32 alpha(struct illinois *i, u64 da, u64 dm)
{
	u64 d1 = dm / 100;

	if (da <= d1) {
		i->low++;
		return !i->alpha || i->low >= THETA ? ALPHA_MAX : i->alpha;
	}
	i->low = 0;
	/* k1 = (dm - d1) a_min a_max / (a_max - a_min), k2 = (dm - d1) a_min / (a_max - a_min) - d1 */
	return (dm - d1) * ALPHA_MAX / ((dm - d1) + (da - d1) * (ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN);
}

static __always_inline u32 beta(u64 da, u64 dm)
{
	u64 d2 = dm / 10, d3 = dm * 8 / 10;

	if (da <= d2)
		return BETA_MIN;
	if (da >= d3 || d3 <= d2)
		return BETA_MAX;
	return (BETA_MIN * (d3 - da) + BETA_MAX * (da - d2)) / (d3 - d2);
}

static __always_inline void judge(struct sock *sk, struct illinois *i)
{
	u64 mean;

	if (!i->samples)
		return;
	mean = i->sum / i->samples;
	i->da = mean > i->base_rtt ? mean - i->base_rtt : 0;
	i->dm = i->most_rtt - i->base_rtt;
	if (i->dm) {
		i->alpha = alpha(i, i->da, i->dm);
		i->beta = beta(i->da, i->dm);
		SHOW(sk, i->alpha, i->beta, i->da, i->dm);
	}
	i->sum = 0;
	i->samples = 0;
}

CONG_AVOID(sk, ack, acked)
{
	struct illinois *i = PRIVATE(sk, struct illinois);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 growth = 1000;

	if (round_ended(tp, ack, &i->round_end))
		judge(sk, i);
	acked = slow_start(tp, acked);
	if (!acked)
		return;
	if (tp->snd_cwnd >= WINDOW_MIN && i->alpha)
		growth = i->alpha;
	grow(tp, &i->rest, growth, acked);
}

SSTHRESH(sk)
{
	struct illinois *i = PRIVATE(sk, struct illinois);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;
	u64 cut = cwnd >= WINDOW_MIN && i->beta ? i->beta : BETA_MAX;

	return max((u32)(cwnd - cwnd * cut / 1000), 2U);
}

SET_STATE(sk, state)
{
	struct illinois *i = PRIVATE(sk, struct illinois);

	if (state == TCP_CA_Loss) {
		i->alpha = 0;
		i->beta = 0;
		i->low = 0;
	}
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL illinois = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.set_state = (void *)cc_set_state,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
