/* SPDX-License-Identifier: MIT
 *
 * LEDBAT: background traffic: keeps queueing delay at 60 ms and yields to flows that add to it.
 *
 * RFC 6817, Low Extra Delay Background Transport, section 2.4.2. On each ACK, with base the minimum delay
 * of the last minutes and current the minimum of the last few samples:
 *	queuing_delay = current - base
 *	off_target    = (TARGET - queuing_delay) / TARGET
 *	cwnd         += GAIN * off_target * acked / cwnd,  at most 1 segment per RTT
 * A loss halves cwnd, as in Reno. The RFC limits TARGET to 100 ms; LEDBAT++ and Windows use 60 ms. As in
 * LEDBAT++ (Balasubramanian et al., draft-irtf-iccrg-ledbat-plus-plus), slow start ends at 3/4 of TARGET,
 * cwnd falls by at most half per RTT, and the delay is the RTT: the kernel provides no one-way delay to an
 * algorithm, so a queue on the return path counts too. Linux's low-priority algorithm, `lp`, is a different
 * one (TCP-LP).
 *
 * A cwnd that is not used does not grow; this replaces the RFC's max_allowed_cwnd. A latecomer takes the
 * queue of an earlier flow for part of the path and adds its own (section 4.4).
 */
#include "ccplay_cc.h"

#define TARGET_US 60000
#define GAIN 1
#define MINUTES 10
#define SAMPLES 4
#define MINUTE_US 60000000ULL

struct ledbat {
	u64 minute_us; /* start of this minute */
	u32 base[MINUTES]; /* minimum RTT of each minute */
	u32 current[SAMPLES];
	u32 minute;
	u32 sample;
	u32 rest_up; /* fraction of a segment, see grow() */
	u32 rest_down; /* the same of shrink() */
};

SHOWN("ledbat_base_us ledbat_queuing_us");

/* slots[at] = value: the verifier accepts only constant indices here. */
#define PUT(slots, at, value)                                                  \
	for (u32 slot = 0; slot < sizeof(slots) / sizeof((slots)[0]); slot++) \
		if (slot == (at))                                              \
			(slots)[slot] = (value)

PKTS_ACKED(sk, sample)
{
	struct ledbat *l = PRIVATE(sk, struct ledbat);
	struct tcp_sock *tp = tcp_sk(sk);

	if (sample->rtt_us <= 0)
		return;
	if (now_us(tp) - l->minute_us > MINUTE_US) {
		l->minute_us = now_us(tp);
		l->minute = (l->minute + 1) % MINUTES;
		PUT(l->base, l->minute, 0);
	}
	PUT(l->base, l->minute, least(l->base[slot], sample->rtt_us));
	l->sample = (l->sample + 1) % SAMPLES;
	PUT(l->current, l->sample, sample->rtt_us);
}

static __always_inline u32 base_delay(const struct ledbat *l)
{
	u32 base = 0;

	for (u32 i = 0; i < MINUTES; i++)
		if (l->base[i])
			base = least(base, l->base[i]);
	return base;
}

static __always_inline u32 queuing_delay(const struct ledbat *l, u32 base)
{
	u32 current = 0;

	for (u32 i = 0; i < SAMPLES; i++)
		if (l->current[i])
			current = least(current, l->current[i]);
	return current > base ? current - base : 0;
}

/* The inverse of grow(); cwnd stays at 2 segments or more. */
static __always_inline void shrink(struct tcp_sock *tp, u32 *rest, u64 amount, u32 acked)
{
	u64 total = *rest + amount * 1000000 * acked / tp->snd_cwnd;
	u32 cut = total / 1000000000;

	set_cwnd(tp, tp->snd_cwnd > cut + 2 ? tp->snd_cwnd - cut : 2);
	tp->snd_ssthresh = min(tp->snd_ssthresh, tp->snd_cwnd);
	*rest = total % 1000000000;
}

CONG_AVOID(sk, ack, acked)
{
	struct ledbat *l = PRIVATE(sk, struct ledbat);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 base = base_delay(l), delay = queuing_delay(l, base);
	u64 off; /* GAIN * |off_target| in thousandths; BPF has no signed division */

	SHOW(sk, base, delay);
	if (in_slow_start(tp) && delay >= TARGET_US * 3 / 4)
		tp->snd_ssthresh = tp->snd_cwnd;
	if (delay <= TARGET_US) {
		off = GAIN * 1000ULL * (TARGET_US - delay) / TARGET_US;
		acked = slow_start(tp, acked);
		grow(tp, &l->rest_up, off, acked);
	} else {
		off = GAIN * 1000ULL * (delay - TARGET_US) / TARGET_US;
		shrink(tp, &l->rest_down, min(off, 500ULL * tp->snd_cwnd), acked);
	}
}

SSTHRESH(sk)
{
	return reno_ssthresh(sk);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL ledbat = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.pkts_acked = (void *)cc_pkts_acked,
	.name = NAME,
};
