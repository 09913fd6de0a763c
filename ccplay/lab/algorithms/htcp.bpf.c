/* SPDX-License-Identifier: MIT
 *
 * H-TCP: grows faster the longer ago the last loss is; for long fast paths.
 *
 * Leith, Shorten, H-TCP: TCP for High-speed and Long-distance Networks, PFLDnet 2004. With D the seconds
 * since the last loss and D_L = 1 s:
 *	alpha(D) = 1						D <= D_L
 *	         = 1 + 10 (D - D_L) + ((D - D_L) / 2)^2		else
 *	avoidance	cwnd += 2 (1 - beta) max(alpha(D) * RTT_min / 100 ms, 1) an RTT
 *	loss		ssthresh = beta * cwnd
 * beta is RTT_min / RTT_max, which empties the queue and no more, between 0.5 and 0.8; it is 0.5 where the
 * throughput has changed by more than a fifth between two losses, for then the path has changed.
 *
 * RTT_min / 100 ms, kept between 1/10 and 2, lets flows of different RTTs grow alike by the clock: Linux'
 * module has it so (use_rtt_scaling).
 */
#include "ccplay_cc.h"

#define DL_US 1000000ULL
#define RTT_US 100000 /* of a flow that grows by alpha as it is */
#define RTT_MIN_US 10000U
#define RTT_MAX_US 200000U
#define BETA_MIN 500 /* thousandths */
#define BETA_MAX 800

struct htcp {
	u64 loss_us; /* when the last loss was */
	u64 rate; /* delivered between the last two losses, segments a 1000 s */
	u32 delivered; /* by the last loss */
	u32 rtt_min;
	u32 rtt_max;
	u32 beta; /* 0: not known yet */
	u32 rest;
};

SHOWN("htcp_alpha_1000 htcp_beta_1000 htcp_rtt_min_us htcp_rtt_max_us");

static __always_inline u64 alpha(const struct htcp *h, u64 now)
{
	u64 since = h->loss_us && now > h->loss_us ? now - h->loss_us : 0, ms;
	u64 rtt = max(min(h->rtt_min, RTT_MAX_US), RTT_MIN_US);

	if (since <= DL_US)
		return 1000;
	ms = min((since - DL_US) / 1000, 1000000ULL);
	return max((1000 + 10 * ms + ms * ms / 4000) * rtt / RTT_US, 1000ULL);
}

PKTS_ACKED(sk, sample)
{
	struct htcp *h = PRIVATE(sk, struct htcp);

	if (sample->rtt_us <= 0)
		return;
	h->rtt_min = least(h->rtt_min, sample->rtt_us);
	/* What an RTT is while segments are being repaired says nothing of the queue. */
	if (inet_csk(sk)->icsk_ca_state == TCP_CA_Open)
		h->rtt_max = max(h->rtt_max, (u32)sample->rtt_us);
}

CONG_AVOID(sk, ack, acked)
{
	struct htcp *h = PRIVATE(sk, struct htcp);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 growth;

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	growth = 2 * (1000 - max(h->beta, (u32)BETA_MIN)) * alpha(h, now_us(tp)) / 1000;
	grow(tp, &h->rest, growth * acked / tp->snd_cwnd);
	SHOW(sk, alpha(h, now_us(tp)), h->beta, h->rtt_min, h->rtt_max);
}

SSTHRESH(sk)
{
	struct htcp *h = PRIVATE(sk, struct htcp);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 now = now_us(tp), passed = now - h->loss_us, before = h->rate;
	u32 beta = BETA_MIN;

	h->rate = 0;
	if (h->loss_us && passed)
		h->rate = (u64)(tp->delivered - h->delivered) * 1000000000ULL / passed;
	/* 0.8 <= rate / before <= 1.2 */
	if (before && 10 * h->rate >= 8 * before && 10 * h->rate <= 12 * before && h->rtt_max)
		beta = (u64)h->rtt_min * 1000 / h->rtt_max;
	h->beta = max(min(beta, (u32)BETA_MAX), (u32)BETA_MIN);
	h->loss_us = now;
	h->delivered = tp->delivered;
	/* A path may become shorter: let the largest RTT be forgotten little by little. */
	if (h->rtt_max > h->rtt_min)
		h->rtt_max = h->rtt_min + (u64)(h->rtt_max - h->rtt_min) * 95 / 100;
	return max((u32)((u64)tp->snd_cwnd * h->beta / 1000), 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL htcp = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
