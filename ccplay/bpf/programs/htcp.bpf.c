/* SPDX-License-Identifier: MIT
 *
 * H-TCP: the longer ago the last loss, the faster cwnd grows; for fast long-distance paths.
 *
 * Leith, Shorten, H-TCP: TCP for High-speed and Long-distance Networks, PFLDnet 2004. With D the seconds
 * since the last loss and D_L = 1 s:
 *	alpha(D) = 1						D <= D_L
 *	         = 1 + 10 (D - D_L) + ((D - D_L) / 2)^2		else
 *	avoidance	cwnd += 2 (1 - beta) max(alpha(D) * RTT_min / 100 ms, 1) per RTT
 *	loss		ssthresh = beta * cwnd
 * beta = RTT_min / RTT_max, which just empties the queue, limited to 0.5 to 0.8. If throughput changed by
 * more than a fifth between two losses, the path has changed and beta = 0.5.
 *
 * RTT_min / 100 ms, limited to 0.1 to 2, makes flows with different RTTs grow equally per second, as in the
 * Linux module (use_rtt_scaling). Before the first loss D counts from the start of the connection.
 */
#include "ccplay_cc.h"

#define DL_US 1000000ULL
#define RTT_US 100000 /* the RTT at which alpha is not scaled */
#define RTT_MIN_US 10000U
#define RTT_MAX_US 200000U
#define BETA_MIN 500 /* thousandths */
#define BETA_MAX 800

struct loss {
	u64 us; /* its time */
	u64 rate; /* delivery rate since the loss before, segments per 1000 s; 0: unknown */
	u32 delivered; /* segments delivered by then */
};

struct htcp {
	struct loss last;
	struct loss before; /* restored if the last one proves spurious */
	u32 rtt_min;
	u32 rtt_max;
	u32 beta; /* 0: unknown */
	u32 rest; /* fraction of a segment, see grow() */
};

SHOWN("htcp_alpha_1000 htcp_beta_1000 htcp_rtt_min_us htcp_rtt_max_us");

INIT(sk)
{
	struct htcp *h = PRIVATE(sk, struct htcp);

	h->last.us = now_us(tcp_sk(sk));
	h->last.delivered = tcp_sk(sk)->delivered;
}

/* max(alpha(D) * RTT_min / 100 ms, 1) in thousandths. */
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
	/* RTT samples during recovery do not reflect the queue. */
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
	/* The path may have become shorter: let RTT_max decay. */
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
