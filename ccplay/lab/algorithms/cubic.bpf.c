/* SPDX-License-Identifier: MIT
 *
 * CUBIC: grows along a cubic curve in real time, back to where loss came last; cuts to 0.7.
 *
 * RFC 9438, CUBIC for Fast and Long-Distance Networks. With C = 0.4, beta = 0.7 and t the seconds
 * since the last reduction:
 *	W_cubic(t) = C * (t - K)^3 + W_max			figure 1
 *	K          = cbrt((W_max - cwnd_epoch) / C)		figure 2
 * The curve is steep at first, flat round W_max, where loss came last, and then steep again to find
 * out whether there is more. On short paths Reno would be faster, and CUBIC follows an estimate of it:
 *	W_est     += alpha * acked / cwnd,  alpha = 3 (1 - beta) / (1 + beta)	figure 4
 * Loss:
 *	W_max    = cwnd, or cwnd * (1 + beta) / 2 where it was lower than the last: to make room
 *	ssthresh = beta * cwnd
 * Slow start ends before loss, too, once the RTT has grown by an eighth: the rule on delay of HyStart
 * (Ha, Rhee, Taming the Elephants, Computer Networks 55, 2011).
 */
#include "ccplay_cc.h"

#define BETA 717 /* of 1024 */
#define ALPHA 542 /* of 1024: 3 (1 - 0.7) / (1 + 0.7) */
#define HYSTART_LOW_WINDOW 16
#define HYSTART_SAMPLES 8

struct cubic {
	u32 w_max;
	u32 w_last_max; /* before fast convergence */
	u32 origin; /* where the curve is flat: W_max, or cwnd where that is more already */
	u32 k_ms;
	u64 epoch_us; /* when the curve began; 0: with the next ACK */
	u64 left_us; /* when the connection had nothing to send last */
	u32 w_est; /* what Reno would have */
	u32 est_rest; /* and a fraction, of 2^20 */
	u32 base_rtt;
	u32 round_end;
	u32 round_rtt; /* the least RTT of this round, of the first few samples */
	u32 round_samples;
};

SHOWN("cubic_w_max_segments cubic_k_us cubic_w_est_segments");

/* The cube root, rounded down, bit by bit. */
static __always_inline u32 cube_root(u64 x)
{
	u64 root = 0;

	for (int bit = 20; bit >= 0; bit--) {
		u64 more = root | (1ULL << bit);

		if (more * more * more <= x)
			root = more;
	}
	return root;
}

static __always_inline void begin_epoch(struct cubic *c, u32 cwnd, u64 now)
{
	c->epoch_us = now;
	c->w_est = cwnd;
	c->est_rest = 0;
	c->origin = max(c->w_max, cwnd);
	/* 1 / C = 2.5 s^3, and a second has 1000 ms: 2.5e9. */
	c->k_ms = cube_root((u64)(c->origin - cwnd) * 2500000000ULL);
}

/* W_cubic one RTT from now: where cwnd is to be by then. */
static __always_inline u32 curve(const struct cubic *c, u64 now)
{
	u64 t = (now + c->base_rtt - c->epoch_us) / 1000;
	u64 away = t < c->k_ms ? c->k_ms - t : t - c->k_ms;
	u64 delta;

	away = min(away, 1000000ULL);
	delta = 4 * away * away * away / 10000000000ULL;
	if (t >= c->k_ms)
		return c->origin + delta;
	return delta < c->origin ? c->origin - delta : 1;
}

CONG_AVOID(sk, ack, acked)
{
	struct cubic *c = PRIVATE(sk, struct cubic);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd, target, every;

	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		acked = tcp_slow_start(tp, acked);
		if (!acked)
			return;
	}
	cwnd = tp->snd_cwnd;
	if (!c->epoch_us)
		begin_epoch(c, cwnd, now_us(tp));

	/* One segment more for `every` so many acknowledged takes cwnd to the target in an RTT. */
	target = min(curve(c, now_us(tp)), cwnd + cwnd / 2);
	every = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
	if (!c->w_max)
		every = min(every, 20U); /* nothing is known yet: don't stand still */

	c->est_rest += (ALPHA << 10) * (u64)acked / cwnd;
	c->w_est += c->est_rest >> 20;
	c->est_rest &= (1 << 20) - 1;
	if (c->w_est > cwnd)
		every = min(every, cwnd / (c->w_est - cwnd));
	tcp_cong_avoid_ai(tp, max(every, 2U), acked);
	SHOW(sk, c->w_max, c->k_ms * 1000ULL, c->w_est);
}

SSTHRESH(sk)
{
	struct cubic *c = PRIVATE(sk, struct cubic);
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	c->epoch_us = 0;
	c->w_max = cwnd < c->w_last_max ? (u64)cwnd * (1024 + BETA) / 2048 : cwnd;
	c->w_last_max = c->w_max;
	return max((u32)((u64)cwnd * BETA / 1024), 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

SET_STATE(sk, state)
{
	struct cubic *c = PRIVATE(sk, struct cubic);

	if (state == TCP_CA_Loss) {
		/* After a timeout all that was known is old. */
		c->epoch_us = 0;
		c->w_max = 0;
		c->w_last_max = 0;
	}
}

CWND_EVENT(sk, event)
{
	struct cubic *c = PRIVATE(sk, struct cubic);
	struct tcp_sock *tp = tcp_sk(sk);

	/* Time without anything to send does not count: shift the curve by it (section 5.8). */
	if (event == CA_EVENT_TX_START && c->epoch_us && c->left_us) {
		u64 now = now_us(tp);

		if (now > c->left_us)
			c->epoch_us = min(c->epoch_us + (now - c->left_us), now);
	}
}

PKTS_ACKED(sk, sample)
{
	struct cubic *c = PRIVATE(sk, struct cubic);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = sample->rtt_us;

	c->left_us = now_us(tp);
	if (sample->rtt_us <= 0)
		return;
	c->base_rtt = least(c->base_rtt, rtt);
	if (!in_slow_start(tp) || tp->snd_cwnd < HYSTART_LOW_WINDOW)
		return;
	if (round_ended(tp, tp->snd_una, &c->round_end)) {
		c->round_rtt = 0;
		c->round_samples = 0;
	}
	if (c->round_samples < HYSTART_SAMPLES) {
		c->round_rtt = least(c->round_rtt, rtt);
		c->round_samples++;
	} else {
		u32 more = min(max(c->base_rtt / 8, 4000U), 16000U);

		if (c->round_rtt > c->base_rtt + more)
			tp->snd_ssthresh = tp->snd_cwnd;
	}
}

CONGESTION_CONTROL cubic = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.set_state = (void *)cc_set_state,
	.cwnd_event = (void *)cc_cwnd_event,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
