/* SPDX-License-Identifier: MIT
 *
 * HighSpeed TCP: the larger cwnd is, the faster it grows and the less a loss reduces it.
 *
 * RFC 3649, section 5. Up to W = 38 segments it behaves as Reno. From there to W_1 = 83000 its response
 * function is a straight line on logarithmic scales, with w for cwnd:
 *	p(w) = 0.078 / w^1.2
 *	b(w) = (0.1 - 0.5) (log w - log W) / (log W_1 - log W) + 0.5
 *	a(w) = w^2 * p(w) * 2 b(w) / (2 - b(w))
 *	avoidance	cwnd += a(w) per RTT
 *	loss		ssthresh = (1 - b(w)) cwnd
 * For example a(118) = 2, b(118) = 0.44; a(1058) = 8, b(1058) = 0.33. The RFC (appendix B) and Linux use
 * a table; here both are computed, with logarithms to base 2.
 */
#include "ccplay_cc.h"

#define W 38
#define LOG_W 5374 /* log2(38) * 1024 */
#define LOG_SPAN 11360 /* log2(83000 / 38) * 1024 */

struct highspeed {
	u32 rest; /* fraction of a segment, see grow() */
};

SHOWN("highspeed_a_1000 highspeed_b_1024");

/* log2(x) * 1024. Between powers of 2, log2(1 + f) = f + 0.344 f (1 - f), within 0.01. */
static __always_inline u32 log_2(u32 x)
{
	u32 whole = 0, part;

	for (int step = 16; step; step >>= 1) {
		if (x >> whole >> step)
			whole += step;
	}
	part = ((u64)x << 10 >> whole) - 1024;
	return (whole << 10) + part + (352 * (part * (1024 - part) >> 10) >> 10);
}

/* 2^x, both times 1024. Between whole numbers, 2^f = 1 + f - 0.344 f (1 - f), within 0.01. */
static __always_inline u64 power_of_2(u32 x)
{
	u32 part = x & 1023;

	return (u64)(1024 + part - (352 * (part * (1024 - part) >> 10) >> 10)) << (x >> 10 & 31);
}

/* b(w) * 1024. */
static __always_inline u32 b_of(u32 w)
{
	u32 more;

	if (w <= W)
		return 512;
	more = (log_2(w) - LOG_W) * 410 / LOG_SPAN;
	return more < 410 ? 512 - more : 102;
}

/* a(w) in thousandths of a segment: 0.156 w^0.8 b / (2 - b). */
static __always_inline u64 a_of(u32 w)
{
	u32 b;

	if (w <= W)
		return 1000;
	b = b_of(w);
	return max(156 * power_of_2(log_2(w) * 4 / 5) * b / (2048 - b) / 1024, 1000ULL);
}

CONG_AVOID(sk, ack, acked)
{
	struct highspeed *h = PRIVATE(sk, struct highspeed);
	struct tcp_sock *tp = tcp_sk(sk);

	acked = slow_start(tp, acked);
	if (!acked)
		return;
	grow(tp, &h->rest, a_of(tp->snd_cwnd), acked);
	SHOW(sk, a_of(tp->snd_cwnd), b_of(tp->snd_cwnd));
}

SSTHRESH(sk)
{
	u32 cwnd = tcp_sk(sk)->snd_cwnd;

	return max((u32)(cwnd - (u64)cwnd * b_of(cwnd) / 1024), 2U);
}

UNDO_CWND(sk)
{
	return reno_undo_cwnd(sk);
}

CONGESTION_CONTROL highspeed = {
	.ssthresh = (void *)cc_ssthresh,
	.cong_avoid = (void *)cc_cong_avoid,
	.undo_cwnd = (void *)cc_undo_cwnd,
	.name = NAME,
};
