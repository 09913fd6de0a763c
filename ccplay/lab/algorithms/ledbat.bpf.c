/* SPDX-License-Identifier: MIT
 *
 * LEDBAT: low priority: holds its own queueing delay at 60 ms and yields to whatever adds to that.
 *
 * RFC 6817, Low Extra Delay Background Transport, section 2.4.2. On each ACK, with base the least delay
 * of the last minutes and current the least of the last few samples:
 *	queuing_delay = current - base
 *	off_target    = (TARGET - queuing_delay) / TARGET
 *	cwnd         += GAIN * off_target * acked / cwnd,  so by 1 segment an RTT at the most
 * Loss: Reno's half. TARGET is 100 ms at the most; 60 ms is what LEDBAT++ and Windows take, and like
 * LEDBAT++ (Bagnulo, Balasubramanian, draft-irtf-iccrg-ledbat-plus-plus) this ends slow start at 3/4 of
 * TARGET and measures the RTT, for the kernel gives an algorithm no one-way delay: a queue on the
 * way back counts, too. Linux's own low-priority algorithm, `lp`, is another one (TCP-LP).
 */
#include "ccplay_cc.h"

#define TARGET_US 60000
#define GAIN 1
#define MINUTES 10
#define SAMPLES 4
#define MINUTE_US 60000000ULL

struct ledbat {
	u64 minute_us; /* when this minute began */
	u32 base[MINUTES]; /* the least RTT of each minute */
	u32 current[SAMPLES];
	u32 minute;
	u32 sample;
	s32 rest; /* thousandths of a segment, may be below 0 */
};

SHOWN("ledbat_base_us ledbat_queuing_us");

PKTS_ACKED(sk, sample)
{
	struct ledbat *l = PRIVATE(sk, struct ledbat);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = sample->rtt_us, minute;

	if (sample->rtt_us <= 0)
		return;
	if (now_us(tp) - l->minute_us > MINUTE_US) {
		l->minute_us = now_us(tp);
		l->minute = (l->minute + 1) % MINUTES;
		minute = l->minute;
		for (u32 i = 0; i < MINUTES; i++)
			if (i == minute)
				l->base[i] = 0;
	}
	minute = l->minute;
	for (u32 i = 0; i < MINUTES; i++)
		if (i == minute)
			l->base[i] = least(l->base[i], rtt);
	l->sample = (l->sample + 1) % SAMPLES;
	for (u32 i = 0; i < SAMPLES; i++)
		if (i == l->sample)
			l->current[i] = rtt;
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

CONG_AVOID(sk, ack, acked)
{
	struct ledbat *l = PRIVATE(sk, struct ledbat);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 base = base_delay(l), delay = queuing_delay(l, base), cwnd = tp->snd_cwnd;
	u64 step;

	SHOW(sk, base, delay);
	if (!cwnd_limited(tp))
		return;
	if (in_slow_start(tp)) {
		if (delay < TARGET_US * 3 / 4) {
			tcp_slow_start(tp, acked);
			return;
		}
		tp->snd_ssthresh = cwnd;
	}
	/* BPF divides without signs only, so both directions are worked out by themselves. */
	if (delay <= TARGET_US) {
		step = (u64)GAIN * (TARGET_US - delay) * 1000 / TARGET_US * acked / cwnd;
		l->rest += step;
	} else {
		/* At most to the half in an RTT. */
		step = min((u64)GAIN * (delay - TARGET_US) * 1000 / TARGET_US, 500ULL * cwnd);
		step = step * acked / cwnd;
		l->rest -= step;
	}
	if (l->rest >= 1000) {
		set_cwnd(tp, cwnd + 1);
		l->rest -= 1000;
	} else if (l->rest <= -1000) {
		set_cwnd(tp, max(cwnd - 1, 2U));
		tp->snd_ssthresh = tp->snd_cwnd;
		l->rest += 1000;
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
