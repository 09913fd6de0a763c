/* SPDX-License-Identifier: MIT
 *
 * CUBIC: cwnd is a cubic function of the time since the last loss; a loss reduces it to 0.7.
 *
 * RFC 9438, CUBIC for Fast and Long-Distance Networks. With C = 0.4, beta = 0.7 and t the
 * seconds since the last reduction:
 *	W_cubic(t) = C * (t - K)^3 + W_max			figure 1
 *	K          = cbrt((W_max - cwnd_epoch) / C)		figure 2
 * The curve is steep at first, flat around W_max, the window of the last loss, and then steep again to
 * probe for more bandwidth. On short paths Reno would be faster; there CUBIC follows an estimate of it:
 *	W_est     += alpha * acked / cwnd,  alpha = 3 (1 - beta) / (1 + beta)	figure 4
 * On loss:
 *	W_max    = cwnd, or cwnd * (1 + beta) / 2 if cwnd was below the last W_max (fast convergence)
 *	ssthresh = beta * cwnd
 * Slow start also ends without loss once the RTT has grown by an eighth (at least 4, at most 16 ms): the
 * delay rule of HyStart (Ha, Rhee, Taming the Elephants, Computer Networks 55, 2011).
 *
 * As in Linux, cwnd grows by at least 5 % per RTT while no W_max is known, and alpha is constant. The RFC
 * sets alpha to 1 once W_est exceeds the cwnd of the last loss.
 */
#include "ccplay_cc.h"

#define BETA 717 /* of 1024 */
#define ALPHA 542 /* of 1024: 3 (1 - 0.7) / (1 + 0.7) */
#define HYSTART_LOW_WINDOW 16
#define HYSTART_SAMPLES 8

/* State that every reduction resets. */
struct curve {
	u64 epoch_us; /* start of the epoch; 0: it starts with the next ACK */
	u32 w_max;
	u32 origin; /* the plateau: max(W_max, cwnd) */
	u32 k_ms;
	u32 w_est; /* estimate of Reno's window */
	u32 est_rest; /* its fraction, in units of 2^-20 */
};

struct cubic {
	struct curve curve;
	struct curve before; /* restored if the reduction proves spurious */
	u64 left_us; /* time of the last ACK; afterwards the connection may be idle */
	u32 base_rtt;
	u32 round_end;
	u32 round_rtt; /* minimum of the first RTT samples of this round */
	u32 round_samples;
};

SHOWN("cubic_w_max_segments cubic_k_us cubic_w_est_segments");

/* Cube root, within 1: Newton's method for x^3 = a, starting above the root. */
static __always_inline u64 cube_root(u64 a)
{
	u64 x = 1 << 22;

	for (int step = 0; step < 42; step++)
		x = (2 * x + a / max(x * x, 1ULL)) / 3;
	return x;
}

static __always_inline void begin_epoch(struct curve *c, u32 cwnd, u64 now)
{
	c->epoch_us = now;
	c->w_est = cwnd;
	c->est_rest = 0;
	c->origin = max(c->w_max, cwnd);
	/* 1 / C = 2.5 s^3 = 2.5e9 ms^3 */
	c->k_ms = cube_root((u64)(c->origin - cwnd) * 2500000000ULL);
}

/* W_cubic(t) in segments. */
static __always_inline u32 w_cubic(const struct curve *c, u64 t_us)
{
	u64 t = t_us / 1000;
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
	struct cubic *m = PRIVATE(sk, struct cubic);
	struct curve *c = &m->curve;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd, target, every;

	acked = slow_start(tp, acked);
	if (!acked)
		return;
	cwnd = tp->snd_cwnd;
	if (!c->epoch_us)
		begin_epoch(c, cwnd, now_us(tp));

	/* The target is W_cubic one RTT from now: cwnd += 1 for every `every` segments acknowledged. */
	target = w_cubic(c, now_us(tp) - c->epoch_us + m->base_rtt);
	target = min(target, cwnd + cwnd / 2);
	every = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
	if (!c->w_max)
		every = min(every, 20U); /* W_max is unknown: grow by 5 % */

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
	struct cubic *m = PRIVATE(sk, struct cubic);
	struct curve *c = &m->curve;
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	m->before = *c;
	c->epoch_us = 0;
	c->w_max = cwnd < c->w_max ? (u64)cwnd * (1024 + BETA) / 2048 : cwnd;
	return max((u32)((u64)cwnd * BETA / 1024), 2U);
}

/* Spurious congestion event: restore the curve (section 4.9). */
UNDO_CWND(sk)
{
	struct cubic *m = PRIVATE(sk, struct cubic);

	m->curve = m->before;
	return reno_undo_cwnd(sk);
}

SET_STATE(sk, state)
{
	struct cubic *m = PRIVATE(sk, struct cubic);

	if (state == TCP_CA_Loss) {
		/* A timeout makes earlier measurements obsolete. */
		m->curve.epoch_us = 0;
		m->curve.w_max = 0;
	}
}

CWND_EVENT(sk, event)
{
	struct cubic *m = PRIVATE(sk, struct cubic);
	u64 now = now_us(tcp_sk(sk));

	/* Idle time does not count: shift the epoch by it (section 5.8). */
	if (event == CA_EVENT_TX_START && m->curve.epoch_us && m->left_us)
		m->curve.epoch_us = min(m->curve.epoch_us + (now - m->left_us), now);
}

PKTS_ACKED(sk, sample)
{
	struct cubic *m = PRIVATE(sk, struct cubic);
	struct tcp_sock *tp = tcp_sk(sk);

	m->left_us = now_us(tp);
	if (sample->rtt_us <= 0)
		return;
	m->base_rtt = least(m->base_rtt, sample->rtt_us);
	if (!in_slow_start(tp) || tp->snd_cwnd < HYSTART_LOW_WINDOW) {
		m->round_end = 0;
		return;
	}
	if (round_ended(tp, tp->snd_una, &m->round_end)) {
		m->round_rtt = 0;
		m->round_samples = 0;
	}
	if (m->round_samples < HYSTART_SAMPLES) {
		m->round_rtt = least(m->round_rtt, sample->rtt_us);
		m->round_samples++;
	} else {
		u32 more = min(max(m->base_rtt / 8, 4000U), 16000U);

		if (m->round_rtt > m->base_rtt + more)
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
