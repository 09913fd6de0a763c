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
 * module has it so (use_rtt_scaling). Before the first loss D counts from the beginning.
 */
#include "ccplay_cc.h"

#define DL_US 1000000ULL
#define RTT_US 100000 /* of a flow that grows by alpha as it is */
#define RTT_MIN_US 10000U
#define RTT_MAX_US 200000U
#define BETA_MIN 500 /* thousandths */
#define BETA_MAX 800

struct loss {
	u64 us; /* when it was */
	u64 rate; /* delivered since the one before, segments a 1000 s; 0: not known */
	u32 delivered; /* by then */
};

struct htcp {
	struct loss last;
	struct loss before; /* the one before: the last may turn out to be none */
	u32 rtt_min;
	u32 rtt_max;
	u32 beta; /* 0: not known yet */
	u32 rest; /* of grow() */
};

SHOWN("htcp_alpha_1000 htcp_beta_1000 htcp_rtt_min_us htcp_rtt_max_us");

INIT(sk)
{
	struct htcp *h = PRIVATE(sk, struct htcp);

	h->last.us = now_us(tcp_sk(sk));
	h->last.delivered = tcp_sk(sk)->delivered;
}

/* max(alpha(D) * RTT_min / 100 ms, 1), in thousandths. */
static __always_inline u64 alpha(const struct htcp *h, u64 now)
{
	u64 d = now - h->last.us;
	u64 ms = d > DL_US ? min((d - DL_US) / 1000, 1000000ULL) : 0;
	u64 rtt = max(min(h->rtt_min, RTT_MAX_US), RTT_MIN_US);

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
	u64 a;

	acked = slow_start(tp, acked);
	if (!acked)
		return;
	a = alpha(h, now_us(tp));
	grow(tp, &h->rest, 2 * (1000 - max(h->beta, (u32)BETA_MIN)) * a / 1000, acked);
	SHOW(sk, a, h->beta, h->rtt_min, h->rtt_max);
}

SSTHRESH(sk)
{
	struct htcp *h = PRIVATE(sk, struct htcp);
	struct tcp_sock *tp = tcp_sk(sk);
	u64 passed = now_us(tp) - h->last.us, rate;
	u32 beta = BETA_MIN;

	rate = (u64)(tp->delivered - h->last.delivered) * 1000000000ULL / max(passed, 1ULL);
	/* 0.8 <= rate / last rate <= 1.2 */
	if (10 * rate >= 8 * h->last.rate && 10 * rate <= 12 * h->last.rate && h->rtt_max)
		beta = (u64)h->rtt_min * 1000 / h->rtt_max;
	h->beta = max(min(beta, (u32)BETA_MAX), (u32)BETA_MIN);
	h->before = h->last;
	h->last.us = now_us(tp);
	h->last.rate = rate;
	h->last.delivered = tp->delivered;
	/* A path may become shorter: let the largest RTT be forgotten little by little. */
	if (h->rtt_max > h->rtt_min)
		h->rtt_max = h->rtt_min + (u64)(h->rtt_max - h->rtt_min) * 95 / 100;
	return max((u32)((u64)tp->snd_cwnd * h->beta / 1000), 2U);
}

UNDO_CWND(sk)
{
	struct htcp *h = PRIVATE(sk, struct htcp);

	h->last = h->before;
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL htcp = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.init = (void *)cc_init,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
